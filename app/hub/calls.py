"""The calls of the child process: search, details of a repository, and download."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Any, cast

from huggingface_hub import HfApi, ModelInfo, constants, hf_hub_url
from huggingface_hub.hf_api import ExpandModelProperty_T
from huggingface_hub.utils import (
    build_hf_headers,  # pyright: ignore[reportUnknownVariableType] — bare dict in its types
    get_session,
    hf_raise_for_status,
)

from app.hub.fetching import Target, discard, fetch_all, first_part, needed_files
from app.hub.values import FoundModel
from engine.errors import EngineError

_MAX_FOUND = 30  # number of repositories of each kind that a search returns
_MAX_CONFIG = 1_000_000  # maximum size of config.json in bytes
_FIRST_HEADER = 1 << 20  # bytes after which the first look for the end of a header is made
_MAX_HEADER = 32 << 20  # maximum bytes of a GGUF header; a vocabulary of 262,000 tokens takes 16 MB
_FIELDS: list[ExpandModelProperty_T] = ["downloads", "lastModified", "tags", "gated"]
_PARAMETERS = re.compile(
    r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?[BM](?:-A\d+(?:\.\d+)?B)?)(?![A-Za-z0-9])", re.IGNORECASE
)
_BITS = re.compile(r"(?<![A-Za-z0-9])(\d{1,2})[-_]?bit|[QI]Q?(\d)_|mxfp(\d)", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?://[^/\s]+/)?([\w.-]+/[\w.-]+?)(?:/tree/[^\s]*)?/?")

Request = Mapping[str, Any]
Reporter = Callable[..., None]


def search(request: Request, _: Reporter) -> list[dict[str, object]]:
    """Search by words, or look up one repository by its id or address. Return what was found."""
    words = str(request["words"]).strip()
    api = HfApi()
    if address := _ADDRESS.fullmatch(words):
        return [asdict(_found(api.model_info(address[1], expand=_FIELDS)))]
    found: dict[str, FoundModel] = {}
    for library in ("mlx", "gguf"):
        models = api.list_models(
            search=words, filter=library, sort="downloads", limit=_MAX_FOUND, expand=_FIELDS
        )
        for info in islice(models, _MAX_FOUND):
            found.setdefault(info.id, _found(info))
    return [asdict(one) for one in found.values()]


def details(request: Request, _: Reporter) -> dict[str, object]:
    """Return the files of a repository and its config.json."""
    info = HfApi().model_info(request["repo_id"], files_metadata=True)
    files = needed_files(info)
    choices = [
        (file.rfilename, sum(part.size or 0 for part in needed_files(info, file.rfilename)))
        for file in info.siblings or ()
        if _is_choice(file.rfilename)
    ]
    gguf = cast("dict[str, object] | None", info.gguf)
    has_weights = any(file.rfilename.endswith(".safetensors") for file in files)
    return {
        "found": asdict(_found(info)),
        "revision": info.sha,
        "files": [(file.rfilename, file.size or 0) for file in files] if has_weights else [],
        "choices": choices,
        "architecture": str(gguf.get("architecture", "")) if gguf else "",
        "config": _config(info) if has_weights else "",
    }


def _is_choice(path: str) -> bool:
    """Return True for a GGUF file with a model, of which only the first part if it has several."""
    is_projector = path.rpartition("/")[2].startswith("mmproj")
    return path.endswith(".gguf") and not is_projector and first_part(path) == path


def header(request: Request, _: Reporter) -> int:
    """Store the header of a GGUF file in the file "target". Return its bytes.

    At most _MAX_HEADER bytes are fetched. If the header is longer or broken, return 0.
    """
    # Import late, because numpy is slow to import, and no other call needs it.
    from engine.gguf.reader import header_len  # noqa: PLC0415

    path = str(request["path"])
    url = hf_hub_url(request["repo_id"], path, revision=request["revision"])
    headers = {**build_hf_headers(), "Range": f"bytes=0-{_MAX_HEADER - 1}"}
    content, step = b"", _FIRST_HEADER
    with get_session().stream("GET", url, headers=headers, follow_redirects=True) as response:
        hf_raise_for_status(response)
        for part in response.iter_bytes(_FIRST_HEADER):
            content += part
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


def _header_len(measure: Callable[[bytes, str], int | None], content: bytes, path: str) -> int:
    try:
        return measure(content[:_MAX_HEADER], path) or 0
    except EngineError:
        return 0


def download(request: Request, report: Reporter) -> dict[str, object]:
    """Download a repository or one GGUF file of it. Report commit, bytes on disk, total bytes."""
    info = HfApi().model_info(
        request["repo_id"], revision=request.get("revision") or None, files_metadata=True
    )
    files = needed_files(info, request.get("chosen", ""))
    if not any(file.rfilename.endswith((".safetensors", ".gguf")) for file in files):
        raise LookupError(request["repo_id"])
    total = sum(file.size or 0 for file in files)
    target = _target(request, str(info.sha))
    fetch_all(target, files, lambda done: report(revision=info.sha, done=done, total=total))
    folder = target.folder / "snapshots" / target.revision
    return {"revision": info.sha, "total": total, "folder": str(folder)}


def cancel(request: Request, _: Reporter) -> None:
    """Remove the partial files of a download. Opens no connection."""
    discard(_target(request, request["revision"]))


def _target(request: Request, revision: str) -> Target:
    return Target(request["repo_id"], revision, Path(constants.HF_HUB_CACHE))


def _config(info: ModelInfo) -> str:
    """Return the text of config.json, without putting the file into the cache."""
    url = hf_hub_url(info.id, "config.json", revision=info.sha)
    with get_session().stream(
        "GET", url, headers=build_hf_headers(), follow_redirects=True
    ) as response:
        if response.status_code == HTTPStatus.NOT_FOUND:
            return ""
        hf_raise_for_status(response)
        text = b""
        for part in response.iter_bytes():
            text += part
            if len(text) > _MAX_CONFIG:
                return ""
    return text.decode("utf-8", "replace")


def _found(info: ModelInfo) -> FoundModel:
    name = info.id.rpartition("/")[2]
    tags = info.tags or []
    size, bits = _PARAMETERS.search(name), _BITS.search(name)
    licences = (tag.removeprefix("license:") for tag in tags if tag.startswith("license:"))
    return FoundModel(
        repo_id=info.id,
        parameters=size[1].upper() if size else "",
        bits=next((group for group in bits.groups() if group), "") if bits else "",
        downloads=info.downloads or 0,
        updated=info.last_modified.date().isoformat() if info.last_modified else "",
        licence=next(licences, ""),
        is_gated=bool(info.gated),
        is_mlx="mlx" in tags,
    )


CALLS: Mapping[str, Callable[[Request, Reporter], object]] = {
    call.__name__: call for call in (search, details, header, download, cancel)
}
