"""The HTTP client of the child process. It limits answers while they arrive."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

import httpx2
from huggingface_hub import constants
from huggingface_hub.utils import (
    build_hf_headers,  # pyright: ignore[reportUnknownVariableType] — bare dict in its types
)
from typing_extensions import override

# Bytes of an answer in JSON. A search has 20,000, and a repository of 10,000 files 3,000,000.
# Parsed JSON takes up to 25 times its bytes.
_MAX_JSON: Final = 6_000_000
_MAX_REDIRECT: Final = 100_000  # bytes of a redirection or of another answer that is not read
_HUB: Final = ("https://huggingface.co", "https://hf.co")


class AnswerError(Exception):
    """An answer of the Hub breaks the rules of its protocol. The text tells which, for the log."""


class TooLongError(AnswerError):
    """An answer of the Hub is longer than the limit. The text is the limit in bytes."""


class StatusError(Exception):
    """The Hub answered with a status that is no success.

    Args: status: the HTTP status. code: the Hub's own code, such as "GatedRepo". has_token: True
    if the request had an access token. wait_s: seconds that the Hub wants the client to wait.
    """

    def __init__(self, status: int, *, code: str, has_token: bool, wait_s: int) -> None:
        super().__init__(str(status))
        self.status = status
        self.code = code
        self.has_token = has_token
        self.wait_s = wait_s


def file_address(repo_id: str, commit: str, path: str) -> str:
    """Return the address of a file of a repository."""
    return f"{constants.ENDPOINT}/{repo_id}/resolve/{commit}/{quote(path)}"


class HubClient(httpx2.Client):
    """A client with the limits and the rules of the Hub's process.

    - An answer ends with TooLongError when it exceeds its limit, redirections included.
    - The access token is sent to the Hub alone, whatever host a redirection names.
    - An encrypted Hub cannot redirect to an unencrypted address.
    - Nothing is retried here. Downloads have pauses and retries of their own.
    """

    def __init__(self) -> None:
        """Create a client with huggingface_hub's own headers and time limit."""
        headers: dict[str, str] = build_hf_headers()
        self._authorization = headers.pop("authorization", "")
        self._hub = {_origin(httpx2.URL(address)) for address in (constants.ENDPOINT, *_HUB)}
        super().__init__(
            # A compressed answer may unpack to a thousand times its bytes.
            headers={**headers, "accept-encoding": "identity"},
            event_hooks={"request": [self._prepare], "response": [_limit]},
            follow_redirects=True,
            timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
        )

    @contextmanager
    def open(
        self,
        url: str,
        *,
        max_bytes: int,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Generator[httpx2.Response]:
        """Open an answer. Its content, from iter_raw(), has at most max_bytes.

        Raises:
            StatusError: the status is no success.
            AnswerError: the answer or a redirection breaks the rules.
            httpx2.HTTPError: the connection fails.
        """
        extensions = {"max_bytes": max_bytes}
        with self.stream(
            "GET", url, params=params, headers=headers, extensions=extensions
        ) as response:
            if not response.is_success:
                raise _status_error(response)
            yield response

    def fetch_json(self, path: str, params: Mapping[str, Any]) -> object:
        """Return the JSON value that the Hub's API answers. Raise the errors of `open`."""
        address = f"{constants.ENDPOINT}{path}"
        with self.open(address, max_bytes=_MAX_JSON, params=params) as response:
            content = b"".join(response.iter_raw())
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise AnswerError("json") from error

    def _prepare(self, request: httpx2.Request) -> None:
        """Add the access token to requests to the Hub only. Called for each redirection, too."""
        if request.url.scheme != "https" and constants.ENDPOINT.startswith("https:"):
            raise AnswerError("unencrypted")
        request.headers.pop("authorization", None)
        if self._authorization and _origin(request.url) in self._hub:
            request.headers["authorization"] = self._authorization


class _LimitedStream(httpx2.SyncByteStream):
    """The content of an answer. Reading more than max_bytes raises TooLongError."""

    def __init__(self, stream: httpx2.SyncByteStream, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes

    @override
    def __iter__(self) -> Iterator[bytes]:
        num_bytes = 0
        for part in self._stream:
            num_bytes += len(part)
            if num_bytes > self._max_bytes:
                raise TooLongError(str(self._max_bytes))
            yield part

    @override
    def close(self) -> None:
        self._stream.close()


def _limit(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise AnswerError("compressed")
    assert isinstance(response.stream, httpx2.SyncByteStream)
    limit = int(response.request.extensions["max_bytes"]) if response.is_success else _MAX_REDIRECT
    response.stream = _LimitedStream(response.stream, limit)


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _status_error(response: httpx2.Response) -> StatusError:
    wait = response.headers.get("retry-after", "").strip()
    return StatusError(
        response.status_code,
        code=response.headers.get("x-error-code", ""),
        has_token="authorization" in response.request.headers,
        wait_s=int(wait) if wait.isascii() and wait.isdigit() and len(wait) < 10 else 0,
    )
