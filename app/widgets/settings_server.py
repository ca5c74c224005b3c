"""The settings page about the local server for other programs."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget
from typing_extensions import override

from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from app.controllers.server import ServerController
from app.server.live_requests import MAX_ENDED
from app.settings import Settings
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.viewmodels.server_clients import client_settings
from app.widgets.button import Button
from app.widgets.check_box import CheckBox
from app.widgets.copy_button import CopyButton
from app.widgets.fields import LineField
from app.widgets.line_height import Sentences
from app.widgets.menu import Menu
from app.widgets.number_field import NumberField
from app.widgets.server_requests import RequestList
from app.widgets.settings_page import SettingsPage
from app.words import server_page as words

_LOWEST_PORT, _HIGHEST_PORT = 1024, 65535
_HIDDEN = "•" * 12


class ServerPage(SettingsPage):
    """The Server page: a switch, the address and the key to copy, settings for programs, requests.

    The requests are live while the page is shown.
    """

    def __init__(
        self,
        theme: Theme,
        server: ServerController,
        models: ModelsController,
        preferences: Preferences,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._server = server
        self._models = models
        self._preferences = preferences
        self.switch = CheckBox(theme, words.SWITCH, self)
        self.address = _CopiedText(words.ADDRESS, self)
        self.key = _CopiedText(words.KEY, self)
        self.needs_key = CheckBox(theme, words.NEEDS_KEY, self)
        self.chooses = CheckBox(theme, words.CHOOSES, self)
        self.new_key = Button(words.NEW_KEY, self)
        self.port = NumberField(
            words.PORT, lowest=_LOWEST_PORT, highest=_HIGHEST_PORT, decimals=0, parent=self
        )
        self.port.is_count = False
        self.origins = LineField(self)
        self.program = Button("", self)
        self.programs = Menu(self.program)
        self._chosen = 0  # the program in the menu whose settings are shown
        self.program_text = _CopiedText(words.SETTINGS_FOR, self)
        self.requests = RequestList(theme, self)
        self._build()
        self._connect()
        self._refresh()

    def _build(self) -> None:
        self.new_key.setToolTip(words.NEW_KEY_NOTE)
        self.origins.setPlaceholderText(words.ORIGINS_HINT)
        self.origins.setAccessibleName(words.ORIGINS)
        self.origins.set_width(Size.SIDEBAR)
        self.program.setMenu(self.programs)
        for index, settings in enumerate(client_settings("", "", None)):
            action = self.programs.addAction(settings.program)
            action.setCheckable(True)
            action.triggered.connect(partial(self._on_program, index))
        self.add_row(words.TAB, self.switch)
        self.add_note(words.PURPOSE)
        self.add_row(words.ADDRESS, self.address, fills=True)
        self.add_row(words.KEY, self.key, fills=True)
        self.add_row("", self.new_key)
        self.add_row("", self.needs_key)
        self._access = self.add_note()
        self.add_row("", self.chooses)
        self.add_note(words.CHOOSES_NOTE)
        self.add_row(words.PORT, self.port)
        self.add_row(words.ORIGINS, self.origins)
        self.add_note(words.ORIGINS_NOTE)
        self.add_row(words.SETTINGS_FOR, self.program)
        self.add_row("", self.program_text, fills=True)
        self._place = self.add_note()
        self.add_row(words.REQUESTS, self.requests, fills=True)
        self.add_note(words.kept_requests(MAX_ENDED))
        self.end()
        self.controls = [
            self.switch,
            self.address.button,
            self.key.button,
            self.new_key,
            self.needs_key,
            self.chooses,
            self.port,
            self.origins,
            self.program,
            self.program_text.button,
        ]
        self.order()

    def _connect(self) -> None:
        change = self._preferences.change
        self.switch.clicked.connect(self._server.toggle)
        self.needs_key.clicked.connect(self._on_needs_key)
        self.chooses.clicked.connect(self._on_chooses)
        self.new_key.clicked.connect(self._server.renew_key)
        self.port.changed.connect(self._on_port)
        self.origins.editingFinished.connect(
            lambda: change(server_origins=tuple(self.origins.text().replace(",", " ").split()))
        )
        self.requests.texts_wanted.connect(self._server.show_texts)
        self.requests.stopped.connect(self._server.stop_answer)
        self.requests.reordered.connect(
            lambda: self.requests.set_tab_order(self.program_text.button)
        )
        self._server.requests_changed.connect(self._show_requests)
        for changed in (
            self._server.changed,
            self._preferences.changed,
            self._models.status_changed,
        ):
            changed.connect(self._refresh)

    def _on_needs_key(self, needs_key: bool) -> None:  # noqa: FBT001 (a signal)
        self._preferences.change(server_needs_key=needs_key)

    def _on_chooses(self, chooses: bool) -> None:  # noqa: FBT001 (a signal)
        self._preferences.change(server_chooses_models=chooses)

    def _on_port(self, port: float | None) -> None:
        chosen = Settings().server_port if port is None else int(port)
        self._preferences.change(server_port=chosen)

    def _on_program(self, index: int, *_checked: object) -> None:
        self._chosen = index
        self._refresh()

    def _show_requests(self) -> None:
        self.requests.show_requests(self._server.requests)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._server.watch(shown=True)

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._server.watch(shown=False)

    def _refresh(self) -> None:
        value, state = self._preferences.value, self._server.state
        self.switch.setChecked(value.server_on)
        self.needs_key.setChecked(value.server_needs_key)
        self.chooses.setChecked(value.server_chooses_models)
        default = Settings().server_port
        self.port.show_value(None if value.server_port == default else value.server_port, default)
        if not self.origins.hasFocus():
            self.origins.setText(" ".join(value.server_origins))
        problem = "" if state.problem is None else str(state.problem)
        idle = words.STARTING if value.server_on else words.OFF
        self.address.show_text(f"{state.url}/v1" if state.url else "", problem or idle)
        self.key.show_text(state.key, hidden=_HIDDEN)
        self.key.setEnabled(bool(state.key))
        self.new_key.setEnabled(bool(state.key))
        self._access.setText(words.ACCESS if value.server_needs_key else words.WITHOUT_KEY)
        self._show_program()

    def _show_program(self) -> None:
        state, facts = self._server.state, self._models.status.facts
        chosen = client_settings(state.url, state.key, facts)[self._chosen]
        for index, action in enumerate(self.programs.actions()):
            action.setChecked(index == self._chosen)
        self.program.setText(chosen.program)
        self.program.setAccessibleName(words.settings_for(chosen.program))
        text = chosen.text if state.url and facts is not None else ""
        hidden = text.replace(state.key, _HIDDEN) if state.key else text
        self.program_text.show_text(text, words.WHEN_ON, hidden=hidden)
        self._place.setText(words.belongs_to(chosen.place))


class _CopiedText(QWidget):
    """A text in the font of code, with a button that copies it. Without one, a sentence."""

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.label = Sentences(self)
        self.label.setProperty("kind", "row")
        self.code = QLabel(self)
        self.code.setProperty("type", "code")
        self.code.setTextFormat(Qt.TextFormat.PlainText)
        self.code.setWordWrap(True)
        self.code.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.button = CopyButton(name, self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(Space.S)
        layout.addWidget(self.label, 1)
        layout.addWidget(self.code, 1)
        side = QVBoxLayout()
        side.addWidget(self.button)
        side.addStretch()
        layout.addLayout(side)

    def show_text(self, text: str, otherwise: str = "", *, hidden: str = "") -> None:
        """Show a text that can be copied.

        Args:
            text: the text.
            otherwise: the text to show if there is nothing to copy.
            hidden: characters to show in place of the text.
        """
        self.code.setText(hidden or text)
        self.code.setVisible(bool(text))
        self.label.setText(otherwise)
        self.label.setVisible(not text)
        self.button.copied_text = text
        self.button.setEnabled(bool(text))
