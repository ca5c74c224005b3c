"""The Models window: recommendations, search, models on this computer, downloads. Main thread."""

from __future__ import annotations

from datetime import date
from enum import Enum, auto
from pathlib import Path

from PySide6.QtCore import QSize, Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.controllers.core import Core
from app.theme.tokens import Size, Space
from app.viewmodels.download_offers import download_offers
from app.viewmodels.model_offers import found_offers, local_offers, suggestion_offers
from app.viewmodels.offer import COPY_BITS, ModelsState, OfferAction
from app.widgets.button import Button
from app.widgets.fields import LineField
from app.widgets.model_defaults import ModelDefaultsSheet
from app.widgets.model_removal import ModelRemoval
from app.widgets.offer_list import OfferList
from app.widgets.own_windows import OwnWindow
from app.widgets.segments import Segments
from app.widgets.window_size import keep_on_screen, within_screen
from app.words import hub as words


class ModelsTab(Enum):
    """The pages of the window."""

    RECOMMENDED = auto()
    SEARCH = auto()
    LOCAL = auto()
    DOWNLOADS = auto()


class ModelsWindow(OwnWindow):
    """The window of models. It is not modal. It is created once, and closing only hides it."""

    def __init__(self, core: Core, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("models")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle(words.TITLE)
        self._core = core
        self._zoom = 0.0  # factor of the text for which the window was sized
        self.tabs = Segments(
            words.TITLE,
            {
                ModelsTab.RECOMMENDED: words.RECOMMENDED,
                ModelsTab.SEARCH: words.SEARCH,
                ModelsTab.LOCAL: words.LOCAL,
                ModelsTab.DOWNLOADS: words.DOWNLOADS,
            },
            self,
            are_tabs=True,
        )
        self.field = LineField(self)
        self.search_button = Button(words.SEARCH, self)
        self.pages = QStackedWidget(self)
        self.recommended = OfferList("", self._act, self)
        self.found = OfferList("", self._act, self)
        self.local = OfferList(words.LOCAL_NOTE, self._act, self)
        self.downloads = OfferList("", self._act, self)
        self._removal = ModelRemoval(core, self)
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
        hub, state = self._core.hub, self._state
        self.recommended.note.setText(words.recommended_note(hub.host))
        self.found.note.setText(words.search_note(hub.host))
        self.recommended.show_offers(suggestion_offers(hub.suggestions, state))
        found = found_offers(hub.found or (), hub.details.all, hub.details.fits, state)
        self.found.show_offers(found, self._search_state())
        local = local_offers(hub.installed, self._core.copies.all, state)
        self.local.show_offers(local, words.NO_LOCAL)
        self.downloads.show_offers(download_offers(state), words.NO_DOWNLOADS)
        self.downloads.note.setVisible(False)
        self.search_button.setEnabled(not hub.is_searching)

    @property
    def _state(self) -> ModelsState:
        core = self._core
        return ModelsState(
            status=core.models.status,
            is_answering=bool(core.turns.live),
            today=date.today(),  # noqa: DTZ011 (the day on this computer's calendar)
            now=core.hub.now,
            downloads=core.hub.downloads,
            cards=core.hub.cards,
            imports=core.opening.imports,
        )

    def _search_state(self) -> str:
        hub = self._core.hub
        if hub.is_searching:
            return words.SEARCHING
        if hub.problem is not None:
            return words.in_one(hub.problem.cause, hub.problem.advice)
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
            self._core.opening.note_changed,
            self._core.turns.activity_changed,
            models.cards_changed,
            models.status_changed,
        ):
            changed.connect(self._refresh_if_visible)
        models.cards_changed.connect(self._look_if_visible)
        self.found.rested.connect(self._ask_for_seen)
        self._core.preferences.changed.connect(self._fit_text)
        self._fit_text()

    def _fit_text(self) -> None:
        """Make the window large enough for its tabs at the present size of the text."""
        zoom = max(1.0, self._core.preferences.value.text_zoom / 100)
        if zoom == self._zoom:
            return
        self._zoom = zoom
        least = QSize(round(Size.SETTINGS_WIDTH * zoom), Size.SETTINGS_HEIGHT)
        self.setMinimumSize(within_screen(self, least))
        self.resize(within_screen(self, QSize(Size.MODELS_WIDTH, Size.MODELS_HEIGHT) * zoom))
        keep_on_screen(self)

    def _look_if_visible(self) -> None:
        if self.isVisible():
            self._core.hub.look_for_installed()

    def _refresh_if_visible(self, *_: object) -> None:
        if self.isVisible():
            self.refresh()

    def _ask_for_seen(self, repo_ids: list[str]) -> None:
        """Ask for the size and fit of the found models on show that are not on this computer."""
        hub = self._core.hub
        hub.details.want([one for one in repo_ids if one not in hub.cards])

    def _search(self) -> None:
        self._core.hub.search(self.field.text())

    def _act(self, action: OfferAction, key: str, path: str) -> None:
        hub = self._core.hub
        match action:
            case OfferAction.SHOW | OfferAction.ASK_AGAIN:
                hub.details.ask(key)
            case OfferAction.DOWNLOAD:
                hub.download(key)
            case OfferAction.CHOOSE_FILE:
                hub.download(key, chosen=path)
            case OfferAction.PAUSE:
                hub.pause(key)
            case OfferAction.RESUME | OfferAction.TRY_NOW:
                hub.resume(key)
            case OfferAction.CANCEL:
                hub.cancel(key)
            case _:
                self._act_on_card(action, key)

    def _act_on_card(self, action: OfferAction, key: str) -> None:
        """Act on a model on the disk. Its key is its path, or its repository."""
        if action is OfferAction.USE:
            self._use(key)
            return
        if action is OfferAction.UNLOAD:
            self._core.models.unload()
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
            self._removal.begin(model)

    def _use(self, key: str) -> None:
        """Load a model. The key is its path, its repository, or that of its download."""
        core = self._core
        cards = {str(card.path): card for card in core.models.cards if card.usable}
        card = core.hub.cards.get(key) or cards.get(key)
        if card is not None:
            core.models.choose(card.path)
            return
        files = {one.key: Path(one.folder, one.chosen) for one in core.hub.downloads}
        core.opening.open((files.get(key, Path(key)),))
