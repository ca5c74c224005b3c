"""Size and fit of found models. They are asked for one after the other, for the rows on show only.

Main thread. One lane waits for the answers of the Hub, and one measures the fits, so that no search
and no file waits for them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.jobs import JobLane
from app.bridge.tasks import TaskLane
from app.controllers.catalog import Catalog
from app.hub.process import HubCall, details, header, repo_details
from app.hub.values import RepoDetails, RepoFile, typical_choice
from engine.catalog.fit import Fit
from engine.problem import Problem, ProblemKind

_REST_MS = 60_000  # time without a question after which the process that measures fits is ended
_MAX_KEPT = 300  # repositories whose details are kept in memory
_MAX_HEADERS = 12  # headers of GGUF files that are fetched for one search, a few megabytes each


class HubDetails(QObject):
    """The details of repositories that the window shows, and of those that it showed before."""

    changed = Signal()

    def __init__(self, catalog: Catalog, endpoint: Callable[[], str], parent: QObject) -> None:
        """Args: endpoint: returns the address of the mirror, "" for none."""
        super().__init__(parent)
        self._catalog = catalog
        self._endpoint = endpoint
        self._calls = JobLane("details")
        self._fits = TaskLane("fits", self)
        self._is_asking = False
        self._rest = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest.timeout.connect(self._end_fits)
        self._headers_left = _MAX_HEADERS
        self._queue: list[str] = []
        # True after a failure of the network. Only a click on a row asks the Hub again.
        self._is_offline = False
        # By repository. None until the Hub has answered.
        self.all: dict[str, RepoDetails | Problem | None] = {}
        # The fit of each model of `all`, or the reason why it cannot run here. GGUF files have a
        # reason or nothing, until the header of one has arrived.
        self.fits: dict[str, Fit | Problem] = {}

    def want(self, repo_ids: Sequence[str]) -> None:
        """Ask for the repositories on show, and no longer for others that still wait."""
        wanted = [one for one in repo_ids if one in self._queue or one not in self.all]
        if self._is_offline or wanted == self._queue:
            return
        self._drop_queue()
        self._queue = wanted
        self.all.update(dict.fromkeys(wanted))
        self.changed.emit()
        self._next()

    def ask(self, repo_id: str) -> None:
        """Ask for a repository before the others, also if that failed before."""
        if isinstance(self.all.get(repo_id, False), RepoDetails | None):
            return
        self._is_offline = False
        self.all[repo_id] = None
        self._queue.insert(0, repo_id)
        self.changed.emit()
        self._next()

    def begin_search(self) -> None:
        """End all calls: another search replaces the rows on show."""
        self._is_offline = False
        self._headers_left = _MAX_HEADERS
        self._end_calls()

    def forget(self) -> None:
        """Forget all details and verdicts, which are about another memory."""
        self._end_calls()
        self.all.clear()
        self.fits.clear()
        self.changed.emit()

    def close(self) -> None:
        self._end_calls()
        self._rest.stop()
        self._end_fits()
        self._calls.stop()
        self._fits.stop()

    def _end_fits(self) -> None:
        self._fits.run(self._catalog.end_fits)

    def _drop_queue(self) -> None:
        for repo_id in self._queue:
            self.all.pop(repo_id, None)
        self._queue = []

    def _end_calls(self) -> None:
        self._drop_queue()
        self._calls.stop_jobs()

    def _next(self) -> None:
        """Ask the Hub for the next repository, unless it is being asked for another one."""
        if self._is_asking or not self._queue:
            return
        repo_id = self._queue.pop(0)
        call = details(repo_id, endpoint=self._endpoint())
        self._is_asking = True
        self._rest.start()
        on_answer = partial(self._on_answer, repo_id)
        self._calls.start(
            lambda _job: repo_details(call.run()), on_answer, on_answer, on_stop=call.cancel
        )

    def _on_answer(self, repo_id: str, answer: RepoDetails | Problem) -> None:
        self._is_asking = False
        if repo_id in self.all and repo_id not in self._queue:
            self._keep(repo_id, answer)
        self.changed.emit()
        self._next()

    def _keep(self, repo_id: str, answer: RepoDetails | Problem) -> None:
        """Keep the answer of the Hub: the details, or the problem of the call."""
        if isinstance(answer, RepoDetails):
            self.all[repo_id] = replace(answer, config="")
            self._measure(repo_id, answer)
        elif answer.kind is ProblemKind.STOPPED:
            del self.all[repo_id]
        else:
            self.all[repo_id] = answer
            if answer.kind is ProblemKind.PASSING:
                self._is_offline = True
                self._drop_queue()
        while len(self.all) > _MAX_KEPT:
            oldest = next(iter(self.all))
            self.fits.pop(oldest, None)
            del self.all[oldest]

    def _measure(self, repo_id: str, found: RepoDetails) -> None:
        on_fit = partial(self._on_fit, repo_id)
        if found.config:
            measure = partial(self._catalog.fit, found.config, found.weight_bytes)
            self._fits.run(measure, on_fit, on_fit)
        elif found.architecture:
            check = partial(self._catalog.require_importable, found.architecture)
            self._fits.run(check, partial(self._ask_for_header, found), on_fit)

    def _ask_for_header(self, found: RepoDetails, _: None) -> None:
        """Measure the GGUF file that most people fetch by its header, which is a few megabytes."""
        choice = typical_choice(found.choices)
        if choice is None or not self._headers_left:
            return
        self._headers_left -= 1
        folder = tempfile.TemporaryDirectory()
        target = Path(folder.name, "header.gguf")
        call = header(found, choice.path, target, endpoint=self._endpoint())
        self._calls.start(
            lambda _job: _gguf_fit(self._catalog, call, choice, folder),
            partial(self._on_fit, found.found.repo_id),
            lambda _problem: None,  # the row stays without a verdict
            on_stop=call.cancel,
        )

    def _on_fit(self, repo_id: str, fit: Fit | Problem | None) -> None:
        if fit is not None and repo_id in self.all:
            self.fits[repo_id] = fit
            self.changed.emit()


def _gguf_fit(
    catalog: Catalog, call: HubCall, choice: RepoFile, folder: tempfile.TemporaryDirectory[str]
) -> Fit | None:
    """Return the fit of a GGUF file by its header, or None if it has no header. Runs on a lane.

    Args:
        catalog: measures the fit.
        call: stores the header as header.gguf in the folder.
        choice: the GGUF file.
        folder: is removed.

    Raises:
        EngineError: the call failed or was stopped, or the model cannot run here.
    """
    with folder as path:
        target = Path(path, "header.gguf")
        if not call.run():
            return None
        os.truncate(target, choice.size_bytes)  # a sparse file of the whole size
        return catalog.fit_gguf(target)
