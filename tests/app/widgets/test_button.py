"""Focus rings of buttons, and the look of disabled ones."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QAbstractButton, QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import LIGHT, Size
from app.theme.window_style import make_window_style
from app.widgets.button import Button
from app.widgets.icon_button import IconButton

MIDDLE = Size.CONTROL // 2


@pytest.fixture
def window(qtbot: QtBot, theme: Theme) -> QWidget:
    window = QWidget()
    window.setStyleSheet(make_window_style(LIGHT, theme.fonts, 1.0))
    qtbot.addWidget(window)
    return window


def shown_button(qtbot: QtBot, window: QWidget, kind: str) -> Button:
    button, other = Button("Get Models…", window), Button("Other", window)
    button.setProperty("kind", kind)
    layout = QVBoxLayout(window)
    for part in (other, button):
        layout.addWidget(part)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is window)
    other.setFocus()
    return button


def row_of(image: QImage) -> list[QColor]:
    """Return the colours of the first pixels from the left edge, at half the height."""
    scale = image.devicePixelRatio()
    return [image.pixelColor(round(x * scale), round(MIDDLE * scale)) for x in range(6)]


@pytest.mark.parametrize("kind", ["", "primary"])
def test_focus_ring_does_not_change_the_size_of_a_button(
    qtbot: QtBot, window: QWidget, kind: str
) -> None:
    button = shown_button(qtbot, window, kind)
    before = button.size(), button.sizeHint()
    button.setFocus(Qt.FocusReason.TabFocusReason)
    assert button.hasFocus()
    assert (button.size(), button.sizeHint()) == before


def test_focus_ring_of_a_button_is_two_pixels_of_the_accent(qtbot: QtBot, window: QWidget) -> None:
    button = shown_button(qtbot, window, "")
    assert row_of(button.grab().toImage())[:2] == [QColor(LIGHT.border), QColor(LIGHT.raised)]
    button.setFocus(Qt.FocusReason.TabFocusReason)
    colors = row_of(button.grab().toImage())
    assert colors[:3] == [QColor(LIGHT.accent), QColor(LIGHT.accent), QColor(LIGHT.raised)]


def test_focus_ring_of_a_filled_button_is_inside_its_edge(qtbot: QtBot, window: QWidget) -> None:
    button = shown_button(qtbot, window, "primary")
    button.setFocus(Qt.FocusReason.TabFocusReason)
    colors = row_of(button.grab().toImage())
    accent, ring = QColor(LIGHT.accent), QColor(LIGHT.on_accent)
    assert colors == [accent, accent, ring, ring, accent, accent]


def test_disabled_button_has_a_quieter_border(qtbot: QtBot, window: QWidget) -> None:
    button = shown_button(qtbot, window, "")
    button.setEnabled(False)
    assert row_of(button.grab().toImage())[0] == QColor(LIGHT.strong_line)


class _PaintedAfter(QObject):
    """Tells whether a widget has been painted after an event of the given kind."""

    def __init__(self, widget: QWidget, kind: QEvent.Type) -> None:
        super().__init__(widget)
        self._kind = kind
        self._has_come = False
        self.is_true = False
        widget.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self._has_come |= event.type() is self._kind
        self.is_true |= self._has_come and event.type() is QEvent.Type.Paint
        return False


@pytest.mark.parametrize("is_icon", [False, True])
def test_button_is_painted_again_when_the_pointer_leaves_it_for_a_menu(
    qtbot: QtBot, window: QWidget, theme: Theme, *, is_icon: bool
) -> None:
    button: QAbstractButton = shown_button(qtbot, window, "plain")
    if is_icon:
        button = IconButton(theme, Icon.CLOSE, "Close", window)
        button.show()
    painted = _PaintedAfter(button, QEvent.Type.Paint)
    button.update()
    qtbot.waitUntil(lambda: painted.is_true)
    left = _PaintedAfter(button, QEvent.Type.Leave)
    # While a menu is open, Qt sends no HoverLeave, after which it would paint the button.
    QApplication.sendEvent(button, QEvent(QEvent.Type.Leave))
    qtbot.waitUntil(lambda: left.is_true)
