"""Models to download: suggestions, search, details and the queue of downloads. Main thread.

Nothing connects to the network before one of the methods search, ask and download is called.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QFile, QObject, Qt, QTimer, Signal

from app.bridge.jobs import JobLane
from app.bridge.tasks import TaskLane
from app.controllers.catalog import Catalog
from app.controllers.hub_details import HubDetails
from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from app.conversation.text import file_label
from app.hub.access import host_of, remove_token, store_token
from app.hub.downloads import Downloads
from app.hub.process import (
    Call,
    HubCall,
    fetch,
    found_models,
    search,
)
from app.hub.values import (
    Download,
    DownloadState,
    FoundModel,
)
from app.viewmodels.models import repository_of
from app.words import hub as words
from engine.catalog.card import ModelCard
from engine.catalog.installed import InstalledModel
from engine.catalog.removal import RemovalPlan
from engine.errors import DiskError
from engine.problem import Problem

log = logging.getLogger(__name__)

_COUNT_MS = 1000  # interval between two updates of the time until a download is retried


class HubController(QObject):
    """The models of the Hub that the window shows, and the downloads."""

    found_changed = Signal()  # the result of a search, or details of a model
    downloads_changed = Signal()
    installed_changed = Signal()
    failed = Signal(object)  # argument: a Problem
    completed = Signal(object)  # argument: the Download
    trash_refused = Signal(object)  # argument: the RemovalPlan whose files the Trash cannot take
    _downloads_moved = Signal()  # emitted on any thread

    def __init__(
        self,
        lane: TaskLane,
        catalog: Catalog,
        models: ModelsController,
        preferences: Preferences,
        queue_file: Path,
    ) -> None:
        super().__init__()
        self._lane = lane
        self._catalog = catalog
        self._models = models
        self._preferences = preferences
        self._calls = JobLane("hub")  # waits for answers of the Hub
        self._call: HubCall | None = None  # the newest search, until it has ended
        self.suggestions = catalog.suggestions()
        self.found: tuple[FoundModel, ...] | None = None  # None until the first search has ended
        self.problem: Problem | None = None  # why the last search failed
        self.details = HubDetails(catalog, lambda: preferences.value.mirror, self)
        self.details.changed.connect(self.found_changed)
        self.installed: tuple[InstalledModel, ...] = ()  # all models on the disk
        self._done: set[str] = set()  # keys of complete downloads that were announced
        self._downloads_moved.connect(self._on_moved, Qt.ConnectionType.QueuedConnection)
        self._downloads = Downloads(queue_file, self._downloads_moved.emit, self._fetch)
        self._done.update(self._complete())
        # Counts down the time until a download is retried.
        self._countdown = QTimer(self, interval=_COUNT_MS)
        self._countdown.timeout.connect(self.downloads_changed)

    @property
    def is_searching(self) -> bool:
        return self._call is not None

    @property
    def now(self) -> float:
        """The time of the clock of Download.retry_at."""
        return time.monotonic()

    def judge_again(self) -> None:
        """Order the suggestions by the memory that counts now, and forget earlier verdicts."""
        self.suggestions = self._catalog.suggestions()
        self.details.forget()
        self.downloads_changed.emit()

    @property
    def downloads(self) -> tuple[Download, ...]:
        """All downloads, in the order in which they run."""
        return self._downloads.all

    @property
    def host(self) -> str:
        """The name of the host to which requests go."""
        return host_of(self._preferences.value.mirror)

    def store_token(self, token: str, on_stored: Callable[[None], None]) -> None:
        """Store the access token; an empty text removes it. Call `on_stored` when that is done."""
        call = partial(store_token, token) if token.strip() else remove_token
        self._lane.run(call, on_stored, self.failed.emit)

    def _fetch(self, download: Download) -> Call:
        """Return the call that fetches a download. Called on the thread of the queue."""
        return fetch(
            download.repo_id,
            revision=download.revision,
            chosen=download.chosen,
            endpoint=self._preferences.value.mirror,
        )

    def search(self, text: str) -> None:
        """Search models by words, or the one that an id or address names."""
        if not text.strip():
            return
        self._calls.stop_jobs()
        self._call = call = search(text, endpoint=self._preferences.value.mirror)
        self.details.begin_search()
        self.problem = None
        self.found_changed.emit()
        self._calls.start(
            lambda _job: found_models(call.run()),
            partial(self._on_answer, call),
            partial(self._on_answer, call),
            on_stop=call.cancel,
        )

    def download(self, repo_id: str, *, chosen: str = "") -> None:
        """Queue a download."""
        self._done.discard(self._downloads.add(repo_id, chosen=chosen))

    def pause(self, key: str) -> None:
        self._downloads.pause(key)

    def resume(self, key: str) -> None:
        self._downloads.resume(key)

    def cancel(self, key: str) -> None:
        """Remove a download from the list. Of an unfinished one, remove what has arrived."""
        self._downloads.cancel(key)

    @property
    def cards(self) -> dict[str, ModelCard]:
        """The usable models in the Hub's cache, by the id of their repository."""
        usable = (card for card in self._models.cards if card.usable)
        return {repository_of(card.path): card for card in usable if repository_of(card.path)}

    def look_for_installed(self) -> None:
        """List the models on the disk again, GGUF files too."""
        cards, folders = self._models.cards, self._models.folders
        self._lane.run(
            partial(self._catalog.installed, cards, folders), self._on_installed, self.failed.emit
        )

    def plan_removal(
        self, model: InstalledModel, on_planned: Callable[[RemovalPlan], None]
    ) -> None:
        """Plan the removal of a model, and call `on_planned` with what it would do."""
        call = partial(self._catalog.plan_removal, model, self.installed, self._models.folders)
        self._lane.run(call, on_planned, self.failed.emit)

    def remove(self, plan: RemovalPlan) -> None:
        """Move the files of a plan of `plan_removal` to the Trash."""
        call = partial(_trash, self._catalog, plan)
        self._lane.run(call, partial(self._on_removed, plan), self.failed.emit)

    def delete(self, plan: RemovalPlan) -> None:
        """Delete the files of a plan for good."""
        call = partial(self._catalog.delete, plan)
        self._lane.run(call, lambda _: self._on_removed(plan, is_removed=True), self.failed.emit)

    def _on_installed(self, installed: tuple[InstalledModel, ...]) -> None:
        self.installed = installed
        self.installed_changed.emit()

    def _on_removed(self, plan: RemovalPlan, is_removed: bool) -> None:  # noqa: FBT001 (a result)
        self._models.look_again()
        self.look_for_installed()
        if not is_removed:
            self.trash_refused.emit(plan)

    def close(self) -> None:
        """Stop the running download and all calls. The queue is kept for the next start."""
        self._countdown.stop()
        self._downloads.close()
        self._calls.stop()
        self.details.close()

    def _on_answer(self, call: HubCall, answer: tuple[FoundModel, ...] | Problem) -> None:
        if call is not self._call:  # another search has replaced it
            return
        self._call = None
        if isinstance(answer, Problem):
            self.problem, self.found = answer, ()
        else:
            self.problem, self.found = None, answer
        self.found_changed.emit()

    def _on_moved(self) -> None:
        fresh = self._complete() - self._done
        self._done |= fresh
        self.downloads_changed.emit()
        if not any(one.state is DownloadState.WAITING for one in self.downloads):
            self._countdown.stop()
        elif not self._countdown.isActive():
            self._countdown.start()
        if fresh:
            self._models.look_again()
        for download in self.downloads:
            if download.key in fresh:
                self.completed.emit(download)

    def _complete(self) -> set[str]:
        return {one.key for one in self._downloads.all if one.state is DownloadState.DONE}


class _TrashRefusedError(DiskError):
    """The system cannot move a file or a folder to the Trash."""


def _trash(catalog: Catalog, plan: RemovalPlan) -> bool:
    """Carry out a plan. Return False if the Trash refuses the files. Runs on the lane."""
    try:
        catalog.remove(plan, _move_to_trash)
    except _TrashRefusedError:
        # On Linux, Qt needs the folder .local/share. The engine's own function makes it.
        try:
            catalog.remove(plan)
        except DiskError as error:
            log.info("the Trash refuses %s: %s", plan.model.path, error)
            return False
    return True


def _move_to_trash(path: Path) -> None:
    """Move a file or a folder to the Trash with Qt, which can use that of another volume.

    Raises:
        _TrashRefusedError: the system refuses.
    """
    if not QFile(str(path)).moveToTrash():
        raise _TrashRefusedError(words.not_removed(file_label(path)))
