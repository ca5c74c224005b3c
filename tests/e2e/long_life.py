"""Many answers in the window, to see if memory grows after the conversations are deleted.

A round asks questions in several conversations, then deletes all of them and waits until the engine
has forgotten them. After each round the memory of the process is measured. test_long_life.py counts
objects in short rounds, `python -m tests.soak answers` measures megabytes after 5,000 answers.
"""

from __future__ import annotations

import gc
import random
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from typing_extensions import override

from app.controllers import read_ahead
from app.conversation.tree import Setup
from app.viewmodels.models import ModelPhase
from app.widgets.commands import CommandId
from engine.cache_figures import CacheReport
from tests.fakes.real_window import RealWindow

NUM_TURNS = 5  # answers per conversation in a long run
MAX_TOKENS = 12  # tokens per answer
# Work that is not finished yet, such as a write to disk, holds objects for a moment. So samples are
# taken until their number no longer falls: objects that leak are in all of them.
MAX_LOOKS, LOOK_MS = 10, 200
WORDS = ("boat", "weather", "small", "list", "dog", "fox", "quick", "please", "thank", "about")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSample:
    """The memory held after a round."""

    num_answers: int  # number of answers since the start
    cached_bytes: int  # bytes in the prefix cache before the conversations were deleted
    left_bytes: int  # bytes in the prefix cache after the conversations were deleted
    freed_bytes: int  # freed buffers that MLX keeps for reuse
    process_bytes: int  # resident memory of the process
    num_blocks: int  # memory blocks allocated by Python
    objects: Counter[str]  # number of objects of each type that Python's garbage collector tracks

    @override
    def __str__(self) -> str:
        return (
            f"{self.num_answers:6,} answers  cached {self.cached_bytes / 1e6:6.1f} MB,"
            f" after deletion {self.left_bytes / 1e6:4.1f}"
            f"  freed buffers {self.freed_bytes / 1e6:5.1f}"
            f"  process {self.process_bytes / 1e6:6.1f} MB"
            f"  blocks {self.num_blocks:,}  objects {self.objects.total():,}"
        )


def run_rounds(
    folder: Path,
    model: Path,
    *,
    num_rounds: int,
    num_answers: int,
    seed: int | None,
    progress: Callable[[RoundSample], object],
    num_turns: int = NUM_TURNS,
    num_unsampled: int = 0,
) -> list[RoundSample]:
    """Play rounds of `num_answers` answers in one window. Return a sample per round.

    seed: seed of the questions. None: all rounds have the same questions and the same answers.
    num_turns: answers per conversation.
    num_unsampled: number of rounds at the start without a sample, which takes half a second.
    """
    samples: list[RoundSample] = []
    with patch.object(read_ahead, "FORGET_MS", 0), closing(_Window(folder)) as window:
        window.open_with(model, temperature=0.0 if seed is None else None)
        gc.collect()
        gc.freeze()  # exclude the objects so far, which take 0.2 s in each count, from gc.get_objects()
        rng = random.Random(seed)
        for number in range(1, num_rounds + 1):
            window.answer(num_answers, num_turns, random.Random(0) if seed is None else rng)
            cached_bytes = window.report().statistics.total_bytes
            window.delete_all()
            if number <= num_unsampled:
                continue
            sample = window.sample_at_rest(number * num_answers, cached_bytes)
            samples.append(sample)
            progress(sample)
    return samples


class _Window(RealWindow):
    """A window whose user asks questions and deletes conversations."""

    def open_with(self, model: Path, *, temperature: float | None) -> None:
        self.launch(model)
        self.wait_until(lambda: self.core.models.status.phase is ModelPhase.READY)
        self.limit_answers(model, Setup(max_tokens=MAX_TOKENS, temperature=temperature))

    def answer(self, num_answers: int, num_turns: int, rng: random.Random) -> None:
        for number in range(num_answers):
            if number % num_turns == 0:
                self.window.commands[CommandId.NEW_CHAT].trigger()
            self.type(" ".join(rng.choices(WORDS, k=3)))
            QTest.keyClick(self.edit, Qt.Key.Key_Return)
            self.wait_until(lambda: not self.core.turns.live)

    def delete_all(self) -> None:
        """Delete all conversations for good: until then, their state on disk has an index in memory."""
        library = self.core.library
        for summary in library.listed.unarchived:
            self.core.deletions.delete_all((summary.conversation_id,))
            library.deleted.remove_all([summary.conversation_id])
        self.wait_until(self._is_empty)
        self.settle()

    def sample_at_rest(self, num_answers: int, cached_bytes: int) -> RoundSample:
        sample = self.sample(num_answers, cached_bytes)
        for _ in range(MAX_LOOKS):
            last, sample = sample, self.sample(num_answers, cached_bytes)
            if sample.objects.total() >= last.objects.total():
                return last
        return sample

    def sample(self, num_answers: int, cached_bytes: int) -> RoundSample:
        QTest.qWait(LOOK_MS)
        gc.collect()
        return _sample(num_answers, cached_bytes, self.report())

    def _is_empty(self) -> bool:
        left = self.report().statistics
        return not left.num_nodes and not left.disk_records

    def report(self) -> CacheReport:
        """Return the engine's report about its memory."""
        reports: list[CacheReport] = []
        bridge = self.core.bridge
        bridge.when_answered(bridge.engine.report_cache(), reports.append)
        self.wait_until(lambda: bool(reports))
        return reports[-1]


def _sample(num_answers: int, cached_bytes: int, left: CacheReport) -> RoundSample:
    # The names of types are interned, so that the samples themselves add no new strings.
    objects = Counter[str]()
    for kind, number in Counter(map(type, gc.get_objects())).items():
        objects[sys.intern(f"{kind.__module__}.{kind.__qualname__}")] += number
    return RoundSample(
        num_answers=num_answers,
        cached_bytes=cached_bytes,
        left_bytes=left.statistics.total_bytes,
        freed_bytes=left.freed_bytes,
        process_bytes=left.process_bytes,
        num_blocks=sys.getallocatedblocks(),
        objects=objects,
    )
