"""The Hub's answers about repositories, as checked values. Runs in the child process.

Nothing of an answer is used before it is checked here: ids, commits, hashes, sizes and file names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatch
from typing import Any, Final, cast

from app.hub.connection import AnswerError
from app.hub.values import FoundModel, is_commit, is_repo_id, printable
from engine.catalog.model_config import SEEING_TYPES

# The files that a model needs. No file with code and no pickle is ever fetched.
_NEEDED = ("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken")
_NOT_NEEDED = (
    *(".*", "*/*", "onnx*", "*.bin.index.json"),
    *("pytorch_model*", "consolidated*", "adapter_*"),
)
WEIGHTS: Final = (".safetensors", ".gguf")
_MAX_FILES = 10_000  # maximum number of files in a repository
_MAX_CHOICES = 1_000  # maximum number of GGUF files to choose from
_MAX_SIZE = 1 << 50  # maximum bytes of a file
_MAX_PATH = 500  # maximum bytes of a file's path
_MAX_NAME = 200  # maximum bytes of a name in a path
_MAX_TEXT = 60  # maximum characters of a licence or an architecture
_PART = re.compile(r"-\d{5}-of-(?=\d{5}\.gguf$)")
_PARAMETERS = re.compile(
    r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?[BM](?:-A\d+(?:\.\d+)?B)?)(?![A-Za-z0-9])", re.IGNORECASE
)
_BITS = re.compile(r"(?<![A-Za-z0-9])(\d{1,2})[-_]?bit|[QI]Q?(\d)_|mxfp(\d)", re.IGNORECASE)
# Kinds of models that accept pictures, as the Hub names them. mlx-lm uploads a copy without a
# vision tower as "text-generation", mlx-vlm one with a tower as what the original model is.
_SEEING_TASKS: Final = ("image-text-to-text", "any-to-any")
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Characters and names that a file system of another system than macOS refuses or interprets.
_FOREIGN = frozenset('\\:*?"<>|')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


class ManyFilesError(AnswerError):
    """A repository has more files than the limit."""


class FileNameError(AnswerError):
    """A file that a model needs has a name that cannot be used. The text is the name."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a repository, as the Hub lists it."""

    path: str  # not checked before `needed_files` returns the file
    size: int
    digest: str  # SHA-256 of a file in Git LFS, Git's SHA-1 of any other file; "" if not stated

    @property
    def is_weights(self) -> bool:
        return self.path.endswith(WEIGHTS)


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at one commit."""

    found: FoundModel
    commit: str
    files: tuple[ListedFile, ...]
    architecture: str  # of its GGUF files, "" if the Hub does not state it


def found_model(row: object) -> FoundModel:
    """Convert what the Hub lists about a repository.

    Raises:
        AnswerError: its id cannot be used, or a field has the wrong type.
    """
    values = _mapping(row)
    repo_id = _text(values.get("id"))
    if not is_repo_id(repo_id):
        raise AnswerError("id")
    tags = [_text(tag) for tag in _rows(values.get("tags"))]
    name = repo_id.rpartition("/")[2]
    size, bits = _PARAMETERS.search(name), _BITS.search(name)
    licences = (tag.removeprefix("license:") for tag in tags if tag.startswith("license:"))
    return FoundModel(
        repo_id=repo_id,
        parameters=size[1].upper() if size else "",
        bits=next((group for group in bits.groups() if group), "") if bits else "",
        downloads=_size(values.get("downloads")),
        updated=_day(_text(values.get("lastModified"))),
        licence=printable(next(licences, ""), _MAX_TEXT),
        is_gated=bool(values.get("gated")),
        is_mlx="mlx" in tags,
        sees=_can_see(values, tags),
    )


def found_models(answer: object) -> list[FoundModel]:
    """Convert the Hub's answer to a search, without repositories whose id cannot be used.

    Raises:
        AnswerError: a field has the wrong type.
    """
    rows = map(_mapping, _rows(answer))
    return [found_model(row) for row in rows if is_repo_id(_text(row.get("id")))]


def repository(answer: object) -> Repository:
    """Convert the Hub's description of a repository.

    Raises:
        AnswerError: a field is missing or wrong, or there are too many files.
    """
    values = _mapping(answer)
    commit = _text(values.get("sha"))
    if not is_commit(commit):
        raise AnswerError("commit")
    rows = _rows(values.get("siblings"))
    if len(rows) > _MAX_FILES:
        raise ManyFilesError(str(len(rows)))
    gguf = _mapping(values.get("gguf") or {})
    return Repository(
        found_model(values),
        commit,
        tuple(_file(row) for row in map(_mapping, rows) if row.get("size") is not None),
        printable(_text(gguf.get("architecture")), _MAX_TEXT),
    )


def needed_files(files: Iterable[ListedFile], chosen: str = "") -> list[ListedFile]:
    """Return the files that a model needs, small ones first.

    Args:
        files: the files of the repository.
        chosen: a GGUF file. Then only this file is needed, with its other parts if it has any.

    Raises:
        FileNameError: a needed file has a name that cannot be used.
    """
    if chosen:
        needed = [file for file in files if first_part(file.path) == first_part(chosen)]
    else:
        needed = sorted((f for f in files if _is_needed(f.path)), key=lambda file: file.size)
    seen: set[str] = set()
    for file in needed:
        # Most disks of Macs do not distinguish upper and lower case.
        folded = unicodedata.normalize("NFC", file.path).casefold()
        if not is_usable(file.path) or folded in seen:
            raise FileNameError(file.path)
        seen.add(folded)
    return needed


def choices(files: Iterable[ListedFile]) -> list[tuple[str, int]]:
    """Return the GGUF files with a model and their sizes, of a file in parts the first one.

    Raises:
        ManyFilesError: there are too many.
    """
    sizes: dict[str, int] = {}
    first: set[str] = set()
    for file in files:
        if file.path.endswith(".gguf") and is_usable(file.path):
            part = first_part(file.path)
            sizes[part] = sizes.get(part, 0) + file.size
            if part == file.path and not part.rpartition("/")[2].startswith("mmproj"):
                first.add(part)
    if len(first) > _MAX_CHOICES:
        raise ManyFilesError(str(len(first)))
    return [(path, size) for path, size in sizes.items() if path in first]


def first_part(path: str) -> str:
    """Return the path of the first part of a GGUF file in parts, and the path of any other file."""
    return _PART.sub("-00001-of-", path)


def is_usable(path: str) -> bool:
    """Return True if a path of a repository can be the path of a file below a folder."""
    return (
        path.isprintable()
        and len(path.encode()) <= _MAX_PATH
        and all(_is_name(name) for name in path.split("/"))
    )


def _can_see(values: Mapping[str, Any], tags: Sequence[str]) -> bool:
    """Return True if the Hub lists a model as one that the app can give pictures to.

    The type of a model is one of its tags. The configuration would name it too, but has the chat
    template, which makes the answer to a search a hundred times longer.
    """
    is_seeing_type = not SEEING_TYPES.keys().isdisjoint(tags)
    return "mlx" in tags and is_seeing_type and values.get("pipeline_tag") in _SEEING_TASKS


def _is_name(name: str) -> bool:
    return (
        0 < len(name.encode()) <= _MAX_NAME
        and not name.startswith(".")
        and not name.endswith(".")
        and name == name.strip()
        and _FOREIGN.isdisjoint(name)
        and _RESERVED.fullmatch(name) is None
    )


def _is_needed(path: str) -> bool:
    return any(fnmatch(path, pattern) for pattern in _NEEDED) and not any(
        fnmatch(path, pattern) for pattern in _NOT_NEEDED
    )


def _file(row: Mapping[str, Any]) -> ListedFile:
    lfs = _mapping(row.get("lfs") or {})
    digest = _text(lfs.get("sha256") if lfs else row.get("blobId"))
    if digest and (_DIGEST.fullmatch(digest) is None or (len(digest) == 64) != bool(lfs)):
        raise AnswerError("hash")
    path = row.get("rfilename")
    if not isinstance(path, str):
        raise AnswerError("file")
    return ListedFile(path, _size(row["size"]), digest)


def _day(text: str) -> str:
    """Return the date of a time of the Hub, or "" if it is none."""
    try:
        return date.fromisoformat(text.partition("T")[0]).isoformat()
    except ValueError:
        return ""


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise AnswerError("object")
    return cast("Mapping[str, Any]", value)


def _rows(value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise AnswerError("list")
    return cast("list[object]", value)


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AnswerError("text")
    return value


def _size(value: object) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or not 0 <= value <= _MAX_SIZE:
        raise AnswerError("number")
    return value
