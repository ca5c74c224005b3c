"""Tests that the transcript keeps and reuses layouts of recently shown conversations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.settings import Appearance
from app.theme.palette import Theme
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript.layout.stack import KEPT_CONVERSATIONS
from app.widgets.transcript.rows.row import RowAction
from engine.types import Channel, Role
from tests.fakes.transcript_samples import answer, conversation, question
from tests.fakes.transcript_stage import WIDTH, TranscriptStage

ITEMS = tuple(conversation(4))
OTHERS = tuple(replace(item, key=f"other {item.key}") for item in conversation(1))
STREAMING = TranscriptItem(key="s", role=Role.ASSISTANT, text="", status=ItemStatus.STREAMING)


def show(stage: TranscriptStage, items: tuple[TranscriptItem, ...], name: str) -> None:
    stage.view.show_conversation(items, name=name)


def leave(stage: TranscriptStage, items: tuple[TranscriptItem, ...] = ITEMS) -> None:
    """Show a conversation until its layout is complete, then show another one."""
    show(stage, items, "left")
    stage.settle()
    show(stage, OTHERS, "other")
    stage.settle()


def test_recent_conversation_is_shown_without_measuring_again(transcript: TranscriptStage) -> None:
    show(transcript, ITEMS, "left")
    assert transcript.view.statistics().num_settled < len(ITEMS)
    leave(transcript)
    show(transcript, ITEMS, "left")
    assert transcript.view.statistics().num_settled == len(ITEMS)


def test_layout_is_dropped_after_showing_many_other_conversations(
    transcript: TranscriptStage,
) -> None:
    leave(transcript)
    for number in range(KEPT_CONVERSATIONS):
        show(transcript, OTHERS, f"other {number}")
    show(transcript, ITEMS, "left")
    assert transcript.view.statistics().num_settled < len(ITEMS)


def test_unfolded_reasoning_stays_unfolded_after_switching_back(
    transcript: TranscriptStage,
) -> None:
    thoughtful = (question(0), replace(answer(0, "Yes."), reasoning="I thought about it."))
    show(transcript, thoughtful, "left")
    transcript.settle()
    folded = transcript.picture()
    transcript.click(RowAction.TOGGLE_THINKING)
    leave(transcript, thoughtful)
    show(transcript, thoughtful, "left")
    transcript.settle()
    assert transcript.picture() != folded


def narrower(stage: TranscriptStage, _theme: Theme) -> None:
    stage.view.resize(WIDTH - 300, stage.view.height())


def larger_text(stage: TranscriptStage, _theme: Theme) -> None:
    stage.view.set_zoom(1.5)


def dark(_stage: TranscriptStage, theme: Theme) -> None:
    theme.set_appearance(Appearance.DARK)


@pytest.mark.parametrize("change", [narrower, larger_text, dark])
def test_kept_conversation_adapts_to_a_new_width_zoom_or_theme(
    transcript: TranscriptStage, theme: Theme, change: Callable[[TranscriptStage, Theme], None]
) -> None:
    leave(transcript)
    change(transcript, theme)
    show(transcript, ITEMS, "left")
    transcript.settle()
    kept = transcript.picture()
    transcript.show(ITEMS)
    assert transcript.picture() == kept


def test_kept_conversation_shows_text_written_while_hidden(transcript: TranscriptStage) -> None:
    """The rest of the answer arrives while another chat is shown."""
    begun = (*ITEMS, question(9), STREAMING)
    show(transcript, begun, "left")
    transcript.view.begin_answer(STREAMING)
    transcript.view.append_delta("s", Channel.ANSWER, "Once")
    leave_now = replace(STREAMING, text="Once upon a time")
    show(transcript, OTHERS, "other")
    show(transcript, (*begun[:-1], leave_now), "left")
    assert transcript.view.text_of("s") == "Once upon a time"
    transcript.view.append_delta("s", Channel.ANSWER, " there was")
    transcript.view.flush()
    assert transcript.view.text_of("s") == "Once upon a time there was"


def test_kept_conversation_shows_an_item_changed_while_hidden(transcript: TranscriptStage) -> None:
    leave(transcript)
    changed = (*ITEMS[:-1], replace(ITEMS[-1], text="Something else."))
    show(transcript, changed, "left")
    transcript.settle()
    kept = transcript.picture()
    transcript.show(changed)
    assert transcript.picture() == kept
