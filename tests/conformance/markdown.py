"""Compares the app's Markdown with the examples of the Markdown specifications.

    python -m tests.conformance.markdown SPEC.txt ...

The files are not part of this repository. They are published under CC-BY-SA 4.0 as spec.txt in the
repository commonmark/commonmark-spec (also in the npm package commonmark-spec) and as test/spec.txt
in github/cmark-gfm (also in Debian's source package cmark-gfm).

The specification has the expected HTML of each example. The app's blocks are compared with this
HTML in kind, nesting and visible text. Examples with raw HTML are left out, because the app shows
HTML as text. Each difference is printed with its reason. Exit status 1 if a difference has no
reason, or if less than 97 % of the examples are equal.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from tests.conformance.examples import Example, Specification, read_specification
from tests.conformance.html_reader import shape_of_html
from tests.conformance.reasons import REASONS
from tests.conformance.shape import ShapeNode, shape_of_text

LEAST_SHARE = 0.97


@dataclass(frozen=True, slots=True)
class Difference:
    """An example that the app shows differently from the specification."""

    example: Example
    ours: ShapeNode
    theirs: ShapeNode
    reason: str  # why the difference is intended; empty for a defect

    @override
    def __str__(self) -> str:
        title = f"{self.example.number} ({self.example.section}): {self.reason or 'NO REASON'}"
        shapes = (*self.ours.lines("    ours   "), *self.theirs.lines("    theirs "))
        return "\n".join((title, f"    {self.example.markdown!r}", *shapes))


def compare(specification: Specification) -> Iterator[Difference]:
    for example in specification.examples:
        if example.has_raw_html:
            continue
        ours, theirs = shape_of_text(example.markdown), shape_of_html(example.html)
        if ours != theirs:
            reason = REASONS.get((specification.edition, example.number), "")
            yield Difference(example, ours, theirs, reason)


def report(specification: Specification) -> bool:
    """Print the results for one specification. Return True if the app passes."""
    compared = Counter(e.section for e in specification.examples if not e.has_raw_html)
    differences = list(compare(specification))
    different = Counter(difference.example.section for difference in differences)
    for section, count in compared.items():
        print(f"{count - different[section]:4} of {count:4}  {section}")
    total = compared.total()
    share = 1 - len(differences) / total
    num_left_out = len(specification.examples) - total
    for difference in differences:
        print(difference)
    print(
        f"{specification.edition}: {total - len(differences)} of {total} equal, {share:.2%};"
        f" {num_left_out} with raw HTML left out\n"
    )
    return share >= LEAST_SHARE and all(difference.reason for difference in differences)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="SPEC.txt")
    files: list[Path] = parser.parse_args(arguments).files
    met = [report(read_specification(file)) for file in files]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
