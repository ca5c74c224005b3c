"""Compare the predicted memory of every model type with what loading measures.

    python -m tests.architectures.fit [TYPE ...]

A prediction is made twice: from the folder, and from its config.json alone. The command prints one
line for each type that differs or cannot be loaded, and then the counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from engine.catalog.card import ModelSource
from engine.catalog.inspect import read_card
from engine.config import EngineConfig
from engine.errors import EngineError
from engine.fitting import FitMeter
from engine.models.loader import load_model
from tests.architectures.configs.every import CONFIGS
from tests.architectures.modules import model_modules
from tests.fakes.tiny_model import Template, build_tiny


def difference(folder: Path, meter: FitMeter) -> str:
    """Return the predicted and the measured bytes if they differ, otherwise "".

    Both are bytes of weights, bytes of K/V a token, and bytes of a snapshot.

    Raises:
        EngineError: the model cannot be loaded, or not be measured.
    """
    facts = load_model(folder, lambda _done, _total: None).facts
    wanted = (facts.weight_bytes, facts.kv_bytes_per_token, facts.snapshot_bytes)
    config = (folder / "config.json").read_text(encoding="utf-8")
    fits = {
        "folder": meter.fit_folder(read_card(folder, ModelSource.FOLDER)),
        "config.json": meter.fit_config(config, 0),
    }
    for source, fit in fits.items():
        memory = fit.memory
        found = (memory.weight_bytes, memory.kv_bytes_per_token, memory.snapshot_bytes)
        if found != wanted:
            return f"{source} gives {found}, loading {wanted}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TYPE")
    names = parser.parse_args().names or model_modules()
    meter = FitMeter(EngineConfig())
    equal, different, failed = 0, 0, 0
    started = time.monotonic()
    for name in names:
        with tempfile.TemporaryDirectory() as parent:
            try:
                build_tiny(name, Path(parent) / name, Template.KEEPING, CONFIGS)
                found = difference(Path(parent) / name, meter)
            except EngineError as error:
                print(f"{name}: {error}")
                failed += 1
                continue
            except (Exception, SystemExit) as error:  # noqa: BLE001 — a module may raise anything
                print(f"{name}: cannot be built here: {error!r}")
                failed += 1
                continue
        if found:
            print(f"{name}: {found}")
        different += bool(found)
        equal += not found
    meter.close()
    seconds = time.monotonic() - started
    print(f"{equal} equal, {different} different, {failed} not run, {seconds:.0f} s")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
