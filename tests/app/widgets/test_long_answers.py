"""Checks of streamed Markdown on some long answers. tests/conformance checks all long answers."""

from __future__ import annotations

from random import Random

import pytest

from tests.conformance.prefixes import check_pieces, check_prefixes
from tests.conformance.streamed_view import check_picture
from tests.conformance.streaming import in_pieces
from tests.fakes.long_answers import NUM_ANSWERS, long_answer
from tests.fakes.tables import rest_in_soak
from tests.fakes.transcript_stage import TranscriptStage


@pytest.mark.slow
@pytest.mark.parametrize("number", rest_in_soak([3, 14, 20], 14))
def test_every_prefix_of_a_long_answer_parses_and_may_be_final(number: int) -> None:
    text = long_answer(number)

    assert check_prefixes(text, finish_every=53) >= len(text) // 53


@pytest.mark.slow
@pytest.mark.parametrize("number", rest_in_soak(range(0, NUM_ANSWERS, 3), 0, 9, 18))
def test_pieces_of_any_size_give_the_same_blocks(number: int) -> None:
    assert check_pieces(long_answer(number), Random(number)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("number", rest_in_soak([0, 4, 6, 25], 4, 25))
def test_streamed_long_answer_ends_with_the_picture_of_the_complete_one(
    transcript: TranscriptStage, number: int
) -> None:
    text = long_answer(number)
    transcript.view.resize(800, 1200)

    assert check_picture(transcript.view, text, in_pieces(text, Random(number))) > 0
