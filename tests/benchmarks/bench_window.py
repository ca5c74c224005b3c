"""Time from the start of the process until the window is on screen.

    python -m tests.benchmarks.bench_window [--runs 5] [--records 0]

Each run is a new process on a new data folder, with records of cached state on disk if asked for;
the clock starts before Python does. Prints one JSON line per run. A last line has the median, and the
heavy modules that were imported before the window was shown. Exit status 1 if the median exceeds LIMIT_S, or if a heavy module was imported.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from app.paths import make_paths
from tests.benchmarks.disk_tier import write_records

ROOT = Path(__file__).parents[2]
LIMIT_S = 1.0
CHILD = """
import json, os, sys, time
from pathlib import Path
from PySide6.QtWidgets import QApplication
from app.launch import launch
from app.options import Options
from app.controllers.core import Core

HEAVY = ("mlx", "mlx_lm", "transformers", "numpy", "torch", "tokenizers", "huggingface_hub",
         "pygments.lexers.python", "jinja2")
start = Core.start  # called once the window is painted

def report(core):
    found = [name for name in HEAVY if name in sys.modules]
    print(json.dumps({"shown_s": round(time.time() - float(sys.argv[1]), 3), "heavy": found,
                      "modules": len(sys.modules)}), flush=True)
    start(core)
    QApplication.quit()

Core.start = report
sys.exit(launch(Path(sys.argv[2]), Options()))
"""


def run_once(num_records: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        write_records(make_paths(Path(folder, "data")).state_dir, num_records)
        environment = {
            **os.environ,
            "QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen"),
            "HOME": folder,
            "HF_HOME": f"{folder}/hf",
        }
        began = time.time()
        result = subprocess.run(
            [sys.executable, "-c", CHILD, str(began), f"{folder}/data"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(result.stdout.splitlines()[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--records", type=int, default=0)
    args = parser.parse_args()
    results = [run_once(args.records) for _ in range(args.runs)]
    for result in results:
        sys.stdout.write(json.dumps(result) + "\n")
    median = statistics.median(float(str(result["shown_s"])) for result in results)
    heavy = sorted({str(name) for result in results for name in result["heavy"]})  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType, reportUnknownArgumentType] (parsed JSON)
    summary = {
        "runs": args.runs,
        "records": args.records,
        "median_s": median,
        "limit_s": LIMIT_S,
        "heavy": heavy,
    }
    sys.stdout.write(json.dumps(summary) + "\n")
    return 0 if median <= LIMIT_S and not heavy else 1


if __name__ == "__main__":
    sys.exit(main())
