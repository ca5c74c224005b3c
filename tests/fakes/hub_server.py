"""A fake Hugging Face Hub on this machine: search, repositories, file downloads and faults."""

from __future__ import annotations

import hashlib
import json
import random
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from urllib.parse import parse_qs, unquote, urlsplit

from typing_extensions import override

_LFS_BYTES = 100_000  # files of this size and larger are stored with Git LFS
_PIECE = 64 << 10
_SLOW = 60_000  # bytes per second


@dataclass(slots=True, eq=False)
class Repository:
    """A repository of the fake Hub."""

    files: dict[str, bytes]
    tags: tuple[str, ...] = ("mlx", "license:apache-2.0")
    task: str = ""  # the field pipeline_tag
    gated: bool = False
    architecture: str = ""  # of GGUF files
    downloads: int = 10

    @property
    def commit(self) -> str:
        return hashlib.sha1(repr(sorted(self.files)).encode(), usedforsecurity=False).hexdigest()


@dataclass(slots=True, eq=False)
class Fault:
    """A fault that the Hub shows for some requests.

    With `status`, the Hub answers with this status. Otherwise it changes or cuts the content.
    """

    where: str  # part of the path and method, such as "GET /cdn/"
    times: int = 1
    status: int = 0
    cut_after: int = -1  # bytes after which the connection is closed
    spoil: bool = False  # the first byte that is sent is wrong
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class FakeHub:
    """A Hub at `address`. `requests` has all requests as (method, path with query)."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self.authorizations: list[tuple[str, str]] = []  # path and Authorization of each request
        self.sent_bytes = 0  # bytes of files that were sent
        self.bytes_per_s = 0.0  # 0: as fast as possible
        # Bytes after which a file is sent so slowly that it does not end during a test. 0: none
        self.slow_after = 0
        self.before_piece: Callable[[], None] = lambda: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        # Like the real Hub, send large files from another host.
        self.cdn = f"http://localhost:{self._server.server_port}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def add_folder(self, repo_id: str, folder: Path, **fields: object) -> Repository:
        """Offer the files of a folder as a repository."""
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        self.repositories[repo_id] = Repository(files, **fields)  # pyright: ignore[reportArgumentType]
        return self.repositories[repo_id]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fault_for(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.times and fault.where in f"{method} {path}":
                fault.times -= 1
                return fault
        return None


@contextmanager
def running_hub() -> Generator[FakeHub]:
    hub = FakeHub()
    try:
        yield hub
    finally:
        hub.close()


@cache
def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@cache
def git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def info_of(
    repo_id: str, repository: Repository, query: Mapping[str, list[str]] = MappingProxyType({})
) -> dict[str, object]:
    """Return what the Hub answers about a repository: all, or the fields that a query expands."""
    siblings: list[dict[str, object]] = []
    for path, content in repository.files.items():
        row: dict[str, object] = {"rfilename": path, "size": len(content)}
        row["blobId"] = git_hash(content)
        if len(content) >= _LFS_BYTES:
            digest = sha256(content)
            row["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
        siblings.append(row)
    info: dict[str, object] = {
        "id": repo_id,
        "modelId": repo_id,
        "sha": repository.commit,
        "siblings": siblings,
        "tags": list(repository.tags),
        "gated": "auto" if repository.gated else False,
        "downloads": repository.downloads,
        "lastModified": "2026-05-01T10:00:00.000Z",
        "private": False,
        **({"pipeline_tag": repository.task} if repository.task else {}),
        **({"gguf": {"architecture": repository.architecture}} if repository.architecture else {}),
    }
    wanted = {"id", *query.get("expand", info)}
    return {name: value for name, value in info.items() if name in wanted}


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:  # noqa: C901 — one class
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        _pause = threading.Event()

        @override
        def log_message(self, format: str, *args: object) -> None: ...

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            hub.requests.append((self.command, self.path))
            hub.authorizations.append((self.path, self.headers.get("Authorization") or ""))
            fault = hub.fault_for(self.command, self.path)
            if fault is not None and fault.status:
                self._send(fault.status, b"{}", dict(fault.headers))
                return
            url = urlsplit(self.path)
            parts = [unquote(part) for part in url.path.strip("/").split("/")]
            if parts[0] == "cdn":
                self._file(hub_file(parts[1]), {"ETag": f'"{parts[1]}"'}, fault)
            elif parts == ["api", "models"]:
                self._search(parse_qs(url.query))
            elif parts[:2] == ["api", "models"] and len(parts) in {4, 6}:
                self._info("/".join(parts[2:4]), parse_qs(url.query))
            elif len(parts) > 4 and parts[2] == "resolve":
                self._resolve("/".join(parts[:2]), "/".join(parts[4:]), fault)
            else:
                self._send(404, b"{}")

        def _search(self, query: Mapping[str, list[str]]) -> None:
            words = query.get("search", [""])[0].lower().split()
            tag = query.get("filter", [""])[0]
            found = [
                info_of(repo_id, repository, query)
                for repo_id, repository in hub.repositories.items()
                if all(word in repo_id.lower() for word in words) and tag in repository.tags
            ]
            self._send(200, json.dumps(found).encode())

        def _info(self, repo_id: str, query: Mapping[str, list[str]]) -> None:
            repository = hub.repositories.get(repo_id)
            if repository is None:
                self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            else:
                self._send(200, json.dumps(info_of(repo_id, repository, query)).encode())

        def _resolve(self, repo_id: str, path: str, fault: Fault | None) -> None:
            repository = hub.repositories.get(repo_id)
            if repository is None:
                self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
                return
            if repository.gated and "Authorization" not in self.headers:
                self._send(401, b"{}", {"X-Error-Code": "GatedRepo"})
                return
            content = repository.files.get(path)
            headers = {"X-Repo-Commit": repository.commit}
            if content is None:
                self._send(404, b"{}", {**headers, "X-Error-Code": "EntryNotFound"})
            elif len(content) >= _LFS_BYTES:
                digest = sha256(content)
                headers["X-Linked-Etag"] = f'"{digest}"'
                headers["X-Linked-Size"] = str(len(content))
                headers["Location"] = f"{hub.cdn}/cdn/{digest}"
                self._send(302, b"", headers)
            else:
                self._file(content, {**headers, "ETag": f'"{git_hash(content)}"'}, fault)

        def _file(
            self, content: bytes | None, headers: dict[str, str], fault: Fault | None
        ) -> None:
            if content is None:
                self._send(404, b"{}")
                return
            start = 0
            asked = self.headers.get("Range", "")
            if asked.startswith("bytes="):
                start = int(asked.removeprefix("bytes=").partition("-")[0])
                if start >= len(content):
                    self._send(416, b"")
                    return
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            if fault is not None and fault.spoil:
                content = content[:start] + bytes([content[start] ^ 1]) + content[start + 1 :]
            cut_after = fault.cut_after if fault is not None else -1
            self._send(206 if asked else 200, content[start:], headers, cut_after)

        def _send(
            self,
            status: int,
            body: bytes,
            headers: Mapping[str, str] | None = None,
            cut_after: int = -1,
        ) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            end = len(body) if cut_after < 0 else cut_after
            try:
                for at in range(0, end, _PIECE):
                    hub.before_piece()
                    piece = body[at : min(end, at + _PIECE)]
                    self.wfile.write(piece)
                    hub.sent_bytes += len(piece)
                    is_slow = 0 < hub.slow_after < hub.sent_bytes
                    if bytes_per_s := _SLOW if is_slow else hub.bytes_per_s:
                        self._pause.wait(len(piece) / bytes_per_s)
            except OSError:
                self.close_connection = True
            if cut_after >= 0:
                self.close_connection = True

    def hub_file(digest: str) -> bytes | None:
        contents = (content for one in hub.repositories.values() for content in one.files.values())
        return next((one for one in contents if sha256(one) == digest), None)

    return Handler


def main() -> None:
    """Serve a repository with one large file until the input ends. Print the address.

    Arguments: the id of the repository, and the megabytes of the file.
    """
    repo_id, megabytes = sys.argv[1], int(sys.argv[2])
    content = b"".join(random.Random(1).randbytes(1_000_000) for _ in range(megabytes))
    with running_hub() as hub:
        hub.repositories[repo_id] = Repository({"config.json": b"{}", "model.safetensors": content})
        print(hub.address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
