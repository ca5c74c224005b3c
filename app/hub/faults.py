"""Conversion of exceptions of huggingface_hub to failures. Runs in the child process."""

from __future__ import annotations

import errno
from collections.abc import Mapping

import httpx2
from huggingface_hub.errors import (
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from app.hub.failures import Failure, FailureKind
from app.hub.fetching import DamagedFileError, DiskRoomError

# The first row whose class matches an exception gives its kind. Some of these classes derive from
# HfHubHTTPError or OSError, so failure_of() tests those two after this table.
_KINDS: tuple[tuple[type[Exception], FailureKind], ...] = (
    (DamagedFileError, FailureKind.DAMAGED),
    (GatedRepoError, FailureKind.GATED),
    (RepositoryNotFoundError, FailureKind.NOT_FOUND),
    (RevisionNotFoundError, FailureKind.NOT_FOUND),
    (RemoteEntryNotFoundError, FailureKind.NOT_FOUND),
    (HFValidationError, FailureKind.NOT_FOUND),
    (httpx2.ProxyError, FailureKind.PROXY),
    (httpx2.TimeoutException, FailureKind.SLOW),
    (httpx2.TransportError, FailureKind.OFFLINE),
    (FileMetadataError, FailureKind.OFFLINE),
    (LookupError, FailureKind.NO_MODEL),
)
_STATUSES: Mapping[int, FailureKind] = {
    401: FailureKind.TOKEN,
    403: FailureKind.FORBIDDEN,
    404: FailureKind.NOT_FOUND,
    416: FailureKind.CUT,
    429: FailureKind.BUSY,
}


def failure_of(error: Exception) -> Failure:
    """Convert an exception of huggingface_hub to a failure."""
    if isinstance(error, DiskRoomError):
        return Failure(
            FailureKind.DISK_FULL, needed_bytes=error.needed_bytes, free_bytes=error.free_bytes
        )
    for kind_of_error, kind in _KINDS:
        if isinstance(error, kind_of_error):
            return Failure(kind, detail=str(error)[:300])
    if isinstance(error, HfHubHTTPError | httpx2.HTTPStatusError):
        status = error.response.status_code
        usual = FailureKind.SERVER if status >= 500 else FailureKind.OTHER
        return Failure(_STATUSES.get(status, usual), detail=str(status))
    if isinstance(error, OSError):
        return _of_file(error)
    return Failure(FailureKind.OTHER, detail=f"{type(error).__name__}: {error}"[:300])


def _of_file(error: OSError) -> Failure:
    if error.errno is None:  # http_get raises it if the number of received bytes is wrong
        return Failure(FailureKind.CUT, detail=str(error)[:300])
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    kind = FailureKind.DISK_FULL if full else FailureKind.FILE
    return Failure(kind, detail=error.strerror or "")
