"""`python packaging/build.py`: assembles dist/Rejoinder.app, checks it, packs it.

Exit status: 0, the app can be launched on a Mac; 3, all but the interpreter is there, which could not be had;
1, a check failed. `--twin` makes the same bundle for this machine instead, to be tried here.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

from appbundle.assemble import Builder
from appbundle.spec import ROOT, read_spec

NOT_LAUNCHABLE = 3


def main() -> int:
    arguments = _arguments()
    spec = read_spec()
    app = arguments.out / f"{spec.name}.app"
    started = perf_counter()
    builder = Builder(spec, ROOT / "build", ROOT / ".tools")
    if arguments.twin:
        builder.twin(app)
        print(f"made {app} for this machine in {perf_counter() - started:.0f} s")
        return 0
    missing = builder.macos(app)
    print(missing, f"{perf_counter() - started:.0f} s")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--twin", action="store_true", help="for this machine: unsigned, not checked"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
