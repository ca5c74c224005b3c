from __future__ import annotations

from app.widgets.answer_speaker import AnswerSpeaker
from app.widgets.commands import CommandId
from engine.errors import OutOfMemoryError
from tests.fakes.stage import Stage

PAUSE_MS = 60


def said(speaker: AnswerSpeaker) -> list[str]:
    texts: list[str] = []
    speaker.announcer.said.connect(texts.append)
    return texts


def heard(stage: Stage) -> list[str]:
    """Return a list to which the announcements of an AnswerSpeaker are added.

    The speaker behaves as if a screen reader were active."""
    core = stage.rig.core
    speaker = AnswerSpeaker(
        stage.pane,
        core.turns,
        core.library,
        stage.pane.transcript,
        is_heard=lambda: True,
        interval_ms=PAUSE_MS,
    )
    return said(speaker)


def test_start_and_end_of_an_answer_are_announced(stage: Stage) -> None:
    texts = said(stage.window.speaker)
    stage.send("Hello")
    stage.engine.write("One sentence. And another. ")
    stage.settle()
    assert texts == ["Answering…"], "a sentence was announced without a screen reader"
    stage.answer("The end.")
    assert texts[1:] == ["Answer finished, 8 tokens"]


def test_stopped_and_failed_answers_are_announced(stage: Stage) -> None:
    texts = said(stage.window.speaker)
    stage.send("Hello")
    stage.run(CommandId.STOP)
    assert texts[-1] == "Answer stopped"
    stage.run(CommandId.REGENERATE)
    problem = OutOfMemoryError("8 GB were needed.").problem
    stage.engine.fail(problem)
    stage.settle()
    assert texts[-1] == str(problem)


def test_answer_in_another_chat_is_not_announced(stage: Stage) -> None:
    texts = said(stage.window.speaker)
    stage.send("Hello")
    begun = stage.current
    stage.run(CommandId.NEW_CHAT)
    stage.engine.write("There. ")
    stage.settle()
    assert len(texts) == 1
    stage.rig.library.select(begun)
    stage.answer("Now here.")
    assert texts[1:] == ["Answer finished, 3 tokens"]


def test_complete_sentences_are_announced_with_pauses(stage: Stage) -> None:
    texts = heard(stage)
    stage.send("Hello")
    for part in ("It ", "is. Half ", "of this. ", "And a third. Then"):
        stage.engine.write(part)
        stage.wait(1)
    assert texts == ["Answering…", "It is."]
    stage.wait_until(lambda: len(texts) > 2)
    assert texts[2:] == ["Half of this. And a third."]
    stage.answer(" no more")
    assert texts[3:] == ["Then no more\nAnswer finished, 11 tokens"]


def test_reasoning_is_not_announced(stage: Stage) -> None:
    texts = heard(stage)
    stage.send("Hello")
    stage.engine.think("A sum. It is a sum. ")
    stage.settle()
    assert texts == ["Answering…"]
