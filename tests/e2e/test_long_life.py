"""Tests that few Python objects remain after conversations were answered and deleted."""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.long_life import RoundSample, run_rounds
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template

NUM_CHATS = 2  # conversations per round
NUM_TURNS = 1  # answers per conversation
# The window keeps the messages of a few hidden conversations. After this number of rounds, it keeps
# the maximum number.
NUM_WARM = 4
NUM_MEASURED = 3
# Highest number of objects that a deleted conversation may leave: its entry in the undo list, its
# summary, its scroll position and a part of the measurements of a round.
NUM_KEPT = 16
# Types that are not counted: the fixture no_leaked_timers makes objects of them for each started
# timer.
OF_FIXTURES = ("builtins.tuple", "weakref.ReferenceType")


@pytest.fixture
def unfrozen() -> Iterator[None]:
    """Let gc.get_objects() return the objects too that tests/conftest.py has frozen.

    Otherwise an object that replaces a frozen one would count as an additional one.
    """
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.fixture
def no_log_records() -> Iterator[None]:
    """Switch the log off. pytest keeps the records of a test, and an earlier test may set the level."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.usefixtures("qapp", "unfrozen", "no_log_records")
def test_deleted_conversations_leave_no_objects(tiny_model: TinyModel, tmp_path: Path) -> None:
    samples = run_rounds(
        tmp_path,
        tiny_model("lfm2", Template.KEEPING),
        num_rounds=NUM_WARM + NUM_MEASURED,
        num_answers=NUM_CHATS * NUM_TURNS,
        num_turns=NUM_TURNS,
        num_unsampled=NUM_WARM - 1,
        seed=None,
        progress=print,
    )
    assert all(sample.cached_bytes for sample in samples)
    assert not any(sample.left_bytes for sample in samples)
    grown = _grown_in_each_round(samples)
    assert grown.total() <= NUM_KEPT * NUM_CHATS, grown.most_common(10)


def _grown_in_each_round(samples: Sequence[RoundSample]) -> Counter[str]:
    """Count the objects of each type that every round added at least.

    How many rows of the hidden conversations have a layout differs from round to round.
    """
    steps = [after.objects - before.objects for before, after in pairwise(samples)]
    least = steps[0]
    for step in steps[1:]:
        least &= step
    for name in OF_FIXTURES:
        del least[name]
    return least
