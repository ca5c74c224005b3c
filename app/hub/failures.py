"""Failures of calls to the Hub: their kinds, and their sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.hub.access import HOST, host_of
from app.words import hub as words
from engine.errors import EngineError
from engine.problem import Problem, ProblemKind


class FailureKind(StrEnum):
    """Why a call to the Hub failed."""

    OFFLINE = "offline"  # no connection
    PROXY = "proxy"
    SLOW = "slow"  # no byte arrived for a while
    CUT = "cut"  # the connection ended too early
    SERVER = "server"  # the Hub answered with a server error
    BUSY = "busy"  # the Hub limits the number of requests; retry later
    TOKEN = "token"  # noqa: S105 — the name of a kind; the Hub refuses the access token
    FORBIDDEN = "forbidden"
    GATED = "gated"  # the owner of the repository must grant access first
    NOT_FOUND = "not_found"
    NO_MODEL = "no_model"  # the repository has no weights that can be used
    DISK_FULL = "disk_full"
    DAMAGED = "damaged"  # a file did not match its hash in several tries
    FILE = "file"  # the operating system refused to write a file
    LINK = "link"  # a folder of the cache is a link
    ANSWER = "answer"  # the Hub's answer breaks the rules of its protocol
    LONG = "long"  # the Hub's answer or its list of files is longer than the limit
    NAME = "name"  # a file has a name that cannot be used
    MEMORY = "memory"  # the child process exceeded its limit of memory
    OTHER = "other"


# Temporary failures, after which a download is retried.
PASSING = frozenset(
    {
        FailureKind.OFFLINE,
        FailureKind.SLOW,
        FailureKind.CUT,
        FailureKind.SERVER,
        FailureKind.BUSY,
    }
)


@dataclass(frozen=True, slots=True)
class HubFailure:
    """A failed call to the Hub."""

    kind: FailureKind
    detail: str = ""
    needed_bytes: int = 0
    free_bytes: int = 0
    wait_s: int = 0  # seconds that the Hub wants to be left alone


def failure_from(values: Mapping[str, Any]) -> HubFailure:
    """Convert the JSON that the child process wrote to a HubFailure."""
    return HubFailure(
        FailureKind(values["kind"]),
        str(values["detail"]),
        int(values["needed_bytes"]),
        int(values["free_bytes"]),
        int(values["wait_s"]),
    )


class HubError(EngineError):
    """A call to the Hub failed.

    Args:
        failure: what happened.
        repo_id: the repository of the call, "" for a search.
        is_download: True if the call should download files, so that it will be tried again.
        mirror: the address of a mirror in the settings, "" for none.
    """

    def __init__(
        self, failure: HubFailure, repo_id: str, *, is_download: bool, mirror: str = ""
    ) -> None:
        super().__init__(failure.kind.value)
        self.failure = failure
        self.is_retried = is_download and failure.kind in PASSING  # True if the app tries again
        self.problem = _problem_of(failure, repo_id, host_of(mirror), is_download=is_download)


def _problem_of(failure: HubFailure, repo_id: str, host: str, *, is_download: bool) -> Problem:
    """Return a HubFailure as a Problem, with sentences for users. A mirror is named by its host."""
    hub = words.HUGGING_FACE if host == HOST else host
    cause, advice = (text.format(hub=hub) for text in words.SENTENCES[failure.kind.value])
    match failure.kind:
        case FailureKind.DISK_FULL if failure.needed_bytes:
            cause = words.needs_room(failure.needed_bytes, failure.free_bytes)
        case FailureKind.GATED:
            advice = words.ask_for_access(repo_id)
        case FailureKind.DAMAGED:
            cause = words.damaged(failure.detail)
        case FailureKind.NAME:
            cause = words.unusable_name(failure.detail)
        case FailureKind.LINK:
            cause = words.linked_folder(failure.detail)
        case _:
            pass
    if failure.kind in PASSING and is_download:
        advice = words.RESUMES
    kind = ProblemKind.PASSING if failure.kind in PASSING else ProblemKind.OTHER
    title = words.DOWNLOAD_FAILED if is_download else words.ASKING_FAILED.format(hub=hub)
    return Problem(title=title, cause=cause, advice=advice, details=failure.detail, kind=kind)
