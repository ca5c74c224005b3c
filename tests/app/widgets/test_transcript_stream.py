from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from app.settings import Appearance
from app.theme.palette import Theme
from app.viewmodels.phases import Loading, Waiting
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript.flush import Delta, DeltaBuffer
from app.widgets.transcript.rows.row import RowAction
from engine.types import Channel, Role
from tests.fakes.transcript_samples import (
    ANSWERS,
    CODE,
    GUIDE,
    READING,
    answer,
    conversation,
    question,
    restored,
)
from tests.fakes.transcript_stage import TranscriptStage

STREAMING = TranscriptItem(key="a0", role=Role.ASSISTANT, text="", status=ItemStatus.STREAMING)
TWO_MB = 2_000_000
VISIBLE_ROWS = 30  # more than the lines that fit into the window


@pytest.mark.parametrize("name", ANSWERS)
def test_streamed_answer_ends_with_the_picture_of_the_complete_one(
    transcript: TranscriptStage, name: str
) -> None:
    text = ANSWERS[name]
    view = transcript.view
    view.resize(800, 2400)
    whole = answer(0, text)
    transcript.show([question(0), whole])
    expected = view.viewport().grab().toImage()
    transcript.show([question(0), STREAMING])
    for start in range(0, len(text), 23):
        view.append_delta("a0", Channel.ANSWER, text[start : start + 23])
        view.flush()
    view.finish(whole)
    transcript.settle()
    assert view.viewport().grab().toImage() == expected


def test_delta_is_shown_with_the_next_flush(transcript: TranscriptStage) -> None:
    transcript.show([question(0), STREAMING])
    view = transcript.view
    view.append_delta("a0", Channel.ANSWER, "Some ")
    view.append_delta("a0", Channel.ANSWER, "text")
    assert view.text_of("a0") == ""
    transcript.qtbot.waitUntil(lambda: view.text_of("a0") == "Some text")


def test_finish_shows_pending_text_at_once(transcript: TranscriptStage) -> None:
    transcript.show([question(0), STREAMING])
    transcript.view.append_delta("a0", Channel.ANSWER, "Some text")
    transcript.view.finish(replace(STREAMING, text="Some text", status=ItemStatus.STOPPED))
    assert transcript.view.text_of("a0") == "Some text"


def test_finished_text_replaces_the_streamed_text(transcript: TranscriptStage) -> None:
    transcript.show([question(0), STREAMING])
    transcript.view.append_delta("a0", Channel.ANSWER, "Some text that the engine took back")
    transcript.view.finish(replace(STREAMING, text="Some text", status=ItemStatus.COMPLETE))
    transcript.settle()
    assert transcript.view.text_of("a0") == "Some text"


def test_item_update_while_streaming_keeps_each_delta_once(transcript: TranscriptStage) -> None:
    view = transcript.view
    transcript.show([question(0), STREAMING])
    view.append_delta("a0", Channel.ANSWER, "one ")
    view.update_item(replace(STREAMING, text="one ", phase=READING))
    view.begin_answer(replace(STREAMING, text="one "))
    view.append_delta("a0", Channel.ANSWER, "two")
    view.set_items([question(0), replace(STREAMING, text="one two")])
    assert view.text_of("a0") == "one two"


def test_streaming_continues_after_another_conversation_was_shown(
    transcript: TranscriptStage,
) -> None:
    view = transcript.view
    transcript.show([question(0), STREAMING])
    view.append_delta("a0", Channel.ANSWER, "one ")
    transcript.show(conversation(1))
    view.append_delta("a9", Channel.ANSWER, "nobody shows this")
    transcript.show([question(0), replace(STREAMING, text="one two ")])
    view.append_delta("a0", Channel.ANSWER, "three")
    view.finish(replace(STREAMING, text="one two three", status=ItemStatus.COMPLETE))
    assert view.text_of("a0") == "one two three"


def test_continued_answer_appends_to_the_stopped_text(transcript: TranscriptStage) -> None:
    stopped = replace(STREAMING, text="one ", status=ItemStatus.STOPPED)
    transcript.show([question(0), stopped])
    transcript.view.begin_answer(replace(stopped, status=ItemStatus.STREAMING))
    transcript.view.append_delta("a0", Channel.ANSWER, "two")
    transcript.view.flush()
    assert transcript.view.text_of("a0") == "one two"


def test_late_link_definition_makes_an_earlier_link_at_the_end(transcript: TranscriptStage) -> None:
    text = "[a link with a long name]\n\nmore\n\n[a link with a long name]: https://example.org\n"
    transcript.show([STREAMING])
    for character in text:
        transcript.view.append_delta("a0", Channel.ANSWER, character)
        transcript.view.flush()
    assert not transcript.has(RowAction.OPEN_LINK)
    transcript.view.finish(replace(STREAMING, text=text, status=ItemStatus.COMPLETE))
    transcript.settle()
    assert transcript.has(RowAction.OPEN_LINK)


def test_begin_answer_adds_a_message(transcript: TranscriptStage) -> None:
    transcript.show([question(0)])
    transcript.view.begin_answer(STREAMING)
    transcript.view.append_delta("a0", Channel.ANSWER, "text")
    transcript.qtbot.waitUntil(lambda: transcript.view.text_of("a0") == "text")
    assert transcript.view.statistics().num_messages == 2


def test_caret_is_shown_only_while_the_answer_streams(transcript: TranscriptStage) -> None:
    complete = replace(STREAMING, text="text", status=ItemStatus.COMPLETE)
    transcript.show([complete])
    without = row_of_text(transcript)
    transcript.show([replace(complete, status=ItemStatus.STREAMING)])
    assert row_of_text(transcript) != without
    transcript.view.finish(complete)
    transcript.settle()
    assert row_of_text(transcript) == without


def test_caret_is_hidden_until_the_prompt_is_read(transcript: TranscriptStage) -> None:
    transcript.show([question(0), replace(STREAMING, phase=Waiting(ahead=0))])
    without = placeholder(transcript)
    transcript.view.update_item(replace(STREAMING, phase=restored()))
    assert placeholder(transcript) != without
    loading = Loading(name="x", fraction=0.0, loaded_bytes=0, total_bytes=1)
    transcript.view.update_item(replace(STREAMING, phase=loading))
    without = placeholder(transcript)
    transcript.view.update_item(replace(STREAMING, phase=READING))
    assert placeholder(transcript) == without


def test_thinking_pill_counts_seconds_and_shows_the_last_line(transcript: TranscriptStage) -> None:
    transcript.show([STREAMING])
    view = transcript.view
    view.append_delta("a0", Channel.REASONING, "First\nsecond")
    view.flush()
    at_start = transcript.picture()
    transcript.clock.now = 3.2
    view.append_delta("a0", Channel.REASONING, "!")
    view.flush()
    after = transcript.picture()
    assert after != at_start
    view.append_delta("a0", Channel.ANSWER, "The answer")
    view.finish(
        replace(
            STREAMING, text="The answer", reasoning="First\nsecond!", status=ItemStatus.COMPLETE
        )
    )
    transcript.settle()
    measured = transcript.picture()
    view.update_item(
        replace(
            STREAMING,
            text="The answer",
            reasoning="First\nsecond!",
            reasoning_s=3.2,
            status=ItemStatus.COMPLETE,
        )
    )
    assert transcript.picture() == measured


def test_thinking_pill_goes_on_counting_after_a_visit_to_another_chat(
    transcript: TranscriptStage,
) -> None:
    reasoning = replace(STREAMING, reasoning="First\nsecond", reasoning_s=None)
    transcript.show([reasoning])
    transcript.clock.now = 6.0
    transcript.view.append_delta("a0", Channel.REASONING, "!")
    transcript.view.flush()
    before = transcript.picture()
    transcript.show([replace(reasoning, reasoning="First\nsecond!", reasoning_s=6.0)])
    assert transcript.picture() == before


@pytest.mark.parametrize("form", ["{lines}", "{words}", "```\n{lines}\n```", "{word}"])
def test_question_of_two_megabytes_lays_out_only_the_visible_rows(
    transcript: TranscriptStage, form: str
) -> None:
    lines = ("word " * 15 + "\n") * (TWO_MB // 76)
    text = form.format(lines=lines, words="word " * (TWO_MB // 5), word="x" * TWO_MB)
    transcript.view.show_conversation([question(0, text)])
    transcript.view.viewport().repaint()

    assert transcript.view.statistics().num_layouts < VISIBLE_ROWS


@pytest.mark.parametrize("unit", [f"{GUIDE}\n\n", "word ", f"{CODE}\n", "- item\n", "x"])
def test_answer_of_two_megabytes_lays_out_only_the_visible_rows(
    transcript: TranscriptStage, unit: str
) -> None:
    text = unit * (TWO_MB // len(unit))
    view = transcript.view
    view.show_conversation([answer(0, text)])
    view.viewport().repaint()

    assert view.statistics().num_layouts < VISIBLE_ROWS
    assert not view.statistics().is_idle  # the rest follows in short pieces of work
    assert view.text_of("a0") == text


def test_buffer_keeps_the_order_of_deltas_of_several_answers(
    qtbot: QtBot, transcript: TranscriptStage
) -> None:
    buffer = DeltaBuffer(transcript.view)
    deltas = [
        Delta("a", Channel.REASONING, "1"),
        Delta("a", Channel.REASONING, "2"),
        Delta("a", Channel.ANSWER, "3"),
        Delta("b", Channel.ANSWER, "4"),
        Delta("b", Channel.ANSWER, "5"),
    ]
    for delta in deltas:
        buffer.add(delta)
    assert buffer.take_deltas() == deltas
    assert buffer.is_empty
    assert buffer.take_deltas() == []


def test_buffer_emits_the_due_signal_once_for_many_deltas(
    qtbot: QtBot, transcript: TranscriptStage
) -> None:
    buffer = DeltaBuffer(transcript.view)
    due: list[int] = []
    buffer.due.connect(lambda: due.append(len(buffer.take_deltas())))
    for number in range(50):
        buffer.add(Delta("a", Channel.ANSWER, str(number)))
    qtbot.waitUntil(lambda: len(due) > 0)
    assert due == [50]


def test_buffer_emits_the_due_signal_while_deltas_arrive(
    qtbot: QtBot, transcript: TranscriptStage
) -> None:
    buffer = DeltaBuffer(transcript.view)
    arriving = QTimer(buffer, interval=1)
    arriving.timeout.connect(lambda: buffer.add(Delta("a", Channel.ANSWER, "x")))
    buffer.due.connect(arriving.stop)
    with qtbot.waitSignal(buffer.due):
        arriving.start()
    assert not buffer.is_empty


def test_theme_change_while_streaming_repaints_in_the_new_colours(
    transcript: TranscriptStage, theme: Theme
) -> None:
    transcript.show([question(0), STREAMING])
    transcript.view.append_delta("a0", Channel.ANSWER, "Some `code` text")
    transcript.view.flush()
    light = transcript.picture()
    theme.set_appearance(Appearance.DARK)
    dark = transcript.picture()
    assert dark.pixelColor(5, 5) == theme.colors.canvas
    theme.set_appearance(Appearance.LIGHT)
    assert transcript.picture() == light


def row_of_text(stage: TranscriptStage) -> object:
    return stage.picture().copy(0, 24, 300, 24)


def placeholder(stage: TranscriptStage) -> object:
    """Return a picture of the area in which the first word of the answer will appear.

    The area is correct only for a question of one line.
    """
    return stage.picture().copy(0, 104, 300, 24)
