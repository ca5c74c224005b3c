"""Models to download: suggestions, search, details and the queue of downloads. Main thread.

Nothing connects to the network before one of the methods search, ask and download is called.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

from PySide6.QtCore import QFile, QObject, Qt, Signal

from app.bridge.tasks import TaskLane
from app.controllers.models import Catalog, ModelsController
from app.controllers.preferences import Preferences
from app.conversation.text import file_label
from app.hub.access import host_of, remove_token, store_token
from app.hub.downloads import Downloads
from app.hub.failures import HubError
from app.hub.process import (
    Call,
    CancelledError,
    HubCall,
    details,
    fetch,
    found_models,
    header,
    repo_details,
    search,
)
from app.hub.values import (
    Download,
    DownloadState,
    FoundModel,
    RepoDetails,
    RepoFile,
    typical_choice,
)
from app.viewmodels.models import repository_of
from app.words import hub as words
from engine.catalog.card import ModelCard
from engine.catalog.fit import Fit
from engine.catalog.installed import InstalledModel
from engine.catalog.removal import RemovalPlan
from engine.errors import DiskError, EngineError
from engine.types import Problem

log = logging.getLogger(__name__)


class HubController(QObject):
    """The models of the Hub that the window shows, and the downloads."""

    found_changed = Signal()  # the result of a search, or details of a model
    downloads_changed = Signal()
    installed_changed = Signal()
    failed = Signal(object)  # argument: a Problem
    completed = Signal(object)  # argument: the Download
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
        self._calls = TaskLane("hub", self)  # waits for answers of the Hub
        self._call: HubCall | None = None
        # All calls that may still run or wait, to be cancelled at the end.
        self._open_calls: WeakSet[HubCall] = WeakSet()
        self.suggestions = catalog.suggestions()
        self.is_searching = False
        self.found: tuple[FoundModel, ...] | None = None  # None until the first search has ended
        self.problem: Problem | None = None  # why the last search failed
        self.details: dict[str, RepoDetails | Problem | None] = {}  # None while the Hub is asked
        # The fit of each model of `details`, or the reason why it cannot run here. GGUF files have a
        # reason or nothing.
        self.fits: dict[str, Fit | Problem] = {}
        self.installed: tuple[InstalledModel, ...] = ()  # all models on the disk
        self._done: set[str] = set()  # keys of complete downloads that were announced
        self._downloads_moved.connect(self._on_moved, Qt.ConnectionType.QueuedConnection)
        self._downloads = Downloads(queue_file, self._downloads_moved.emit, self._fetch)
        self._done.update(self._complete())

    def judge_again(self) -> None:
        """Order the suggestions by the memory that counts now, and forget earlier verdicts."""
        self.suggestions = self._catalog.suggestions()
        self.details.clear()
        self.fits.clear()
        self.downloads_changed.emit()
        self.found_changed.emit()

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
        if self._call is not None:
            self._call.cancel()
        self._call = call = search(text, endpoint=self._preferences.value.mirror)
        self._open_calls.add(call)
        self.is_searching, self.problem = True, None
        self.found_changed.emit()
        self._calls.run(partial(_answer, call), partial(self._on_answer, call, self._on_found))

    def ask(self, repo_id: str) -> None:
        """Ask the Hub for the files and the configuration of a repository."""
        if isinstance(self.details.get(repo_id, False), RepoDetails):
            return
        self.details[repo_id] = None
        self.found_changed.emit()
        call = details(repo_id, endpoint=self._preferences.value.mirror)
        self._open_calls.add(call)
        self._calls.run(partial(_answer, call), partial(self._on_details, repo_id))

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
        """Carry out a plan of `plan_removal`."""
        call = partial(self._catalog.remove, plan, _move_to_trash)
        self._lane.run(call, self._on_removed, self.failed.emit)

    def _on_installed(self, installed: tuple[InstalledModel, ...]) -> None:
        self.installed = installed
        self.installed_changed.emit()

    def _on_removed(self, _: None) -> None:
        self._models.look_again()
        self.look_for_installed()

    def close(self) -> None:
        """Stop the running download and all calls. The queue is kept for the next start."""
        self._downloads.close()
        for call in self._open_calls:
            call.cancel()
        self._calls.stop()

    def _on_answer(self, call: HubCall, take: Callable[[Any], None], answer: Any) -> None:
        if call is self._call:
            self._call, self.is_searching = None, False
            take(answer)
            self.found_changed.emit()

    def _on_found(self, answer: Any) -> None:
        if isinstance(answer, Problem):
            self.problem, self.found = answer, ()
        elif answer is not None:
            self.problem, self.found = None, found_models(answer)

    def _on_details(self, repo_id: str, answer: Any) -> None:
        if answer is None:
            return
        if isinstance(answer, Problem):
            self.details[repo_id] = answer
        else:
            found = self.details[repo_id] = repo_details(answer)
            if found.config:
                self._lane.run(
                    partial(self._catalog.fit, found.config, found.weight_bytes),
                    partial(self._on_fit, repo_id),
                    partial(self._on_fit, repo_id),
                )
            elif found.architecture:
                self._lane.run(
                    partial(self._catalog.require_importable, found.architecture),
                    partial(self._ask_for_header, found),
                    partial(self._on_fit, repo_id),
                )
        self.found_changed.emit()

    def _ask_for_header(self, found: RepoDetails, _: None) -> None:
        """Measure the GGUF file that most people fetch by its header, which is a few megabytes."""
        choice = typical_choice(found.choices)
        if choice is not None:
            folder = tempfile.TemporaryDirectory()
            target = Path(folder.name, "header.gguf")
            call = header(found, choice.path, target, endpoint=self._preferences.value.mirror)
            self._open_calls.add(call)
            self._calls.run(
                partial(_gguf_fit, self._catalog, call, choice, folder),
                partial(self._on_header, found.found.repo_id),
            )

    def _on_header(self, repo_id: str, fit: Fit | None) -> None:
        if fit is not None:
            self._on_fit(repo_id, fit)

    def _on_fit(self, repo_id: str, fit: Fit | Problem) -> None:
        self.fits[repo_id] = fit
        self.found_changed.emit()

    def _on_moved(self) -> None:
        fresh = self._complete() - self._done
        self._done |= fresh
        self.downloads_changed.emit()
        if fresh:
            self._models.look_again()
        for download in self.downloads:
            if download.key in fresh:
                self.completed.emit(download)

    def _complete(self) -> set[str]:
        return {one.key for one in self._downloads.all if one.state is DownloadState.DONE}


def _answer(call: HubCall) -> Any:
    """Make a call. Return its answer, the Problem if it fails, and None if it was cancelled."""
    try:
        return call.run()
    except HubError as error:
        return error.problem
    except CancelledError:
        return None


def _gguf_fit(
    catalog: Catalog, call: HubCall, choice: RepoFile, folder: tempfile.TemporaryDirectory[str]
) -> Fit | None:
    """Return the fit of a GGUF file by its header, or None if that cannot be had. Runs on a lane.

    Args:
        catalog: measures the fit.
        call: stores the header as header.gguf in the folder.
        choice: the GGUF file.
        folder: is removed.
    """
    with folder as path:
        target = Path(path, "header.gguf")
        try:
            if not call.run():
                return None
            os.truncate(target, choice.size_bytes)  # a sparse file of the whole size
            return catalog.fit_gguf(target)
        except (HubError, CancelledError, EngineError, OSError) as error:
            log.info("no fit of %s: %s", choice.path, error)
            return None


def _move_to_trash(path: Path) -> None:
    """Move a file or a folder to the Trash. Runs on the lane.

    Raises:
        DiskError: the system refuses.
    """
    if not QFile(str(path)).moveToTrash():
        raise DiskError(words.not_removed(file_label(path)))
