"""Damages copies of a real bundle and checks that the verifier finds each damage.

    python -m tests.packaging.controls APP [--checks NAME ...]

The copies share their files with the bundle through hard links. The bundle itself is never written
to. Exit status 1 if the verifier missed a damage, or if the bundle changed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "packaging"))

from appbundle.spec import read_spec
from appbundle.verifier import CHECKS, verify
from tests.packaging.damages import DAMAGES, Damage
from tests.packaging.tree import Tree


class ControlOutcome(StrEnum):
    CAUGHT = "caught"
    MISSED = "MISSED"
    NOT_TRIED = "not tried"  # the bundle lacks the file or value that would be damaged


@dataclass(frozen=True, slots=True)
class Control:
    """The result of one damage to a copy of the bundle."""

    outcome: ControlOutcome
    said: str  # the reported problem, or the reason why no problem was reported
    others: tuple[str, ...] = ()  # names of other checks that also reported the damage


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("app", type=Path)
    parser.add_argument("--checks", nargs="+", help="only damages that these checks must report")
    options = parser.parse_args(arguments)
    bundle = Tree(options.app.resolve(), read_spec())
    before = _problems(bundle)
    checks = set(options.checks or CHECKS)
    numbers = [number for number, damage in enumerate(DAMAGES) if damage.check in checks]
    damages = [DAMAGES[number] for number in numbers]
    with ProcessPoolExecutor() as processes:
        controls = list(processes.map(partial(_try, bundle, before), numbers))
    for damage, control in zip(damages, controls, strict=True):
        also = f" (found by {', '.join(control.others)} too)" if control.others else ""
        print(f"{control.outcome:9} {damage.check}: {damage.what}: {control.said}{also}")
    outcomes = [control.outcome for control in controls]
    print(
        f"{len(checks)} checks, {len(damages)} damages: {outcomes.count(ControlOutcome.CAUGHT)} caught,"
        f" {outcomes.count(ControlOutcome.MISSED)} missed, {outcomes.count(ControlOutcome.NOT_TRIED)} not tried"
    )
    if _problems(bundle) != before:
        print("THE BUNDLE ITSELF WAS CHANGED")
        return 1
    return 1 if ControlOutcome.MISSED in outcomes else 0


def _try(bundle: Tree, before: Mapping[str, tuple[str, ...]], number: int) -> Control:
    # Make the copy in the folder of the bundle: hard links work within one file system only.
    where = bundle.layout.app.parent
    with tempfile.TemporaryDirectory(dir=where, prefix=".damaged-") as folder:
        return _damage(DAMAGES[number], bundle.copied(Path(folder)), before)


def _damage(damage: Damage, tree: Tree, before: Mapping[str, tuple[str, ...]]) -> Control:
    try:
        damage.apply(tree)
    except (OSError, LookupError, ValueError) as error:
        return Control(ControlOutcome.NOT_TRIED, str(error))
    new = {
        check: [problem for problem in problems if problem not in before.get(check, ())]
        for check, problems in _problems(tree).items()
    }
    said = [problem for problem in new[damage.check] if damage.reason in problem]
    others = tuple(check for check, problems in new.items() if problems and check != damage.check)
    if not said:
        return Control(ControlOutcome.MISSED, f"nobody said {damage.reason!r}", others)
    return Control(ControlOutcome.CAUGHT, said[0], others)


def _problems(tree: Tree) -> Mapping[str, tuple[str, ...]]:
    results = verify(tree.layout.app, tree.spec, tree.archives)
    return {result.check: result.problems for result in results}


if __name__ == "__main__":
    sys.exit(main())
