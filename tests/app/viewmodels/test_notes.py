from __future__ import annotations

from dataclasses import replace

import pytest

from app.viewmodels.models import ModelPhase, ModelStatus
from app.viewmodels.notes import context_share, model_note, reading_note, too_long_note
from app.viewmodels.reading import ToRead
from app.words import computer
from app.words.models import DEMO_NOTE
from engine.errors import ContextFullError, DiskError, ModelFolderError, TextTooLongError
from engine.questions import TokensCounted
from engine.reading_pace import ReadingTime
from tests.app.viewmodels.test_items import EMPTY, finished, send
from tests.fakes.fake_engine import FACTS
from tests.fakes.rig import DEMO, card

PROBLEM = ModelFolderError("It is not installed.", advice="Run `make starter`.").problem


def counted(num_tokens: int, num_cached: int = 0, *, is_text: bool = False) -> TokensCounted:
    error = (TextTooLongError if is_text else ContextFullError)("It is too long.", num_tokens)
    refusal = error.problem if num_tokens >= FACTS.context_len else None
    return TokensCounted(num_tokens=num_tokens, num_cached=num_cached, refusal=refusal)


def test_model_note_is_empty_for_a_good_model() -> None:
    ready = ModelStatus(phase=ModelPhase.READY, path=str(card().path))
    assert model_note(ready, (card(), DEMO)) == ""


def test_model_note_warns_about_the_demo_model() -> None:
    ready = ModelStatus(phase=ModelPhase.READY, path=str(DEMO.path))
    assert model_note(ready, (card(), DEMO)) == f"{DEMO_NOTE}."


def test_model_note_without_a_model_says_how_to_get_one() -> None:
    none = ModelStatus(phase=ModelPhase.NONE, problem=PROBLEM)
    assert model_note(none, ()) == (
        f"There is no model on {computer.THIS_COMPUTER} yet. "
        "Download one, or add the folder that has yours."
    )
    problem = DiskError("/models can’t be read.").problem
    assert model_note(ModelStatus(phase=ModelPhase.NONE, problem=problem), ()) == str(problem)


def test_model_note_of_a_failed_model_has_the_problem() -> None:
    failed = ModelStatus(phase=ModelPhase.FAILED, path=str(card().path), problem=PROBLEM)
    assert model_note(failed, (card(),)) == (
        "This model can’t be loaded. It is not installed. Run `make starter`."
    )


def test_reading_note_appears_if_another_model_answered_last() -> None:
    conversation = finished(send(EMPTY, 1))
    a, b = replace(FACTS, path="/models/a"), replace(FACTS, path="/models/b")
    same = ModelStatus(phase=ModelPhase.READY, path="/models/a", name="A", facts=a)
    other = ModelStatus(phase=ModelPhase.READY, path="/models/b", name="B", facts=b)
    loading = ModelStatus(phase=ModelPhase.LOADING, path="/models/b", name="B")
    size = ToRead(243)
    assert reading_note(conversation, same, size) == ""
    assert reading_note(conversation, loading, size) == ""
    assert reading_note(EMPTY, other, size) == ""
    assert reading_note(conversation, other, None) == ""
    assert reading_note(conversation, other, ToRead(3)) == "", "it has been read ahead"
    assert reading_note(conversation, other, size) == (
        "B will read this chat with your next message: about 240 tokens."
    )


def test_reading_note_announces_what_is_read_for_long() -> None:
    ready = ModelStatus(phase=ModelPhase.READY, path="/models/a", name="A", facts=FACTS)
    assert reading_note(EMPTY, ready, ToRead(999)) == ""
    assert reading_note(EMPTY, ready, ToRead(62_113)) == ("A will first read about 62,000 tokens.")
    assert reading_note(EMPTY, ready, ToRead(62_113, ReadingTime(62, 62, 62))) == (
        "A will first read about 62,000 tokens, 62 s."
    )
    assert reading_note(EMPTY, ready, ToRead(9_000, ReadingTime(9, 9, 9))) == "", "it takes 9 s"
    assert reading_note(EMPTY, ready, ToRead(900, ReadingTime(18, 17, 19))) == (
        "A will first read about 900 tokens, 18 s."
    )


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (ReadingTime(30, 20, 45), "20 to 45 s"),
        (ReadingTime(150, 100, 225), "2 to 4 min"),
        (ReadingTime(85, 50, 140), "50 s to 2 min"),
        (ReadingTime(62, 30, 90, is_open=True), "62 s or more"),
    ],
)
def test_reading_note_has_the_range_of_varying_rates(expected: ReadingTime, words: str) -> None:
    ready = ModelStatus(phase=ModelPhase.READY, path="/models/a", name="A", facts=FACTS)
    assert reading_note(EMPTY, ready, ToRead(900, expected)) == (
        f"A will first read about 900 tokens, {words}."
    )


def test_context_share_counts_the_last_prompt_and_its_answer() -> None:
    conversation = finished(send(EMPTY, 1))
    ready = ModelStatus(
        phase=ModelPhase.READY, path="/models/a", facts=replace(FACTS, path="/models/a")
    )
    assert context_share(conversation, ModelStatus(phase=ModelPhase.NONE)) is None
    assert context_share(EMPTY, ready) is None
    found = context_share(conversation, ready)
    assert found is not None
    share, tip = found
    assert tip == f"This chat uses {round(share * 32_768)} of 32,768 tokens of context."
    other = replace(ready, facts=replace(FACTS, path="/models/b"))
    assert context_share(conversation, other) is None


def test_too_long_note_has_the_tokens_of_a_draft_and_the_limit() -> None:
    ready = ModelStatus(phase=ModelPhase.READY, path="/models/a", name="A", facts=FACTS)
    assert too_long_note(ready, None) == ""
    assert too_long_note(ready, counted(FACTS.context_len - 1)) == ""
    assert too_long_note(ready, counted(42_451, is_text=True)) == (
        "This text is too long for A: 42,451 of 32,768 tokens."
    )
    assert too_long_note(ready, counted(42_451)) == (
        "This chat is too long for A: 42,451 of 32,768 tokens."
    )
    assert too_long_note(ready, counted(42_451), is_editing=True) == (
        "The chat up to here is too long for A: 42,451 of 32,768 tokens."
    )
    assert too_long_note(ready, counted(42_451, is_text=True), is_editing=True) == (
        "This text is too long for A: 42,451 of 32,768 tokens."
    )
