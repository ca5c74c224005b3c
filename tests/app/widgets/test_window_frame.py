from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.widgets.window_frame import frame_text, restore_frame


def window(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    made.resize(500, 400)
    return made


def test_saved_window_frame_is_restored(qtbot: QtBot) -> None:
    first = window(qtbot)
    first.setGeometry(30, 40, 320, 240)
    second = window(qtbot)
    restore_frame(second, frame_text(first))
    assert second.size() == first.size()
    assert second.pos() == first.pos()


@pytest.mark.parametrize("text", ["", "not base64!", "bm90IGEgZnJhbWU="])
def test_invalid_frame_text_changes_nothing(qtbot: QtBot, text: str) -> None:
    made = window(qtbot)
    restore_frame(made, text)
    assert (made.width(), made.height()) == (500, 400)
