"""The menu that chooses the preset for new chats with a model. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu

from app.conversation.preset import Presets
from app.widgets.menu_text import plain


def fill_defaults(
    menu: QMenu, presets: Presets, model_path: str, none: str, choose: Callable[[str], object]
) -> None:
    """Add an entry labelled `none`, then one entry per preset, with the current choice checked.

    A click calls `choose` with the preset's name, or with an empty string for no preset.
    """
    for earlier in menu.findChildren(QActionGroup):
        earlier.deleteLater()
    group = QActionGroup(menu)
    chosen = presets.by_model.get(model_path, "")
    for name in ("", *presets.by_name):
        action = menu.addAction(plain(name) or none)
        action.setCheckable(True)
        action.setChecked(name == chosen)
        group.addAction(action)
        action.triggered.connect(partial(_choose, choose, name))


def _choose(choose: Callable[[str], object], name: str, *_checked: object) -> None:
    choose(name)
