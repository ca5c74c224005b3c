"""The Models window: recommended models, search, models on this computer, downloads. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QMessageBox,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.controllers.core import Core
from app.theme.tokens import Size, Space
from app.viewmodels import figures
from app.viewmodels.model_offers import (
    COPY_BITS,
    Offer,
    OfferAction,
    download_offers,
    found_offers,
    local_offers,
    suggestion_offers,
)
from app.viewmodels.models import ModelPhase
from app.widgets.button import Button
from app.widgets.fields import LineField
from app.widgets.hiding_bar import HidingBar
from app.widgets.line_height import Sentences
from app.widgets.model_defaults import ModelDefaultsSheet
from app.widgets.offer_row import OfferRow
from app.widgets.segments import Segments
from app.words import hub as words
from engine.catalog.removal import RemovalPlan


class ModelsTab(Enum):
    """The pages of the window."""

    RECOMMENDED = auto()
    SEARCH = auto()
    LOCAL = auto()
    DOWNLOADS = auto()


class OfferList(QWidget):
    """A note above rows that scroll. If there are no rows, a sentence takes their place."""

    def __init__(
        self, note: str, act: Callable[[OfferAction, str, str], None], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._act = act
        self.rows: list[OfferRow] = []
        self.note = Sentences(self, "small", note)
        self.note.setProperty("tone", "secondary")
        self.empty = Sentences(self)
        self.empty.setProperty("tone", "secondary")
        self.empty.hide()
        content = QWidget(self)
        content.setObjectName("offers")
        self._rows = QVBoxLayout(content)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(Space.S)
        self._rows.addStretch()
        scroller = QScrollArea(self)
        scroller.setVerticalScrollBar(HidingBar(scroller))
        scroller.setWidgetResizable(True)
        scroller.setFrameShape(QFrame.Shape.NoFrame)
        scroller.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroller.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroller.setWidget(content)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(Space.M)
        layout.addWidget(self.note)
        layout.addWidget(self.empty)
        layout.addWidget(scroller, 1)

    def show_offers(self, offers: Sequence[Offer], empty: str = "") -> None:
        """Show a row for each offer. Rows are made and removed at the end only."""
        while len(self.rows) > len(offers):
            row = self.rows.pop()
            row.setParent(None)
            row.deleteLater()
        while len(self.rows) < len(offers):
            row = OfferRow(self)
            row.chosen.connect(self._act)
            self._rows.insertWidget(len(self.rows), row)
            self.rows.append(row)
        for row, offer in zip(self.rows, offers, strict=True):
            row.show_offer(offer)
        self.empty.setText(empty)
        self.empty.setVisible(bool(empty) and not offers)


class ModelsWindow(QWidget):
    """The window of models. It is not modal. It is created once, and closing only hides it."""

    def __init__(self, core: Core, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("models")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle(words.TITLE)
        self.setMinimumSize(Size.SETTINGS_WIDTH, Size.SETTINGS_HEIGHT)
        self.resize(Size.MODELS_WIDTH, Size.MODELS_HEIGHT)
        self._core = core
        self.tabs = Segments(
            words.TITLE,
            {
                ModelsTab.RECOMMENDED: words.RECOMMENDED,
                ModelsTab.SEARCH: words.SEARCH,
                ModelsTab.LOCAL: words.LOCAL,
                ModelsTab.DOWNLOADS: words.DOWNLOADS,
            },
            self,
        )
        self.field = LineField(self)
        self.search_button = Button(words.SEARCH, self)
        self.pages = QStackedWidget(self)
        self.recommended = OfferList("", self._act, self)
        self.found = OfferList("", self._act, self)
        self.local = OfferList(words.LOCAL_NOTE, self._act, self)
        self.downloads = OfferList("", self._act, self)
        self._build()
        self._connect()
        self.refresh()

    def open(self, tab: ModelsTab | None = None) -> None:
        """Show the window, on a page of it, and bring it to the front."""
        if tab is not None:
            self.show_tab(tab)
        self.refresh()
        self._core.hub.look_for_installed()
        self.show()
        self.raise_()
        self.activateWindow()

    def show_tab(self, tab: ModelsTab) -> None:
        self.tabs.show_value(tab)
        self.pages.setCurrentIndex(list(ModelsTab).index(tab))
        if tab is ModelsTab.SEARCH:
            self.field.setFocus()

    def refresh(self) -> None:
        """Show the state of models, search and downloads."""
        hub, models = self._core.hub, self._core.models
        is_ready = models.status.phase is ModelPhase.READY
        loaded = models.status.path if is_ready else ""
        cards, downloads = hub.cards, hub.downloads
        self.recommended.note.setText(words.recommended_note(hub.host))
        self.found.note.setText(words.search_note(hub.host))
        self.recommended.show_offers(suggestion_offers(hub.suggestions, downloads, cards, loaded))
        found = found_offers(hub.found or (), hub.details, hub.fits, downloads, cards, loaded)
        self.found.show_offers(found, self._search_state())
        self.local.show_offers(
            local_offers(hub.installed, loaded, self._core.copies.all), words.NO_LOCAL
        )
        self.downloads.show_offers(download_offers(downloads, cards, loaded), words.NO_DOWNLOADS)
        self.downloads.note.setVisible(False)
        self.search_button.setEnabled(not hub.is_searching)

    def _search_state(self) -> str:
        hub = self._core.hub
        if hub.is_searching:
            return words.SEARCHING
        if hub.problem is not None:
            return words.spaced(hub.problem.title, hub.problem.cause, hub.problem.advice)
        return "" if hub.found is None else words.NOTHING_FOUND

    def _build(self) -> None:
        self.field.setPlaceholderText(words.SEARCH_FIELD)
        self.field.setAccessibleName(words.SEARCH_FIELD)
        self.field.setMaxLength(300)
        self.search_button.setProperty("kind", "primary")
        top = QHBoxLayout()
        top.addStretch()
        top.addWidget(self.tabs)
        top.addStretch()
        line = QHBoxLayout()
        line.setSpacing(Space.S)
        line.addWidget(self.field, 1)
        line.addWidget(self.search_button)
        search = QWidget(self)
        column = QVBoxLayout(search)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(Space.M)
        column.addLayout(line)
        column.addWidget(self.found, 1)
        for page in (self.recommended, search, self.local, self.downloads):
            self.pages.addWidget(page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
        layout.setSpacing(Space.L)
        layout.addLayout(top)
        layout.addWidget(self.pages, 1)
        self.show_tab(ModelsTab.RECOMMENDED)

    def _connect(self) -> None:
        hub, models = self._core.hub, self._core.models
        self.tabs.chosen.connect(self.show_tab)
        self.field.returnPressed.connect(self._search)
        self.search_button.clicked.connect(self._search)
        for changed in (
            hub.found_changed,
            hub.downloads_changed,
            hub.installed_changed,
            self._core.copies.changed,
            models.cards_changed,
            models.status_changed,
        ):
            changed.connect(self._refresh_if_visible)
        models.cards_changed.connect(self._look_if_visible)

    def _look_if_visible(self) -> None:
        if self.isVisible():
            self._core.hub.look_for_installed()

    def _refresh_if_visible(self) -> None:
        if self.isVisible():
            self.refresh()

    def _search(self) -> None:
        self._core.hub.search(self.field.text())

    def _act(self, action: OfferAction, key: str, path: str) -> None:
        hub = self._core.hub
        match action:
            case OfferAction.SHOW:
                hub.ask(key)
            case OfferAction.DOWNLOAD:
                hub.download(key)
            case OfferAction.CHOOSE_FILE:
                hub.download(key, chosen=path)
            case OfferAction.PAUSE:
                hub.pause(key)
            case OfferAction.RESUME:
                hub.resume(key)
            case OfferAction.CANCEL:
                hub.cancel(key)
            case _:
                self._act_on_card(action, key)

    def _act_on_card(self, action: OfferAction, key: str) -> None:
        """Act on a model on the disk. Its key is its path, or its repository."""
        if action is OfferAction.USE:
            card = self._core.hub.cards.get(key)
            self._core.opening.open((Path(key) if card is None else card.path,))
            return
        model = next((one for one in self._core.hub.installed if str(one.path) == key), None)
        if model is None:
            return
        if action in COPY_BITS and model.card is not None:
            self._core.copies.make(model.card, COPY_BITS[action])
        elif action is OfferAction.CANCEL_COPY:
            self._core.copies.cancel(key)
        elif action is OfferAction.DEFAULTS and model.card is not None:
            ModelDefaultsSheet(self._core, model.card, self).open()
        elif action is OfferAction.REVEAL:
            folder = model.path if model.path.is_dir() else model.path.parent
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
        else:
            self._core.hub.plan_removal(model, self._ask_to_remove)

    def _ask_to_remove(self, plan: RemovalPlan) -> None:
        box = QMessageBox(self)
        box.setWindowTitle(words.TITLE)
        box.setText(words.ask_to_remove(plan.model.name, figures.file_size(plan.freed_bytes)))
        note = words.TO_TRASH if plan.uses_trash else words.AT_ONCE
        box.setInformativeText(words.spaced(note, str(plan.paths[0])))
        remove = box.addButton(words.REMOVE_NOW, QMessageBox.ButtonRole.DestructiveRole)
        box.addButton(words.KEEP, QMessageBox.ButtonRole.RejectRole)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        remove.clicked.connect(lambda: self._core.hub.remove(plan))
        box.open()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)
