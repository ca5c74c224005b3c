"""The app's side of the child process that talks to the Hub (program.py)."""

from __future__ import annotations

import json
import logging
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from app.hub.failures import FailureKind, HubError, HubFailure, failure_from
from app.hub.values import FoundModel, RepoDetails, RepoFile
from app.stopping import StoppedError
from app.words import hub as words
from engine.worker.child import MemoryLimitError, SilenceLimitError, read_part
from engine.worker.interpreter import own_program

log = logging.getLogger(__name__)

Progress = Callable[[Mapping[str, Any]], None]
_MAX_LINE = 4_000_000  # maximum bytes of one answer; a search result of thirty models has 20,000


class Call(Protocol):
    """A call to the Hub that has not begun yet. Another thread may cancel it at any time."""

    def run(self, progress: Progress = ...) -> Any: ...
    def cancel(self) -> None: ...


class HubCall:
    """A call to the Hub in a process of its own. No Qt.

    Args:
        name: the name of a function of calls.py.
        request: the arguments of the function. "repo_id" is the repository, if there is one.
            "endpoint" is the address of a mirror, unless HF_ENDPOINT states one; "" for none.
    """

    max_bytes = 300_000_000  # bytes of memory that the process may use; a download uses 50 MB
    # Seconds without a line of the process after which it is ended. While bytes arrive, it writes
    # lines. It ends by itself if the Hub sends nothing for 10 seconds.
    max_silence_s = 60.0

    def __init__(self, name: str, **request: object) -> None:
        self._request = {"call": name, **request}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_cancelled = False

    def run(self, progress: Progress = lambda _: None) -> Any:
        """Make the call. Return its result, a JSON value.

        Args:
            progress: called with each report of progress.

        Raises:
            HubError: the call failed.
            StoppedError: cancel() was called.
        """
        process = self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(self._request).encode() + b"\n")
            process.stdin.flush()
            for line in self._lines(process):
                answer = cast("dict[str, Any]", json.loads(line))
                if "progress" in answer:
                    progress(answer["progress"])
                elif "error" in answer:
                    raise self._error(failure_from(answer["error"]))
                else:
                    return answer["result"]
        except MemoryLimitError as error:
            raise self._error(HubFailure(FailureKind.MEMORY)) from error
        except SilenceLimitError as error:
            raise self._error(HubFailure(FailureKind.SLOW)) from error
        except (BrokenPipeError, ValueError) as error:
            log.warning("the Hub's process gave no answer: %s", error)
        finally:
            self._end(process)
        if self._is_cancelled:
            raise StoppedError
        raise self._error(HubFailure(FailureKind.OTHER, detail=words.PROCESS_ENDED))

    def cancel(self) -> None:
        """End the call, from any thread. `run` raises StoppedError."""
        with self._lock:
            self._is_cancelled = True
            if self._process is not None:
                self._process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_cancelled:
                raise StoppedError
            self._process = subprocess.Popen(  # noqa: S603 — our own interpreter and program
                own_program("app.hub.program"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C in a terminal signals this process only
            )
            return self._process

    def _lines(self, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
        """Yield the lines that the process writes. Raise the errors of `read_part`."""
        rest = b""
        while len(rest) < _MAX_LINE and (
            part := read_part(
                process, _MAX_LINE, max_bytes=self.max_bytes, max_silence_s=self.max_silence_s
            )
        ):
            *lines, rest = (rest + part).split(b"\n")
            yield from lines

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._process = None
        process.kill()
        process.communicate()

    def _error(self, failure: HubFailure) -> HubError:
        log.info("call %s failed: %s", self._request["call"], failure)
        repo_id, is_download = self._request.get("repo_id", ""), self._request["call"] == "download"
        mirror = str(self._request.get("endpoint", ""))
        return HubError(failure, str(repo_id), is_download=is_download, mirror=mirror)


def search(text: str, *, endpoint: str = "") -> HubCall:
    """Return a call that searches for models. Pass its result to `found_models`."""
    return HubCall("search", words=text, endpoint=endpoint)


def found_models(result: list[dict[str, Any]]) -> tuple[FoundModel, ...]:
    """Convert the result of a search call to values."""
    return tuple(FoundModel(**one) for one in result)


def fetch(repo_id: str, *, revision: str = "", chosen: str = "", endpoint: str = "") -> HubCall:
    """Return the call that downloads a model. Its result has "revision" and "total", in bytes.

    Args:
        repo_id: the repository.
        revision: a branch, tag or commit; "" for main.
        chosen: the one GGUF file to fetch; "" to fetch all files that the model needs.
        endpoint: the address of a mirror; "" for none.
    """
    return HubCall("download", repo_id=repo_id, revision=revision, chosen=chosen, endpoint=endpoint)


def details(repo_id: str, *, endpoint: str = "") -> HubCall:
    """Return a call that requests the details of a repository, for `repo_details`."""
    return HubCall("details", repo_id=repo_id, endpoint=endpoint)


def header(found: RepoDetails, path: str, target: Path, *, endpoint: str = "") -> HubCall:
    """Return a call that stores the header of a GGUF file. Its result is the bytes, 0 for none.

    Args:
        found: the details of the repository.
        path: the GGUF file.
        target: the file to write.
        endpoint: the address of a mirror; "" for none.
    """
    return HubCall(
        "header",
        repo_id=found.found.repo_id,
        revision=found.revision,
        path=path,
        target=str(target),
        endpoint=endpoint,
    )


def repo_details(result: Mapping[str, Any]) -> RepoDetails:
    """Convert the result of a details call to a value."""
    return RepoDetails(
        found=FoundModel(**result["found"]),
        revision=result["revision"],
        files=_files(result["files"]),
        choices=_files(result["choices"]),
        architecture=result["architecture"],
        config=result["config"],
    )


def _files(rows: list[tuple[str, int]]) -> tuple[RepoFile, ...]:
    return tuple(RepoFile(path=path, size_bytes=size) for path, size in rows)
