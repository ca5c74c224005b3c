"""Checks a bundle and its archives on any system, without Apple's tools.

Usage: python packaging/verify.py dist/Rejoinder.app [ARCHIVE ...]. For each check the script prints
a line: "passed", or "failed" with the reasons. The checks are in appbundle/checks. The list of
checks and the report are in appbundle/verifier.py. build.py runs the same checks after each build.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from appbundle.spec import read_spec
from appbundle.verifier import exit_status, report, report_json, verify


def main(arguments: list[str] | None = None) -> int:
    """Check the bundle, print the report, and return the exit status.

    Returns:
        0 if all checks passed, 3 if only the interpreter is missing, 1 if another check failed.
    """
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
