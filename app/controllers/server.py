"""The local server of the window's engine: started and ended as the settings say. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.engine_bridge import EngineBridge
from app.bridge.tasks import TaskLane
from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from app.controllers.turns import Turns
from app.server.access import Access, ServerAddress
from app.server.kept_replies import delete_replies
from app.server.key import kept_key, new_key
from app.server.live_requests import MAX_ENDED, SeenRequest, SeenRequests
from app.server.model_choice import Choice
from app.server.report import Report
from app.settings import Settings
from engine.problem import Problem

if TYPE_CHECKING:
    from app.server.running import RunningServer

LOOK_MS = 500  # time between two looks at the requests while a page shows them


@dataclass(frozen=True, slots=True)
class ServerState:
    """The server as the settings page shows it. It is off if it has neither URL nor problem."""

    url: str = ""
    key: str = ""  # "": no key is needed
    problem: Problem | None = None


_OFF = ServerState()
# The port, whether a key is needed, origins, whether replies are kept on disk, and whether programs
# choose the model
_Options = tuple[int, bool, tuple[str, ...], bool, bool]


class ServerController(QObject):
    """The server, if the user has switched it on, and the requests to it."""

    changed = Signal()
    activity_changed = Signal()  # num_open has changed
    requests_changed = Signal()
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self,
        bridge: EngineBridge,
        preferences: Preferences,
        models: ModelsController,
        turns: Turns,
        key_file: Path,
        replies_file: Path,
    ) -> None:
        """Create a server that is off.

        Args:
            bridge: the engine that answers.
            preferences: the settings.
            models: the models that programs can choose, and the one in use.
            turns: the answers of the window, which keep the model in use.
            key_file: where the API key is kept.
            replies_file: where replies are kept for the next start, if state is kept on disk.
        """
        super().__init__()
        self._bridge = bridge
        self._preferences = preferences
        self._models = models
        self._turns = turns
        self.key_file = key_file
        self.replies_file = replies_file
        self._lane = TaskLane("server")
        self._has_started = False
        preferences.changed.connect(self._follow)
        models.cards_changed.connect(self._offer_models)
        models.status_changed.connect(self._note_expected)
        self._is_expected = models.status.will_be_ready
        self._running: RunningServer | None = None  # used on the lane only
        self._options: _Options | None = None  # those of the newest start; None: off
        self.state = _OFF
        self.requests = SeenRequests()  # as they were at the last look
        self._before: tuple[SeenRequest, ...] = ()  # the last requests to servers that were stopped
        self._shown: int | None = None  # the request whose texts are on show
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._look_at_requests)
        self.num_open = 0  # answers to other programs that are written or wait

    def start(self) -> None:
        """Start the server if it is on, and follow the settings. Call after the engine's start."""
        self._has_started = True
        self._follow()

    def toggle(self) -> None:
        self._preferences.change(server_on=not self._preferences.value.server_on)

    def renew_key(self) -> None:
        """Replace the key. Programs with the old one get no answer any more."""
        if self._options is not None:
            self._begin(self._options, partial(new_key, self.key_file))

    def watch(self, *, shown: bool) -> None:
        """Look at the requests every LOOK_MS while a page shows them."""
        if shown:
            self._look_at_requests()
            self._look.start()
        else:
            self._look.stop()

    def show_texts(self, number: int | None) -> None:
        """Look at the texts of a request too, or of none."""
        self._shown = number
        self._look_at_requests()

    def stop_answer(self, number: int) -> None:
        """End the answer to a request. The client gets an error that names Rejoinder's settings."""

        def stop() -> None:
            if self._running is not None:
                self._running.stop_answer(number)

        self._lane.run(stop)
        self._look_at_requests()

    def clear_replies(self) -> None:
        """Delete the kept replies."""
        self._lane.run(self._clear_replies)

    def close(self) -> None:
        """Stop the server and its answers."""
        self._look.stop()
        self._lane.run(self._end)
        self._lane.stop()

    def _follow(self) -> None:
        """Start the server again if a setting has changed."""
        options = _options_of(self._preferences.value)
        if not self._has_started or options == self._options:
            return
        self._options = options
        if options is None:
            self._lane.run(self._end, lambda _none: self._take(_OFF), self.failed.emit)
        else:
            self._begin(options, partial(kept_key, self.key_file))

    def _begin(self, options: _Options, make_key: Callable[[], str]) -> None:
        cards, is_expected = self._models.cards, self._is_expected

        def begin() -> ServerState:
            # Imported late: the libraries of the server take a third of a second.
            from app.server.running import RunningServer  # noqa: PLC0415

            self._end()
            port, needs_key, origins, keeps, chooses = options
            key = make_key() if needs_key else ""
            access = Access(key=key, origins=frozenset(origins))
            self._running = RunningServer(
                self._bridge.engine,
                self._bridge.clients,
                ServerAddress(port=port, access=access),
                self,
                self.replies_file if keeps else None,
                Choice(self._pass_on_choice, cards) if chooses else None,
            )
            self._running.expect_model(is_expected=is_expected)
            return ServerState(self._running.url, key)

        self._lane.run(begin, self._take, lambda problem: self._take(ServerState(problem=problem)))

    def _offer_models(self) -> None:
        """Tell the server of the models of this computer."""
        cards = self._models.cards

        def offer() -> None:
            if self._running is not None:
                self._running.offer(cards)

        self._lane.run(offer)

    def _note_expected(self) -> None:
        """Let requests wait from the start of the app until a model is loaded, or none is found."""
        is_expected = self._models.status.will_be_ready
        if is_expected == self._is_expected:
            return
        self._is_expected = is_expected

        def note() -> None:
            if self._running is not None:
                self._running.expect_model(is_expected=is_expected)

        self._lane.run(note)

    def _pass_on_choice(self, path: Path, refuse: Callable[[], None]) -> None:
        """Load a model that a program has chosen. Runs on the thread of the server."""
        self._lane.deliver(partial(self._load_chosen, path, refuse))

    def _load_chosen(self, path: Path, refuse: Callable[[], None]) -> None:
        """Load a model, unless an answer of the window would be cut off or would wait for it."""
        if self._turns.answering or not self._models.load_for_program(path):
            refuse()

    def _end(self) -> None:
        """Stop the server, and keep the lines of its requests. Runs on the lane."""
        running, self._running = self._running, None
        if running is not None:
            self._lane.deliver(partial(self._keep_requests, running.stop()))

    def _keep_requests(self, ended: tuple[SeenRequest, ...]) -> None:
        self._before = (*ended, *self._before)[:MAX_ENDED]

    def _clear_replies(self) -> None:
        """Delete the kept replies. Runs on the lane."""
        if self._running is not None:
            self._running.clear_replies()
        if self._running is None or not self._running.has_replies_file:
            delete_replies(self.replies_file)

    def _take(self, state: ServerState) -> None:
        self.state = state
        self._shown = None  # the numbers of a new server begin again
        self._take_requests(SeenRequests())
        self.changed.emit()

    def _look_at_requests(self) -> None:
        if self.state.url:
            self._lane.run(partial(self._look_on_lane, self._shown))

    def _look_on_lane(self, shown: int | None) -> None:
        if self._running is not None:
            self._running.look(
                shown, lambda seen: self._lane.deliver(partial(self._take_requests, seen))
            )

    def _take_requests(self, seen: SeenRequests) -> None:
        num_ended = sum(not request.is_open for request in seen.requests)
        before = self._before[: max(0, MAX_ENDED - num_ended)]
        self.requests = replace(seen, requests=(*seen.requests, *before))
        self.requests_changed.emit()

    def report(self, report: Report) -> None:
        """Do nothing: a page looks at the requests while it is shown."""

    def note_open(self, num_open: int) -> None:
        """Pass the number of open answers to the main thread. Runs on the thread of the server."""
        self._lane.deliver(partial(self._set_open, num_open))

    def _set_open(self, num_open: int) -> None:
        self.num_open = num_open
        self.activity_changed.emit()


def _options_of(settings: Settings) -> _Options | None:
    if not settings.server_on:
        return None
    needs_key, keeps = settings.server_needs_key, settings.keep_on_disk
    chooses = settings.server_chooses_models
    return settings.server_port, needs_key, settings.server_origins, keeps, chooses
