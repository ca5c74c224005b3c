"""Generated pictures in the composer and in messages, for pictures of the window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.conversation.attachments import Attachment
from app.widgets.picture_window import PictureWindow
from app.widgets.transcript.rows.row import RowAction
from engine.events import ModelLoaded
from tests.fakes.stage import Stage
from tests.fakes.stored_pictures import stored_picture
from tests.screenshots.organising import SHORT_MS

Fill = Callable[[Stage], None]
_SHAPES = ((2400, 1600), (900, 1600), (1600, 900), (1200, 1200))
_NAMES = ("hills.png", "The old tower at the harbour, seen from the ferry.png", "lake.png")


def _pictures(stage: Stage, number: int) -> list[Attachment]:
    return [
        stored_picture(
            stage.core.pictures,
            _NAMES[place] if place < len(_NAMES) else f"picture {place + 1}.png",
            width=_SHAPES[place % len(_SHAPES)][0],
            height=_SHAPES[place % len(_SHAPES)][1],
            hue=30 * place,
        )
        for place in range(number)
    ]


def _see(stage: Stage) -> None:
    """Let the loaded model see pictures, and measure how fast it reads."""
    stage.engine.facts = replace(stage.engine.facts, sees=True)
    stage.engine.on_event(ModelLoaded(stage.engine.facts))
    stage.core.reading_rate._pace.note(0, 2_000, 8.0, 0.0)  # pyright: ignore[reportPrivateUsage]
    stage.core.reading_rate.changed.emit()
    stage.settle()


def _attach(stage: Stage, number: int) -> None:
    stage.core.draft_files.set(stage.current, tuple(_pictures(stage, number)))
    stage.settle()
    stage.wait_until(lambda: stage.pane.view.shelves.pictures.is_idle)


def _arrived(stage: Stage) -> None:
    stage.wait(SHORT_MS)
    stage.wait_until(lambda: stage.pane.view.shelves.pictures.is_idle)


def in_composer(fill: Fill, number: int, stage: Stage) -> None:
    """Show pictures that are not sent yet."""
    fill(stage)
    _see(stage)
    _attach(stage, number)
    stage.type("What do these have in common?" if number > 1 else "Where is this?")
    _arrived(stage)


def sizes(fill: Fill, stage: Stage) -> None:
    """Show the menu with the sizes of a picture."""
    in_composer(fill, 1, stage)
    QTest.mouseClick(stage.composer.files.chips[0].size_button, Qt.MouseButton.LeftButton)
    stage.wait(SHORT_MS)


def in_message(fill: Fill, number: int, stage: Stage) -> None:
    """Show a sent message with pictures, and its answer."""
    fill(stage)
    _see(stage)
    _attach(stage, number)
    stage.chat(
        "What do these have in common?" if number > 1 else "Where is this?",
        "Rolling hills below a low sun. The light comes from the right, so it is late afternoon.",
    )
    _arrived(stage)


def missing(fill: Fill, stage: Stage) -> None:
    """Show a message with a picture whose file is gone, beside one that is there."""
    fill(stage)
    _see(stage)
    first, second = _pictures(stage, 2)
    assert first.picture is not None
    stage.core.pictures.thumbnail(first.picture).unlink()
    stage.core.draft_files.set(stage.current, (first, second))
    stage.settle()
    stage.chat("Which is larger?", "The second one.")
    _arrived(stage)


def editing(fill: Fill, number: int, stage: Stage) -> None:
    """Show the editor of a message with pictures."""
    in_message(fill, number, stage)
    stage.click(RowAction.EDIT)
    _arrived(stage)


def unseen(fill: Fill, stage: Stage) -> None:
    """Show the line that the model in use can't see the picture of the draft."""
    fill(stage)
    _attach(stage, 1)
    stage.type("Where is this?")
    _arrived(stage)


def window(fill: Fill, stage: Stage) -> None:
    in_message(fill, 1, stage)
    stage.click(RowAction.OPEN_PICTURE)
    opened = stage.window.findChild(PictureWindow)
    assert opened is not None
    stage.wait_until(lambda: opened.canvas.image is not None)
