"""Refuses requests that may not use the server, before anything else reads them.

A page in a browser can send requests to this machine. Three checks keep it out: the Host header
must name this server (a page of evil.example whose address leads here sends its own name), a page's
Origin must be allowed by name, and the API key must be right.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.access import Access
from app.server.errors import ErrorKind, ServerError
from app.words import server as words

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OPEN_PATHS = ("/", "/health")  # they need no key
_ALLOWED_METHODS = "GET, POST, OPTIONS"


class Guard:
    """An ASGI application that passes on the requests which may use the server."""

    def __init__(
        self, app: ASGIApp, access: Access, refusal: Callable[[Request, ServerError], Response]
    ) -> None:
        """Create the application.

        Args:
            app: gets the requests that may use the server.
            access: who may use the server.
            refusal: returns the response to a refused request.
        """
        self._app = app
        self._access = access
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _sender_with(_new_ids(), send)
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        try:
            self._check(headers, origin, scope["path"], scope["method"])
        except ServerError as error:
            await self._refusal(Request(scope), error)(scope, receive, send)
            return
        if scope["method"] == "OPTIONS":
            await Response(None, 204, _preflight(headers, origin))(scope, receive, send)
            return
        if origin:
            allowed = (b"access-control-allow-origin", origin.encode("latin-1"))
            send = _sender_with([allowed, (b"vary", b"Origin")], send)
        await self._app(scope, receive, send)

    def _check(self, headers: Headers, origin: str, path: str, method: str) -> None:
        host = _name_of(headers.get("host", ""))
        is_known = host in (*_LOOPBACK, *self._access.hosts)
        if not is_known and not (self._access.has_any_address and _is_address(host)):
            raise ServerError(ErrorKind.FORBIDDEN, words.WRONG_HOST)
        if origin and origin not in self._access.origins:
            raise ServerError(ErrorKind.FORBIDDEN, words.wrong_origin(origin[:200]))
        # A browser sends no key with the request in which it asks what it may send.
        if method == "OPTIONS" or path in _OPEN_PATHS:
            return
        key = self._access.key
        if key and not any(_is_equal(given, key) for given in _given_keys(headers)):
            raise ServerError(ErrorKind.KEY, words.WRONG_KEY)


def _sender_with(headers: Sequence[tuple[bytes, bytes]], send: Send) -> Send:
    """Return a function that sends a response with more headers."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *headers]
        await send(message)

    return send_with_headers


def _new_ids() -> list[tuple[bytes, bytes]]:
    """Return the headers with the id of a request, which clients show with errors."""
    request_id = f"req_{uuid.uuid4().hex[:24]}".encode()
    # The names that OpenAI's and Anthropic's clients read
    return [(b"x-request-id", request_id), (b"request-id", request_id)]


def _given_keys(headers: Headers) -> Iterator[str]:
    """Yield the keys of a request. Anthropic's clients send two if the user set both variables."""
    yield headers.get("x-api-key", "")
    scheme, _, token = headers.get("authorization", "").partition(" ")
    yield token if scheme.lower() == "bearer" else ""


def _is_equal(given: str, key: str) -> bool:
    return secrets.compare_digest(given.encode(), key.encode())


def _name_of(host: str) -> str:
    """Return the name or the address in a Host header, without the port. "": there is none."""
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return ""
    return name if name and "@" not in host else ""


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _preflight(headers: Headers, origin: str) -> dict[str, str]:
    if not origin:
        return {"allow": _ALLOWED_METHODS}
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": _ALLOWED_METHODS,
        "access-control-allow-headers": headers.get("access-control-request-headers", ""),
        "access-control-max-age": "600",
        "vary": "Origin",
    }
