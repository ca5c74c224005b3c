"""Sixty long answers, streamed: `python -m tests.conformance.streaming [--first N] [--answers N] [--every N]`.

Each answer goes character by character through the view model, which must never fail, change what is
final, or end after any prefix otherwise than in the blocks of that prefix; in pieces of other sizes through
the same; and through the real transcript, painted after each character, which must end in the picture of the
whole answer, as must some of its prefixes in pieces. What differs is written to a folder. Takes about half an
hour on two cores; --every ends only some of the prefixes. Fails if an answer did.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from time import perf_counter

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from app.settings import Appearance
from app.theme.palette import Theme
from app.widgets.transcript import TranscriptView
from tests.conformance.prefixes import PrefixError, check_pieces, check_prefixes
from tests.conformance.streamed_view import PictureError, check_picture
from tests.fakes.long_answers import NUM_ANSWERS, long_answer

SIZE = (800, 1200)
LONGEST_PIECE = 60  # characters
NUM_STREAMS = 20  # of each answer, in pieces of other sizes
NUM_PREFIXES = 4  # of each answer, shown in the transcript
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one answer fared; problem is empty if well."""

    number: int
    num_prefixes: int
    num_ended: int
    num_pages: int
    problem: str


@dataclass(frozen=True, slots=True)
class Task:
    """Some of the answers, for one process."""

    numbers: tuple[int, ...]
    finish_every: int
    folder: Path


def in_pieces(text: str, random: Random) -> Iterator[str]:
    """A text as it may arrive: in pieces of any size."""
    start = 0
    while start < len(text):
        end = start + random.randint(1, LONGEST_PIECE)
        yield text[start:end]
        start = end


def check_answers(task: Task) -> list[Outcome]:
    """Check some answers; runs in a process of its own, since Qt wants its main thread."""
    app = QApplication([])
    theme = Theme(app, Appearance.LIGHT)
    view = TranscriptView(theme)
    view.resize(*SIZE)
    view.show()
    return [_check(number, view, task) for number in task.numbers]


def _check(number: int, view: TranscriptView, task: Task) -> Outcome:
    text = long_answer(number)
    num_ended = num_pages = 0
    problem = ""
    try:
        num_ended = check_prefixes(text, finish_every=task.finish_every)
        random = Random(number)
        for _ in range(NUM_STREAMS):
            check_pieces(text, random)
        num_pages = check_picture(view, text, text)
        for _ in range(NUM_PREFIXES):
            prefix = text[: random.randint(1, len(text))]
            num_pages += check_picture(view, prefix, in_pieces(prefix, random))
    except PrefixError as error:
        problem = str(error)
    except PictureError as error:
        problem = str(error)
        error.streamed.save(str(task.folder / f"{number}-streamed.png"))
        error.whole.save(str(task.folder / f"{number}-whole.png"))
    return Outcome(number, len(text), num_ended, num_pages, problem)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--answers", type=int, default=NUM_ANSWERS, help="how many (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (%(default)s)")
    parser.add_argument("--every", type=int, default=1, help="end each Nth prefix (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("build/streaming"))
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    started = perf_counter()
    tasks = [
        Task((number,), options.every, folder)
        for number in range(options.first, options.first + options.answers)
    ]
    outcomes: list[Outcome] = []
    # A process for each answer: Qt can't be set up twice in one.
    spawn = get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=spawn, max_tasks_per_child=1) as pool:
        for future in as_completed([pool.submit(check_answers, task) for task in tasks]):
            outcomes += future.result()
            print(outcomes[-1], flush=True)
    failed = [outcome for outcome in outcomes if outcome.problem]
    print(
        f"{len(outcomes)} answers, {sum(o.num_prefixes for o in outcomes)} prefixes streamed,"
        f" {sum(o.num_ended for o in outcomes)} of them ended, {sum(o.num_pages for o in outcomes)}"
        f" pages compared, {len(failed)} failed; {perf_counter() - started:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
