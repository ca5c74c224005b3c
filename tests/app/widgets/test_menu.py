"""Menus have rounded, transparent corners and tick marks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QImage
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QMenu, QWidget

from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)


def painted(menu: QMenu) -> QImage:
    """Return the picture of a menu on a red background."""
    picture = QImage(menu.sizeHint(), QImage.Format.Format_ARGB32)
    picture.fill(Qt.GlobalColor.red)
    menu.render(picture, QPoint(0, 0), renderFlags=QWidget.RenderFlag.DrawChildren)
    return picture


def context_menu(stage: Stage, widget: QWidget) -> QMenu:
    if isinstance(widget, QAbstractScrollArea):
        widget = widget.viewport()
    at = QPoint(40, 40) if widget.height() > 40 else widget.rect().center()
    QApplication.sendEvent(
        widget, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, widget.mapToGlobal(at))
    )
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    return menu


def menus(stage: Stage) -> Iterator[object]:
    """Open each kind of menu, one after the other."""
    yield stage.window.menuBar().actions()[3].menu()
    yield stage.composer.thinking.menu()
    yield context_menu(stage, stage.edit)
    yield context_menu(stage, stage.list)
    stage.window.toolbar.edit_title()
    yield context_menu(stage, stage.window.toolbar.title_field)


def test_menu_corners_are_transparent(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    for menu in menus(stage):
        assert isinstance(menu, QMenu)
        menu.ensurePolished()
        picture = painted(menu)
        right, bottom = picture.width() - 1, picture.height() - 1
        for corner in ((0, 0), (right, 0), (0, bottom), (right, bottom)):
            assert picture.pixelColor(*corner) == QColor("red"), menu
        assert picture.pixelColor(right // 2, 2) == QColor(stage.theme.colors.raised), menu
        assert menu.testAttribute(Qt.WidgetAttribute.WA_TranslucentBackground), menu
        menu.close()


def test_menu_tick_moves_to_the_chosen_entry(stage: Stage) -> None:
    menu = stage.composer.thinking.menu()
    before = painted(menu)
    menu.actions()[1].trigger()
    stage.settle()
    changed = painted(menu)
    rects = [menu.actionGeometry(action) for action in menu.actions()[:3]]
    same = [before.copy(rect) == changed.copy(rect) for rect in rects]
    assert same == [False, False, True]
