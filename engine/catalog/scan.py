"""Find all model folders on this machine and make their model cards.

Model folders are only read: nothing is copied, moved or changed. `scan` reads JSON files and the
headers of weight files. `fingerprint` reads only names, sizes and times of files, so it is faster.
Callers call `scan` again only if the fingerprint has changed. Call on any worker thread.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.catalog.card import ModelCard, ModelSource
from engine.catalog.inspect import find_card
from engine.catalog.reading import FolderReader, is_folder
from engine.catalog.weights import INDEX_NAME, has_partial_download

# Number of levels below a root that are searched. Two levels are enough for publisher/model.
_MAX_DEPTH: Final = 2
# Prefix of the folders of model repositories in the Hugging Face cache.
_REPOSITORY: Final = "models--"
_NOT_MODELS: Final = (".", "datasets--", "spaces--")
# A folder with one of these files contains a pipeline for image generation or sentence embeddings,
# not a chat model.
_OTHER_KINDS: Final = frozenset({"model_index.json", "modules.json"})


@dataclass(frozen=True, slots=True)
class Root:
    """A folder to search. It is a model folder itself, or contains model folders."""

    path: Path
    source: ModelSource


def default_roots(
    starter: Path, folders: Sequence[Path], environment: Mapping[str, str], home: Path
) -> tuple[Root, ...]:
    """Return the folders to search, in order of precedence.

    The order is: the starter model, the Hugging Face cache, LM Studio's folders, the user's
    folders.
    """
    return (
        Root(starter, ModelSource.STARTER),
        Root(hub_cache(environment, home), ModelSource.HF_CACHE),
        Root(home / ".lmstudio" / "models", ModelSource.LM_STUDIO),
        Root(home / ".cache" / "lm-studio" / "models", ModelSource.LM_STUDIO),
        *(Root(folder, ModelSource.FOLDER) for folder in folders),
    )


def ollama_store(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder in which Ollama keeps manifests and blobs."""
    store = environment.get("OLLAMA_MODELS")
    return Path(store).expanduser() if store else home / ".ollama" / "models"


def scan(roots: Sequence[Root]) -> tuple[ModelCard, ...]:
    """Return the model cards of all chat models below the roots.

    The model cards are sorted by name, with the starter model last. If several roots or links lead
    to the same folder, the folder gets only one model card. The card names the source of the first
    root.
    """
    cards: dict[str, ModelCard] = {}
    for root in roots:
        for folder in _model_folders(root.path, FolderReader()):
            place = os.path.realpath(folder)
            if place not in cards and (card := find_card(folder, root.source)):
                cards[place] = card
    return tuple(
        sorted(
            cards.values(),
            key=lambda card: (card.is_starter, card.name.lower(), card.path),
        )
    )


def fingerprint(roots: Sequence[Root]) -> str:
    """Return a hash that changes whenever the result of `scan` would change."""
    digest = hashlib.sha256()
    for root in roots:
        reader = FolderReader()
        for folder in _model_folders(root.path, reader):
            digest.update(f"{root.source} {folder}\n".encode(errors="surrogateescape"))
            for entry in reader.entries(folder):
                digest.update(_stamp(entry).encode(errors="surrogateescape"))
    return digest.hexdigest()


def hub_cache(environment: Mapping[str, str], home: Path) -> Path:
    """Return huggingface_hub's cache folder.

    Read the same environment variables as huggingface_hub.
    """
    if hub := environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE"):
        return Path(hub).expanduser()
    if hf_home := environment.get("HF_HOME"):
        return Path(hf_home).expanduser() / "hub"
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else home / ".cache") / "huggingface" / "hub"


def _model_folders(root: Path, reader: FolderReader) -> Iterator[Path]:
    found = False
    for folder in _walk(root, _MAX_DEPTH, reader):
        found = True
        yield folder
    # If root has config.json but no weights, list it as a model, so that the user sees the problem.
    if not found and any(entry.name == "config.json" for entry in reader.entries(root)):
        yield root


def _walk(folder: Path, depth: int, reader: FolderReader) -> Iterator[Path]:
    entries = reader.entries(folder)
    if _is_model(folder, {entry.name for entry in entries}):
        yield folder
    elif folder.name.startswith(_REPOSITORY):
        yield from _snapshot(folder, reader)
    elif depth > 0:
        for entry in entries:
            if not entry.name.startswith(_NOT_MODELS) and is_folder(entry):
                yield from _walk(folder / entry.name, depth - 1, reader)


def _snapshot(repository: Path, reader: FolderReader) -> Iterator[Path]:
    """Yield one revision of a model repository.

    Yield the revision `main` if it contains a model, otherwise the newest revision with a model.
    """
    try:
        main = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        main = ""
    revisions = [entry for entry in reader.entries(repository / "snapshots") if is_folder(entry)]
    revisions.sort(key=lambda entry: (entry.name == main, _changed_ns(entry)), reverse=True)
    for revision in revisions:
        folder = Path(revision.path)
        if _is_model(folder, {entry.name for entry in reader.entries(folder)}):
            yield folder
            return


def _is_model(folder: Path, names: set[str]) -> bool:
    if "config.json" not in names or names & _OTHER_KINDS:
        return False
    has_weights = INDEX_NAME in names or any(name.endswith(".safetensors") for name in names)
    return has_weights or has_partial_download(folder)


def _changed_ns(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_mtime_ns
    except OSError:
        return 0


def _stamp(entry: os.DirEntry[str]) -> str:
    try:
        status = entry.stat()
    except OSError:
        return f"{entry.name} unreadable\n"
    return f"{entry.name} {status.st_size} {status.st_mtime_ns}\n"
