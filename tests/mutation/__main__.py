"""Make each mutation in a temporary copy of the sources, never in the working tree; run its tests."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.app import APP_MUTATIONS
from tests.mutation.cache import CACHE_MUTATIONS
from tests.mutation.engine import ENGINE_MUTATIONS
from tests.mutation.pictures import PICTURE_MUTATIONS
from tests.mutation.places import Mutation

ROOT = Path(__file__).parents[2]
MUTATIONS = (*CACHE_MUTATIONS, *ENGINE_MUTATIONS, *APP_MUTATIONS, *PICTURE_MUTATIONS)
# Tests also read files of the root, such as the licence, and packaging/ has scripts that they run.
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")
PYTEST = (
    *("-m", "pytest", "-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider"),
    *("--show-capture=no", "--tb=no", "--hypothesis-profile=unshrunk"),
)
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run of pytest."""

    status: int  # exit status of pytest
    failed: str  # id of the first failed test, or "" if there is none
    seconds: float

    @property
    def is_caught(self) -> bool:
        return self.status == 1

    @property
    def verdict(self) -> str:
        names = {0: "SURVIVED", 1: "caught"}
        return names.get(self.status, f"pytest ended with {self.status}")


def run_tests(root: Path, tests: Iterable[str]) -> Outcome:
    """Run the tests in a copy of the tree, up to the first failure."""
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, *PYTEST, *tests],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        text=True,
    )
    found = FAILED.search(ended.stdout)
    return Outcome(ended.returncode, found[1] if found else "", time.monotonic() - started)


def try_mutation(mutation: Mutation | None, tests: Iterable[str]) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        shutil.copytree(ROOT, root, ignore=NOT_COPIED)
        if mutation is not None:
            file = root / mutation.path
            file.write_text(mutation.apply(file.read_text("utf-8")), encoding="utf-8")
        return run_tests(root, tests)


def try_and_report(mutation: Mutation) -> Outcome:
    outcome = try_mutation(mutation, mutation.tests)
    print(
        f"{outcome.verdict:<9} {mutation.name}  {outcome.seconds:.0f} s  {outcome.failed}",
        flush=True,
    )
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser()
    names = [mutation.name for mutation in MUTATIONS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1, help="number of mutations at once")
    arguments = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if mutation.name in arguments.only]
    tests = dict.fromkeys(test for mutation in chosen for test in mutation.tests)
    unbroken = try_mutation(None, tests)
    assert unbroken.status == 0, f"the tests fail without any mutation: {unbroken.failed}"
    with ThreadPoolExecutor(arguments.jobs) as jobs:
        outcomes = list(jobs.map(try_and_report, chosen))
    num_caught = sum(outcome.is_caught for outcome in outcomes)
    print(f"{num_caught} of {len(chosen)} caught")
    return 0 if num_caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
