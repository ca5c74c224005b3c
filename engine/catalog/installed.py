"""List the models on this machine's disk with their sizes, for a list that can also remove them.

A model is a model folder, a GGUF file, a GGUF file in parts, or a model in Ollama's store. Only
names and sizes are read, Ollama's manifests, and the first bytes of its blobs.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from engine.catalog.card import ModelCard, ModelSource
from engine.catalog.reading import FolderReader, is_folder
from engine.catalog.scan import Root
from engine.errors import printable
from engine.model_titles import model_title

# Levels below a root: publisher/model/file, and models--x/snapshots/commit/file in the Hub's cache.
_MAX_DEPTH: Final = 4
_MAX_MANIFEST: Final = 1_000_000  # bytes
_MANIFEST_DEPTH: Final = 5  # registry/namespace/model/tag
_REPOSITORY: Final = "models--"
_SUFFIX: Final = ".gguf"
_MAGIC: Final = b"GGUF"
_PROJECTOR: Final = "mmproj"  # image part of a model, in a file beside it
_PART: Final = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
_DIGEST: Final = re.compile(r"sha256[:-]([0-9a-f]{64})")
_OLLAMA_WEIGHTS: Final = "application/vnd.ollama.image.model"
_DEFAULT_NAMESPACE: Final = ("registry.ollama.ai", "library")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledModel:
    """A model on this machine's disk."""

    name: str
    source: ModelSource
    root: Path  # the place in which it was found
    path: Path  # the model folder, or the first GGUF file
    # Files and folders that belong to this model alone. In Ollama's store: its manifest.
    owned: tuple[Path, ...]
    files: tuple[Path, ...]  # all files whose bytes count, without those that links lead to
    is_gguf: bool = False  # True: the model must be imported before it can be loaded
    is_complete: bool = True  # False if parts are missing
    card: ModelCard | None = None  # None for GGUF files

    @property
    def title(self) -> str:
        """The name on screen."""
        return model_title(self.name)

    @property
    def size_bytes(self) -> int:
        """Bytes on the disk."""
        return total_bytes((self,))

    @property
    def repo_id(self) -> str:
        """The repository in the Hub's cache, such as "owner/name"; "" elsewhere."""
        repository = self.owned[0].name
        if self.source is not ModelSource.HF_CACHE or not repository.startswith(_REPOSITORY):
            return ""
        return repository.removeprefix(_REPOSITORY).replace("--", "/")


def total_bytes(models: Iterable[InstalledModel]) -> int:
    """Return the bytes that models take together. A file that several models share counts once."""
    found: dict[tuple[int, int], int] = {}
    for model in models:
        for file in model.files:
            if (status := _status(file)) is not None:
                found[status.st_dev, status.st_ino] = status.st_size
    return sum(found.values())


def of_card(card: ModelCard, roots: Sequence[Root]) -> InstalledModel:
    """Return the model of a model card that `scan` made from these roots."""
    root = next((r.path for r in roots if card.path.is_relative_to(r.path)), card.path)
    owned = card.path.parent.parent if card.path.parent.name == "snapshots" else card.path
    files = tuple(_files_below(owned, FolderReader(), _MAX_DEPTH))
    return InstalledModel(
        name=card.name,
        source=card.source,
        root=root,
        path=card.path,
        owned=(owned,),
        files=files,
        card=card,
    )


def find_gguf(roots: Sequence[Root]) -> Iterator[InstalledModel]:
    """Yield the models in GGUF files below the roots. A file in parts is one model."""
    seen: set[str] = set()
    for root in roots:
        reader = FolderReader()
        for folder in _folders_below(root.path, reader, _MAX_DEPTH):
            for model in _gguf_in(folder, root, reader):
                place = os.path.realpath(model.path)
                if place not in seen:
                    seen.add(place)
                    yield model


def find_ollama(store: Path) -> Iterator[InstalledModel]:
    """Yield the models in Ollama's store. Manifests that are broken are skipped."""
    manifests = store / "manifests"
    reader = FolderReader()
    for manifest in _files_below(manifests, reader, _MANIFEST_DEPTH):
        layers = read_layers(manifest)
        weights = next((layer for layer in layers or () if layer.is_weights), None)
        if layers is None or weights is None:
            continue
        blob = store / "blobs" / f"sha256-{weights.digest}"
        if not _is_gguf(blob) or not _lies_in(blob, store):
            continue
        files = tuple(store / "blobs" / f"sha256-{layer.digest}" for layer in layers)
        yield InstalledModel(
            name=printable(_ollama_name(manifest.relative_to(manifests).parts)),
            source=ModelSource.OLLAMA,
            root=store,
            path=blob,
            owned=(manifest,),
            files=(*(file for file in files if _lies_in(file, store)), manifest),
            is_gguf=True,
        )


@dataclass(frozen=True, slots=True)
class OllamaLayer:
    """A layer of a model in Ollama's store: weights, template, parameters or licence."""

    digest: str  # SHA-256 in hexadecimal
    is_weights: bool


def read_layers(manifest: Path) -> tuple[OllamaLayer, ...] | None:
    """Return the layers that a manifest names, or None if it is broken."""
    try:
        status = manifest.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_MANIFEST:
            return None
        content = cast("dict[str, Any]", json.loads(manifest.read_text(encoding="utf-8")))
        entries = (
            [content["config"], *content["layers"]] if "config" in content else content["layers"]
        )
        return tuple(
            OllamaLayer(digest[1], entry.get("mediaType") == _OLLAMA_WEIGHTS)
            for entry in entries
            if (digest := _DIGEST.fullmatch(entry["digest"]))
        )
    except (OSError, ValueError, RecursionError, TypeError, LookupError, AttributeError):
        return None


def _ollama_name(parts: tuple[str, ...]) -> str:
    """Return the name as Ollama shows it, such as "qwen3:4b" or "owner/model:tag"."""
    *place, tag = parts
    if tuple(place[:2]) == _DEFAULT_NAMESPACE:
        place = place[2:]
    elif place[:1] == [_DEFAULT_NAMESPACE[0]]:
        place = place[1:]
    return f"{'/'.join(place)}:{tag}"


def _gguf_in(folder: Path, root: Root, reader: FolderReader) -> Iterator[InstalledModel]:
    names = [
        entry.name
        for entry in reader.entries(folder)
        if entry.name.lower().endswith(_SUFFIX) and _PROJECTOR not in entry.name.lower()
    ]
    parts: dict[str, list[str]] = {}
    for name in names:
        part = _PART.fullmatch(name)
        parts.setdefault(f"{part['stem']}/{part['count']}" if part else name, []).append(name)
    for found in parts.values():
        part = _PART.fullmatch(found[0])
        files = tuple(folder / name for name in found)
        # In the Hub's cache a file is a link to its blob.
        targets = tuple(Path(os.path.realpath(file)) for file in files)
        if not _is_gguf(files[0]) or not all(_lies_in(target, root.path) for target in targets):
            continue
        yield InstalledModel(
            name=printable(part["stem"] if part else Path(found[0]).stem),
            source=root.source,
            root=root.path,
            path=files[0],
            owned=_repository_of(folder) or files,
            files=targets,
            is_gguf=True,
            is_complete=part is None or len(found) == int(part["count"]),
        )


def _repository_of(folder: Path) -> tuple[Path, ...]:
    """Return the repository's folder in the Hub's cache, or ()."""
    for place in (folder, *folder.parents[:_MAX_DEPTH]):
        if place.name.startswith(_REPOSITORY):
            return (place,)
    return ()


def _folders_below(folder: Path, reader: FolderReader, depth: int) -> Iterator[Path]:
    """Yield a folder and the folders below it. Links to folders are not followed."""
    yield folder
    if depth > 0:
        for entry in reader.entries(folder):
            if not entry.name.startswith(".") and is_folder(entry) and not entry.is_symlink():
                yield from _folders_below(folder / entry.name, reader, depth - 1)


def _files_below(folder: Path, reader: FolderReader, depth: int) -> Iterator[Path]:
    """Yield the files below a folder. Links are not followed and not counted."""
    for entry in reader.entries(folder):
        if entry.is_symlink():
            continue
        if not is_folder(entry):
            yield folder / entry.name
        elif depth > 0:
            yield from _files_below(folder / entry.name, reader, depth - 1)


def _is_gguf(path: Path) -> bool:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except (OSError, ValueError):
        return False


def _lies_in(path: Path, root: Path) -> bool:
    """Return True if a path lies in a folder after all links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _status(file: Path) -> os.stat_result | None:
    try:
        return file.lstat()
    except OSError:
        return None
