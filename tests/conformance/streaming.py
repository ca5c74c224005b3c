"""Streams sixty long answers and checks that they look like answers shown as a whole.

    python -m tests.conformance.streaming [--first N] [--answers N] [--every N]

Each answer passes three checks:

- The view model gets the answer character by character. Blocks that are marked as final must never
  change. If the answer ends after a prefix, the blocks must equal those of the prefix parsed as a
  whole. With --every N, only every Nth prefix is tested in this way.
- The view model gets the answer in pieces of random sizes. The final blocks must be the same.
- The real transcript gets the answer character by character and is painted after each character.
  The final picture must equal that of the whole answer. The same is checked for some prefixes of
  the answer, sent in pieces of random sizes.

Pictures that differ are written to --folder. All answers take about half an hour on two cores. Exit
status 1 if an answer failed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from time import perf_counter

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from app.settings import Appearance
from app.theme.palette import Theme
from app.widgets.transcript.view import TranscriptView
from tests.conformance.prefixes import check_pieces, check_prefixes
from tests.conformance.streamed_view import PictureError, check_picture
from tests.fakes.long_answers import NUM_ANSWERS, long_answer

SIZE = (800, 1200)
LONGEST_PIECE = 60  # in characters
NUM_STREAMS = 20  # number of times that each answer is sent in pieces to the view model
NUM_PREFIXES = 4  # number of prefixes per answer that are sent in pieces to the transcript
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Task:
    """The arguments of a process that checks one answer.

    Each answer needs a process, because Qt can't be set up twice in one process.
    """

    number: int
    # Number of characters between two tested ends of the stream; 1 tests every prefix.
    finish_every: int
    folder: Path  # folder for pictures that differ


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """The result of the checks of one answer."""

    number: int
    num_prefixes: int = 0  # number of prefixes that were streamed
    num_ended: int = 0  # number of prefixes after which the end of the answer was tested
    num_pages: int = 0
    problem: str = ""  # the first failure, empty if the answer passed


def in_pieces(text: str, random: Random) -> Iterator[str]:
    """Yield a text in pieces of random sizes, as an engine may send it."""
    start = 0
    while start < len(text):
        end = start + random.randint(1, LONGEST_PIECE)
        yield text[start:end]
        start = end


def check_answer(task: Task) -> StreamOutcome:
    """Run all checks of an answer. Save pictures that differ.

    Raises: PrefixError: the view model has wrong blocks. Exceptions of the app are not caught.
    """
    text, random = long_answer(task.number), Random(task.number)
    num_ended = check_prefixes(text, finish_every=task.finish_every)
    for _ in range(NUM_STREAMS):
        check_pieces(text, random)
    try:
        num_pages = _check_pictures(text, random)
    except PictureError as error:
        error.streamed.save(str(task.folder / f"{task.number}-streamed.png"))
        error.whole.save(str(task.folder / f"{task.number}-whole.png"))
        return StreamOutcome(task.number, len(text), num_ended, problem=str(error))
    return StreamOutcome(task.number, len(text), num_ended, num_pages)


def _check_pictures(text: str, random: Random) -> int:
    app = QApplication([])
    theme = Theme(app, Appearance.LIGHT)
    view = TranscriptView(theme)
    view.resize(*SIZE)
    view.show()
    num_pages = check_picture(view, text, text)
    for _ in range(NUM_PREFIXES):
        prefix = text[: random.randint(1, len(text))]
        num_pages += check_picture(view, prefix, in_pieces(prefix, random))
    return num_pages


def _outcome(number: int, future: Future[StreamOutcome]) -> StreamOutcome:
    error = future.exception()
    return future.result() if error is None else StreamOutcome(number, problem=repr(error))


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
    numbers = range(options.first, options.first + options.answers)
    outcomes: list[StreamOutcome] = []
    spawn = get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=spawn, max_tasks_per_child=1) as pool:
        tasks = (Task(number, options.every, folder) for number in numbers)
        futures = {pool.submit(check_answer, task): task.number for task in tasks}
        for future in as_completed(futures):
            outcomes.append(_outcome(futures[future], future))
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
