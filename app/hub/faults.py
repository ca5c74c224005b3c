"""Conversion of the exceptions of a call to failures. Runs in the child process."""

from __future__ import annotations

import errno
from collections.abc import Mapping

import httpx2

from app.hub.cache import LinkedFolderError
from app.hub.calls import NoRepositoryError, NoWeightsError
from app.hub.connection import AnswerError, StatusError, TooLongError
from app.hub.failures import FailureKind, HubFailure
from app.hub.fetching import CutError, DamagedFileError, DiskRoomError
from app.hub.repository import FileNameError, ManyFilesError
from app.hub.values import printable

_MAX_DETAIL = 300  # maximum characters of a detail
# The first row whose class matches an exception gives its kind.
_KINDS: tuple[tuple[type[Exception], FailureKind], ...] = (
    (DamagedFileError, FailureKind.DAMAGED),
    (NoRepositoryError, FailureKind.NOT_FOUND),
    (NoWeightsError, FailureKind.NO_MODEL),
    (CutError, FailureKind.CUT),
    (LinkedFolderError, FailureKind.LINK),
    (FileNameError, FailureKind.NAME),
    (ManyFilesError, FailureKind.LONG),
    (TooLongError, FailureKind.LONG),
    (AnswerError, FailureKind.ANSWER),
    (httpx2.ProxyError, FailureKind.PROXY),
    (httpx2.TimeoutException, FailureKind.SLOW),
    (httpx2.ConnectError, FailureKind.OFFLINE),
    (httpx2.UnsupportedProtocol, FailureKind.ANSWER),
    (httpx2.TransportError, FailureKind.CUT),
    (httpx2.RequestError, FailureKind.ANSWER),
    (httpx2.InvalidURL, FailureKind.ANSWER),
)
_STATUSES: Mapping[int, FailureKind] = {
    403: FailureKind.FORBIDDEN,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.SLOW,
    416: FailureKind.CUT,
    429: FailureKind.BUSY,
}
_CODES: Mapping[str, FailureKind] = {
    "GatedRepo": FailureKind.GATED,
    "RepoNotFound": FailureKind.NOT_FOUND,
    "RevisionNotFound": FailureKind.NOT_FOUND,
    "EntryNotFound": FailureKind.NOT_FOUND,
}


def failure_of(error: Exception) -> HubFailure:
    """Convert an exception of a call to a failure."""
    if isinstance(error, DiskRoomError):
        return HubFailure(
            FailureKind.DISK_FULL, needed_bytes=error.needed_bytes, free_bytes=error.free_bytes
        )
    if isinstance(error, StatusError):
        return HubFailure(_of_status(error), detail=str(error.status), wait_s=error.wait_s)
    for kind_of_error, kind in _KINDS:
        if isinstance(error, kind_of_error):
            return HubFailure(kind, detail=printable(str(error), _MAX_DETAIL))
    if isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        kind = FailureKind.DISK_FULL if full else FailureKind.FILE
        return HubFailure(kind, detail=error.strerror or "")
    return HubFailure(
        FailureKind.OTHER, detail=printable(f"{type(error).__name__}: {error}", _MAX_DETAIL)
    )


def _of_status(error: StatusError) -> FailureKind:
    if kind := _CODES.get(error.code):
        return kind
    if error.status == 401:
        return FailureKind.TOKEN if error.has_token else FailureKind.NOT_FOUND
    usual = FailureKind.SERVER if error.status >= 500 else FailureKind.OTHER
    return _STATUSES.get(error.status, usual)
