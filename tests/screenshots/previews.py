"""Scenes of the message editor with a preview of the answer."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtTest import QTest

from app.widgets.message_edit import MessageEdit
from engine.errors import PreviewRefusedError
from engine.events import PreviewStage
from engine.questions import MakePreview, Preview
from tests.fakes.stage import Stage

_SEEN = (
    "A snapshot is taken at the start of each user message, because an edit diverges there and the"
    " state of a recurrent layer can’t be cut. Everything above the edited message is restored from"
)


def _edit(fill: Callable[[Stage], None], stage: Stage) -> None:
    """Change the last message of a chat, and let the preview be asked for."""
    stage.core.preferences.change(preview_edits=True)
    fill(stage)
    fields = stage.pane.view.findChildren(MessageEdit)
    QTest.keyClicks(next(one for one in fields if one.isVisible()), " Briefly, please.")
    stage.wait_until(lambda: bool(stage.engine.previewed))
    stage.settle()


def previewed(fill: Callable[[Stage], None], stage: Stage) -> None:
    _edit(fill, stage)
    stage.engine.finish_preview(_SEEN)
    stage.settle()


def previewed_thinking(fill: Callable[[Stage], None], stage: Stage) -> None:
    _edit(fill, stage)
    stage.engine.write_preview("", reasoning="The user wants a short answer. I should name")
    stage.settle()


def preview_waits(fill: Callable[[Stage], None], stage: Stage) -> None:
    _edit(fill, stage)
    stage.engine.wait_with_preview(PreviewStage.ANSWERS)
    stage.settle()


def preview_refused(fill: Callable[[Stage], None], stage: Stage) -> None:
    stage.engine.hold_counts = True  # the fake counts fewer tokens than the refusal names
    _edit(fill, stage)
    problem = PreviewRefusedError("12,400 tokens would have to be read.").problem
    stage.engine.answer(MakePreview, Preview(refusal=problem))
    stage.settle()
