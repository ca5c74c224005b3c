"""Restart the engine in the middle of a chat, on every exact model type.

    python -m tests.architectures.restart [TYPE ...]

A chat of two turns is written to disk. After a restart, the next answer resumes there, and must have
the bits of the bare model. The command prints one line for each type that does not, then the counts.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from pathlib import Path

import mlx.core as mx

from tests.architectures.configs.every import CONFIGS
from tests.architectures.outcome import Verdict
from tests.architectures.table import read_rows
from tests.fakes.tiny_model import Template, build_tiny
from tests.oracle.restarts import many_steps, play

TABLE = Path(__file__).parent / "README.md"


def problem_of(name: str, folder: Path) -> str:
    """Return what is wrong after a restart, or "".

    Raises:
        Exception: the code of the model may raise anything.
    """
    model = build_tiny(name, folder / name, Template.KEEPING, CONFIGS)
    restart = play(model, *many_steps(1, 2, reasoning=False))
    (report,) = restart.after
    if not restart.is_exact:
        return f"another answer: {report.check}"
    if restart.redo:
        return f"{restart.redo} tokens fed again"
    return "" if report.restored_disk == report.restored > 0 else "nothing came from disk"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TYPE")
    rows = read_rows(TABLE.read_text(encoding="utf-8"))
    exact = [row.name for row in rows if row.verdict is Verdict.EXACT]
    right = wrong = failed = 0
    started = time.monotonic()
    for name in parser.parse_args().names or exact:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = problem_of(name, Path(folder))
            except (Exception, SystemExit) as error:  # noqa: BLE001 — a module may raise anything
                print(f"{name}: not run: {error!r}"[:300], flush=True)
                failed += 1
                continue
            finally:
                gc.collect()
                mx.clear_cache()
        if found:
            print(f"{name}: {found}", flush=True)
        wrong += bool(found)
        right += not found
    print(f"{right} right, {wrong} wrong, {failed} not run, {time.monotonic() - started:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
