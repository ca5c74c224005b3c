"""The calls of the child process: search, details of a repository, and download."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from huggingface_hub import constants

from app.hub.cache import CacheTarget
from app.hub.connection import AnswerError, HubClient, StatusError, TooLongError, file_address
from app.hub.fetching import fetch_all
from app.hub.repository import (
    Repository,
    choices,
    found_model,
    found_models,
    needed_files,
    repository,
)
from app.hub.values import FoundModel, is_commit, is_repo_id
from engine.catalog.model_config import sees_pictures
from engine.errors import EngineError

_MAX_FOUND = 30  # number of repositories of each kind that a search returns
_MAX_CONFIG = 1_000_000  # maximum size of config.json in bytes
_FIRST_HEADER = 1 << 20  # bytes after which the first look for the end of a header is made
_MAX_HEADER = 32 << 20  # maximum bytes of a GGUF header; a vocabulary of 262,000 tokens takes 16 MB
_EXPAND: Final = {"expand": ["downloads", "lastModified", "tags", "gated", "pipeline_tag"]}
_ADDRESS = re.compile(r"(?:https?://[^/\s]+/)?([\w.-]+/[\w.-]+?)(?:/tree/[^\s]*)?/?")

Request = Mapping[str, Any]
Reporter = Callable[..., None]


class NoRepositoryError(Exception):
    """A text that the user entered is no id of a repository."""


class NoWeightsError(Exception):
    """A repository has no weights that can be used."""


def search(client: HubClient, request: Request, _: Reporter) -> list[dict[str, object]]:
    """Search by words, or look up one repository by its id or address. Return what was found."""
    words = str(request["words"]).strip()
    if address := _ADDRESS.fullmatch(words):
        path = f"/api/models/{_repo_id(address[1])}"
        return [asdict(found_model(client.fetch_json(path, _EXPAND)))]
    found: dict[str, FoundModel] = {}
    for library in ("mlx", "gguf"):
        params = {"search": words, "filter": library, "sort": "downloads", **_EXPAND}
        answer = client.fetch_json("/api/models", {**params, "limit": _MAX_FOUND})
        for model in found_models(answer)[:_MAX_FOUND]:
            found.setdefault(model.repo_id, model)
    return [asdict(model) for model in found.values()]


def details(client: HubClient, request: Request, _: Reporter) -> dict[str, object]:
    """Return the files of a repository and its config.json."""
    found = _repository(client, request)
    files = needed_files(found.files)
    has_weights = any(file.path.endswith(".safetensors") for file in files)
    config = _config(client, found) if has_weights else ""
    return {
        "found": asdict(replace(found.found, sees=sees_pictures(config))),
        "revision": found.commit,
        "files": [(file.path, file.size) for file in files] if has_weights else [],
        "choices": choices(found.files),
        "architecture": found.architecture,
        "config": config,
    }


def header(client: HubClient, request: Request, report: Reporter) -> int:
    """Store the header of a GGUF file in the file "target". Return its bytes.

    At most _MAX_HEADER bytes are fetched. If the header is longer or broken, return 0.
    """
    # Import late, because numpy is slow to import, and no other call needs it.
    from engine.gguf.header import header_len  # noqa: PLC0415

    path = str(request["path"])
    url = file_address(_repo_id(request["repo_id"]), request["revision"], path)
    headers = {"range": f"bytes=0-{_MAX_HEADER - 1}"}
    content, step = bytearray(), _FIRST_HEADER
    max_bytes = _MAX_HEADER + _FIRST_HEADER
    with client.open(url, max_bytes=max_bytes, headers=headers) as response:
        for part in response.iter_raw(_FIRST_HEADER):
            content += part
            report(done=len(content))
            if len(content) < step:
                continue
            length, step = _header_len(header_len, content, path), 2 * step
            if length or len(content) >= _MAX_HEADER:
                break
        else:
            length = _header_len(header_len, content, path)
    if length:
        Path(request["target"]).write_bytes(content[:length])
    return length


def _header_len(measure: Callable[[bytes, str], int | None], content: bytearray, path: str) -> int:
    try:
        return measure(bytes(content[:_MAX_HEADER]), path) or 0
    except EngineError:
        return 0


def download(client: HubClient, request: Request, report: Reporter) -> dict[str, object]:
    """Download a repository or one GGUF file of it. Report commit, bytes on disk, total bytes."""
    found = _repository(client, request)
    commit = found.commit
    files = needed_files(found.files, request.get("chosen", ""))
    if not any(file.is_weights for file in files):
        raise NoWeightsError
    total = sum(file.size for file in files)
    target = _target(request, commit)
    fetch_all(client, target, files, lambda done: report(revision=commit, done=done, total=total))
    return {"revision": commit, "total": total, "folder": str(target.snapshot)}


def cancel(_client: HubClient, request: Request, _: Reporter) -> None:
    """Remove the partial files of a download. Opens no connection."""
    _target(request, request["revision"]).discard()


def _target(request: Request, commit: str) -> CacheTarget:
    return CacheTarget(request["repo_id"], commit, Path(constants.HF_HUB_CACHE))


def _repo_id(text: str) -> str:
    if not is_repo_id(text):
        raise NoRepositoryError
    return text


def _repository(client: HubClient, request: Request) -> Repository:
    """Return the repository of a request, at the commit that the request names."""
    path, revision = f"/api/models/{_repo_id(request['repo_id'])}", request.get("revision", "")
    if revision:
        path += f"/revision/{quote(revision, safe='')}"
    found = repository(client.fetch_json(path, {"blobs": True}))
    if is_commit(revision) and found.commit != revision:
        raise AnswerError("commit")
    return found


def _config(client: HubClient, found: Repository) -> str:
    """Return the text of config.json, without putting the file into the cache."""
    url = file_address(found.found.repo_id, found.commit, "config.json")
    try:
        with client.open(url, max_bytes=_MAX_CONFIG) as response:
            return b"".join(response.iter_raw()).decode("utf-8", "replace")
    except TooLongError:
        return ""
    except StatusError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return ""
        raise


CALLS: Mapping[str, Callable[[HubClient, Request, Reporter], object]] = {
    call.__name__: call for call in (search, details, header, download, cancel)
}
