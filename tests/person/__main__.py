"""`python -m tests.person [ACTIONS] [--seed N]`: act as a seeded user and count the actions."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.widgets.transcript.accessibility.canvas import install_accessibility
from tests.person.models import build_cards
from tests.person.run import run_person


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("actions", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    app = QApplication(sys.argv[:1])
    install_accessibility()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = run_person(
            Path(folder),
            build_cards(Path(folder) / "models"),
            num_actions=options.actions,
            seed=options.seed,
            report=lambda number: print(number, "actions", flush=True),
        )
    app.quit()
    for name, number in done.most_common():
        sys.stdout.write(f"{number:6}  {name}\n")
    seconds = time.monotonic() - started
    sys.stdout.write(
        f"{done.total():6}  of {len(done)} kinds, seed {options.seed}, {seconds:.0f} s\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
