"""The menu of the search's filters, and the line below the search field that names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QPoint
from PySide6.QtGui import QActionGroup, QFontMetrics, Qt
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.controllers.core import Core
from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type
from app.viewmodels.search_filters import NO_FILTERS, Filters, InArchive, Period
from app.widgets.button import Button
from app.widgets.icon_button import IconButton
from app.widgets.menu import Menu, pop_up
from app.widgets.menu_text import plain
from app.words import search as words


class SearchFilters(QWidget):
    """A line with the chosen filters, hidden while there are none, and the menu to choose them."""

    def __init__(self, theme: Theme, core: Core, button: IconButton, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._search = core.search
        self._folders = core.folders
        self._models = core.models
        self._desk = core.desk
        self._library = core.library
        self._button = button
        self.label = Button("", self)
        self.label.setProperty("kind", "row")
        self.label.setObjectName("archived")
        self.remove = IconButton(theme, Icon.CLOSE, words.REMOVE_FILTERS, self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(Space.S, 0, Space.S + Space.HAIR, Space.XS)
        layout.addWidget(self.label, 1)
        layout.addWidget(self.remove)
        button.clicked.connect(self.open_menu)
        self.label.clicked.connect(self.open_menu)
        self.remove.clicked.connect(lambda: self._search.set_filters(NO_FILTERS))
        self._search.changed.connect(self._refresh)
        self._folders.changed.connect(self._refresh)
        theme.zoomed.connect(self._refresh)
        self._refresh()

    def open_menu(self) -> None:
        """Open the menu below the button."""
        pop_up(self._menu(), self._button.mapToGlobal(QPoint(0, self._button.height())))

    def _menu(self) -> Menu:
        menu, filters = Menu(self), self._search.filters
        periods = ((one.value, replace(filters, period=one)) for one in Period)
        self._add(menu.add_menu(words.DATE), periods)
        models = {filters.model: filters.model_title, **self._model_titles()}
        models[""] = words.ANY_MODEL
        names = sorted(models, key=lambda name: (bool(name), models[name].casefold()))
        self._add(
            menu.add_menu(words.MODEL),
            (
                (
                    models[name],
                    replace(filters, model=name, model_title=models[name] if name else ""),
                )
                for name in names
            ),
        )
        if self._folders.folders:
            entries: list[tuple[str, Filters]] = [
                (words.ANY_FOLDER, replace(filters, folder_id=None))
            ]
            entries += [
                (one.name, replace(filters, folder_id=one.folder_id))
                for one in sorted(self._folders.folders, key=lambda one: one.name.casefold())
            ]
            self._add(menu.add_menu(words.FOLDER), entries)
        archives = ((one.value, replace(filters, archive=one)) for one in InArchive)
        self._add(menu.add_menu(words.ARCHIVE), archives)
        menu.addSeparator()
        remove = menu.addAction(words.REMOVE_FILTERS, self._setter(NO_FILTERS))
        remove.setEnabled(filters != NO_FILTERS)
        return menu

    def _model_titles(self) -> dict[str, str]:
        """Return the models on this computer and those of the chat on show: titles by names."""
        nodes = self._desk.get(self._library.current).nodes.values()
        made = (node.generation for node in nodes if node.generation is not None)
        shown = {generation.model_name: generation.model_title for generation in made}
        return shown | {card.name: card.title for card in self._models.cards if card.usable}

    def _add(self, menu: Menu, choices: Iterable[tuple[str, Filters]]) -> None:
        """Add an entry for each choice, with a tick at the present one."""
        group = QActionGroup(menu)
        for text, filters in choices:
            action = menu.addAction(plain(text), self._setter(filters))
            action.setCheckable(True)
            action.setChecked(filters == self._search.filters)
            group.addAction(action)

    def _setter(self, filters: Filters) -> Callable[[], object]:
        return partial(self._search.set_filters, filters)

    def _refresh(self) -> None:
        names = {one.folder_id: one.name for one in self._folders.folders}
        text = self._search.filters.text(names)
        metrics = QFontMetrics(self._theme.zoomed_font(Type.UI))
        room = max(Size.SIDEBAR_MIN, self.width()) - self.remove.width() - Space.HUGE
        self.label.setText(plain(metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)))
        self.label.setToolTip(text)
        self.remove.setAccessibleName(words.active(text))
        self.setVisible(bool(text))
