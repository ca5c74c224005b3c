"""A Hub on this machine whose answers are arbitrary bytes, made by a function for each request."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from typing_extensions import override

from tests.fakes.hub_server import Repository, git_hash, info_of, sha256

REPO = "owner/Tiny-4bit"


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its method, its path without query and quoting, and its headers in lower case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Answerer = Callable[[Request], Iterable[bytes]]


def response(
    body: bytes | Iterable[bytes] = b"",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Iterable[bytes]:
    """Yield the bytes of an answer. A body in parts has no Content-Length, unless it is given."""
    headers = {"Connection": "close", **(headers or {})}
    if isinstance(body, bytes):
        headers.setdefault("Content-Length", str(len(body)))
        body = [body]
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    yield "\r\n".join((*lines, "\r\n")).encode("latin-1")
    yield from body


class HonestHub:
    """The answers of a Hub with one repository. A lie calls it for all but one request.

    Args:
        change: changes the description of the repository.
        commit_header: the commit that answers with files state.
    """

    def __init__(
        self,
        change: Callable[[dict[str, object]], None] = lambda _: None,
        commit_header: str = "0" * 40,
    ) -> None:
        self.repository = Repository({
            "config.json": b'{"model_type": "qwen3_5"}',
            "model.safetensors": bytes(200_000),
        })  # fmt: skip
        self.info = info_of(REPO, self.repository)
        self._headers = {"X-Repo-Commit": commit_header}
        change(self.info)

    def __call__(self, request: Request) -> Iterable[bytes]:
        if request.path == "/api/models":
            return response(json.dumps([self.info]).encode())
        if request.path.startswith("/api/models/"):
            return response(json.dumps(self.info).encode())
        content = self.repository.files.get(request.path.rpartition("/")[2])
        if content is None:
            return response(b"", 404, {"X-Error-Code": "EntryNotFound"})
        return file_answer(request, content, self._headers)


def file_answer(
    request: Request, content: bytes, headers: Mapping[str, str] | None = None
) -> Iterable[bytes]:
    """Return an answer with a file, from the byte that the request names."""
    digest = sha256(content) if len(content) >= 100_000 else git_hash(content)
    headers = {"ETag": f'"{digest}"', **(headers or {})}
    if request.method == "HEAD":
        return response([], 200, {"Content-Length": str(len(content)), **headers})
    if asked := request.headers.get("range"):
        start = int(asked.removeprefix("bytes=").partition("-")[0])
        span = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return response(content[start:], 206, {"Content-Range": span, **headers})
    return response(content, 200, headers)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class LyingHub:
    """A Hub at `address`. `answer` can be replaced at any time."""

    def __init__(self, answer: Answerer) -> None:
        self.answer: Answerer = answer
        self.is_closed = threading.Event()
        hub = self

        class Handler(socketserver.StreamRequestHandler):
            @override
            def handle(self) -> None:
                words = self.rfile.readline(10_000).decode("latin-1").split()
                headers: dict[str, str] = {}
                while line := self.rfile.readline(10_000).strip():
                    name, _, value = line.decode("latin-1").partition(":")
                    headers[name.lower()] = value.strip()
                if len(words) == 3:
                    path = unquote(urlsplit(words[1]).path)
                    try:
                        for part in hub.answer(Request(words[0], path, headers)):
                            if hub.is_closed.is_set():
                                return
                            self.wfile.write(part)
                    except OSError:
                        pass  # the client has closed the connection

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def close(self) -> None:
        self.is_closed.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def lying_hub(answer: Answerer) -> Generator[LyingHub]:
    hub = LyingHub(answer)
    try:
        yield hub
    finally:
        hub.close()
