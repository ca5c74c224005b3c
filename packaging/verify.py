"""Checks a bundle without Apple's tools: python packaging/verify.py dist/Rejoinder.app [ARCHIVE ...]."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from appbundle.spec import read_spec
from appbundle.verifier import exit_status, report, report_json, verify


def main(arguments: list[str] | None = None) -> int:
    """0: all passed. 3: all but the interpreter, which is not there. 1: something else failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("app", type=Path)
    parser.add_argument("archives", type=Path, nargs="*", help="the .zip and .dmg made of it")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    for path in (options.app, *options.archives):
        if not path.exists():
            parser.error(f"there is no {path}")
    results = verify(options.app, read_spec(), options.archives)
    print(report_json(results) if options.json else report(results))
    return exit_status(results)


if __name__ == "__main__":
    sys.exit(main())
