"""The queue of model downloads, stored in a file between runs of the app. No Qt.

One thread fetches one download after the other. After a temporary failure, such as a lost
connection, a download is retried after increasing pauses. At the start of the app all unfinished
downloads are paused, because the app connects only at the user's request.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from app.hub.failures import PASSING, HubError
from app.hub.process import Call, HubCall, fetch
from app.hub.values import UNFINISHED, Download, DownloadState, is_commit
from app.stopping import StoppedError
from engine.errors import problem_of
from engine.whole_file import write_whole

log = logging.getLogger(__name__)

_PAUSES_S = (1, 2, 4, 8, 16, 32, 60)  # after the first failure, the second, and so on
_MAX_WAIT_S = 300  # longest pause that the Hub can ask for
_RATE_S = 5.0  # seconds over which the rate is averaged
_RUNNING = frozenset({DownloadState.RUNNING})
_STOPPED = frozenset({DownloadState.PAUSED, DownloadState.WAITING, DownloadState.FAILED})
_MAX_QUEUED = 1_000  # maximum number of downloads that are read from the file


class Downloads:
    """The queue of downloads. All methods may be called from any thread.

    Args: file: the file in which the queue is stored. changed: called after each change, on the
    calling thread or the queue's. make_call: returns the call that fetches a download.
    """

    def __init__(
        self,
        file: Path,
        changed: Callable[[], None],
        make_call: Callable[[Download], Call] | None = None,
    ) -> None:
        self._file = file
        self._changed = changed
        self._make_call = make_call or _fetch
        self._condition = threading.Condition()
        self._downloads: dict[str, Download] = {one.key: one for one in _read(file)}
        self._running: tuple[str, Call] | None = None
        self._is_closed = False
        self._thread: threading.Thread | None = None

    @property
    def all(self) -> tuple[Download, ...]:
        """All downloads, in the order in which they run."""
        with self._condition:
            return tuple(self._downloads.values())

    def add(self, repo_id: str, *, revision: str = "", chosen: str = "") -> str:
        """Queue a download, or resume it if the queue has it. Return its key."""
        new = Download(repo_id=repo_id, revision=revision, chosen=chosen)
        with self._condition:
            old = self._downloads.get(new.key)
            if old is None or old.state is DownloadState.DONE:
                self._downloads.pop(new.key, None)
                self._downloads[new.key] = new
        self.resume(new.key)
        return new.key

    def pause(self, key: str) -> None:
        """Stop a download, but keep the part that was downloaded."""
        self._set(key, UNFINISHED, state=DownloadState.PAUSED, problem=None)
        self._stop(key)

    def resume(self, key: str) -> None:
        """Put a paused, waiting or failed download back into the queue."""
        self._set(key, _STOPPED, state=DownloadState.QUEUED, problem=None, num_tries=0)
        self._wake()

    def cancel(self, key: str) -> None:
        """Remove a download from the queue, and delete its partial files."""
        with self._condition:
            found = self._downloads.pop(key, None)
        self._stop(key)
        if found is not None and found.revision and found.state is not DownloadState.DONE:
            threading.Thread(target=_discard, args=(found,), name="discard").start()
        self._report()

    def close(self) -> None:
        """Stop the running download and the thread. The queue is kept for the next start."""
        with self._condition:
            self._is_closed = True
            running, thread = self._running, self._thread
            self._condition.notify_all()
        if running is not None:
            running[1].cancel()
        if thread is not None:
            thread.join()

    def _wake(self) -> None:
        with self._condition:
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._work, name="downloads", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def _stop(self, key: str) -> None:
        with self._condition:
            running = self._running
        if running is not None and running[0] == key:
            running[1].cancel()

    def _set(self, key: str, states: frozenset[DownloadState], **changes: object) -> bool:
        """Change fields of a download if its state is one of the given ones. Return True if so."""
        with self._condition:
            old = self._downloads.get(key)
            if old is None or old.state not in states:
                return False
            new = self._downloads[key] = replace(old, **cast("Any", changes))
        self._report(keeps=(old.state, old.revision) != (new.state, new.revision))
        return True

    def _report(self, *, keeps: bool = True) -> None:
        if keeps:
            with self._condition:
                _write(self._file, tuple(self._downloads.values()))
        self._changed()

    def _work(self) -> None:
        while (download := self._next()) is not None:
            self._fetch_one(download)

    def _next(self) -> Download | None:
        """Wait until a download can run, and return the download. Return None after close()."""
        with self._condition:
            while not self._is_closed:
                now = time.monotonic()
                for one in self._downloads.values():
                    waited = one.state is DownloadState.WAITING and one.retry_at <= now
                    if one.state is DownloadState.QUEUED or waited:
                        self._running = one.key, self._make_call(one)
                        return one
                waiting = (
                    one.retry_at - now
                    for one in self._downloads.values()
                    if one.state is DownloadState.WAITING
                )
                self._condition.wait(min(waiting, default=None))
            return None

    def _fetch_one(self, download: Download) -> None:
        key = download.key
        assert self._running is not None
        call = self._running[1]
        rate = _Rate()

        def progress(values: Mapping[str, Any]) -> None:
            done = int(values["done"])
            self._set(
                key,
                _RUNNING,
                revision=str(values["revision"]),
                done_bytes=done,
                total_bytes=int(values["total"]),
                bytes_per_s=rate.after(done),
                num_tries=0 if rate.has_grown else download.num_tries,
            )

        if not self._set(key, UNFINISHED, state=DownloadState.RUNNING, problem=None):
            call.cancel()
        try:
            result = call.run(progress)
            self._set(
                key,
                _RUNNING,
                state=DownloadState.DONE,
                revision=result["revision"],
                folder=result["folder"],
                done_bytes=result["total"],
                total_bytes=result["total"],
            )
        except StoppedError:
            pass
        except HubError as error:
            self._fail(key, error)
        except Exception as error:
            # The thread must not end, because the queue starts no other one.
            log.exception("the download of %s failed", download.repo_id)
            self._set(key, _RUNNING, state=DownloadState.FAILED, problem=problem_of(error))
        finally:
            with self._condition:
                self._running = None

    def _fail(self, key: str, error: HubError) -> None:
        if error.failure.kind not in PASSING:
            self._set(key, _RUNNING, state=DownloadState.FAILED, problem=error.problem)
            return
        with self._condition:
            found = self._downloads.get(key)
            tries = found.num_tries if found is not None else 0
        self._set(
            key,
            _RUNNING,
            state=DownloadState.WAITING,
            problem=error.problem,
            num_tries=tries + 1,
            retry_at=time.monotonic() + pause_s(tries, error.failure.wait_s),
        )


def pause_s(num_tries: int, wait_s: int) -> int:
    """Return the seconds before a download is retried.

    Args:
        num_tries: the number of tries that have failed before this one.
        wait_s: the seconds that the Hub demands.
    """
    return max(_PAUSES_S[min(num_tries, len(_PAUSES_S) - 1)], min(_MAX_WAIT_S, wait_s))


@dataclass(slots=True, eq=False)
class _Rate:
    """The bytes per second of a download, averaged over some seconds."""

    value: float = 0.0
    first: int | None = None
    last: int = 0
    at: float = 0.0
    has_grown: bool = False  # True once a byte has arrived

    def after(self, done_bytes: int) -> float:
        """Return the new rate after a progress report with the number of bytes on disk."""
        now = time.monotonic()
        if self.first is None:
            self.first = done_bytes
        else:
            seconds = max(now - self.at, 1e-3)
            weight = min(1.0, seconds / _RATE_S) if self.value else 1.0
            self.value += weight * ((done_bytes - self.last) / seconds - self.value)
            self.has_grown |= done_bytes > self.first
        self.last, self.at = done_bytes, now
        return max(0.0, self.value)


def _fetch(download: Download) -> Call:
    return fetch(download.repo_id, revision=download.revision, chosen=download.chosen)


def _discard(download: Download) -> None:
    try:
        HubCall("cancel", repo_id=download.repo_id, revision=download.revision).run()
    except (HubError, StoppedError):
        log.warning("the partial files of %s were not removed", download.repo_id)


def _read(file: Path) -> list[Download]:
    """Read the stored queue, with all unfinished downloads paused. Empty if the file is damaged."""
    try:
        rows = cast("list[dict[str, Any]]", json.loads(file.read_bytes()))
        return [_from_json(row) for row in rows[:_MAX_QUEUED]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, LookupError, RecursionError, AttributeError) as error:
        log.warning("the queue of downloads cannot be read: %s", error)
        return []


def _from_json(row: Mapping[str, Any]) -> Download:
    state, revision = DownloadState(row["state"]), str(row["revision"])
    return Download(
        repo_id=str(row["repo_id"]),
        chosen=str(row["chosen"]),
        revision=revision if is_commit(revision) else "",
        folder=str(row["folder"]),
        state=DownloadState.PAUSED if state in UNFINISHED else state,
        done_bytes=int(row["done_bytes"]),
        total_bytes=int(row["total_bytes"]),
    )


def _write(file: Path, downloads: tuple[Download, ...]) -> None:
    """Store the queue in its file. A failure is only logged, as downloads run without the file."""
    rows = [
        {
            "repo_id": one.repo_id,
            "chosen": one.chosen,
            "revision": one.revision,
            "folder": one.folder,
            "state": one.state.value,
            "done_bytes": one.done_bytes,
            "total_bytes": one.total_bytes,
        }
        for one in downloads
    ]
    try:
        write_whole(file, json.dumps(rows).encode())
    except OSError as error:
        log.warning("the queue of downloads cannot be kept: %s", error)
