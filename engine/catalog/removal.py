"""Plan and carry out the removal of a model from this machine.

Files and folders go to the Trash. Of a repository in the Hub's cache, the whole folder does, with
all its revisions: repositories share no blobs. No connection is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.catalog.card import ModelSource
from engine.catalog.installed import InstalledModel, read_layers
from engine.catalog.reading import FolderReader, is_folder
from engine.catalog.trash import move_to_trash
from engine.errors import UserFixableError

# Folders that may lie in a model folder. Any other folder means that it holds more than a model.
_SUBFOLDERS: Final = frozenset(
    {
        ".cache",
        ".git",
        "additional_chat_templates",
        "chat_templates",
        "original",
        "figures",
        "assets",
    }
)


class RemovalError(UserFixableError):
    """A model must not be removed by the app."""

    title = "This model can’t be removed here."
    advice = "Remove its files in the Finder."


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalPlan:
    """The files and folders that a removal takes, and the bytes that come free."""

    model: InstalledModel
    paths: tuple[Path, ...]
    freed_bytes: int  # once the Trash is emptied


def plan_removal(
    model: InstalledModel, roots: Iterable[Path], others: Iterable[InstalledModel]
) -> RemovalPlan:
    """Return what the removal of a model would do.

    Args:
        model: the model.
        roots: the known places of models.
        others: all models on this machine. A file that one of them needs stays.

    Raises:
        RemovalError: the model lies outside the known places, or its folder holds other things.
    """
    if model.source is ModelSource.STARTER:
        raise RemovalError("It belongs to the app.", advice="")
    known = {os.path.realpath(root) for root in roots}
    if os.path.realpath(model.root) not in known:
        raise RemovalError(f"{model.path} lies outside the folders of models.")
    _require_inside(model)
    if model.repo_id:
        freed = _unlinked_bytes(_files_below(model.owned[0], FolderReader()))
        return RemovalPlan(model=model, paths=model.owned, freed_bytes=freed)
    others = [other for other in others if other.owned != model.owned]
    paths = (*model.owned, *(_unshared_blobs(model) if model.source is ModelSource.OLLAMA else ()))
    shared = {os.path.realpath(file) for other in others for file in other.files}
    if any(os.path.realpath(path) in shared for path in paths):
        raise RemovalError("Another model uses the same file.")
    for path in paths:
        _require_only_a_model(path)
    freed = _unlinked_bytes(file for file in model.files if _is_below(file, paths))
    return RemovalPlan(model=model, paths=paths, freed_bytes=freed)


def remove(plan: RemovalPlan, trash: Callable[[Path], None] = move_to_trash) -> None:
    """Carry out a plan.

    Args:
        plan: the plan. What is already gone is skipped.
        trash: moves a file or a folder to the Trash, or deletes it.

    Raises:
        DiskError: a file cannot be moved or deleted.
        RemovalError: the model has changed since the plan was made.
    """
    _require_inside(plan.model)
    for path in plan.paths:
        if os.path.lexists(path):
            if not plan.model.repo_id:
                _require_only_a_model(path)
            trash(path)


def _require_inside(model: InstalledModel) -> None:
    """Refuse a path that is a link, or that links above it lead out of its root."""
    root = os.path.realpath(model.root)
    for path in model.owned:
        is_inside = Path(os.path.realpath(path.parent)).is_relative_to(root)
        if path.is_symlink() or not (is_inside or os.path.realpath(path) == root):
            raise RemovalError(f"{path} is a link to another place.")


def _require_only_a_model(path: Path) -> None:
    if not path.is_dir():
        return
    for entry in FolderReader().entries(path):
        if is_folder(entry) and entry.name not in _SUBFOLDERS:
            raise RemovalError(f"{path} also has the folder “{entry.name}”.")


def _unshared_blobs(model: InstalledModel) -> tuple[Path, ...]:
    """Return the blobs of a model in Ollama's store that no other manifest names."""
    kept: set[str] = set()
    reader = FolderReader()
    for manifest in _files_below(model.root / "manifests", reader):
        if manifest not in model.owned:
            layers = read_layers(manifest)
            if layers is None:
                raise RemovalError(f"{manifest} can’t be read, and may name the same files.")
            kept |= {f"sha256-{layer.digest}" for layer in layers}
    if reader.is_exhausted:
        raise RemovalError(f"{model.root} has too many files to check.")
    return tuple(file for file in model.files if file.name not in kept and file not in model.owned)


def _files_below(folder: Path, reader: FolderReader) -> Iterable[Path]:
    for entry in reader.entries(folder):
        if entry.is_symlink():
            continue
        if is_folder(entry):
            yield from _files_below(folder / entry.name, reader)
        else:
            yield folder / entry.name


def _is_below(file: Path, paths: tuple[Path, ...]) -> bool:
    return any(file.is_relative_to(path) for path in paths)


def _unlinked_bytes(files: Iterable[Path]) -> int:
    """Return the bytes of files that have no second name elsewhere (hard link)."""
    found: dict[tuple[int, int], tuple[int, int, int]] = {}  # size, names, and names found here
    for file in files:
        try:
            status = file.lstat()
        except OSError:
            continue
        key = (status.st_dev, status.st_ino)
        seen = found[key][2] if key in found else 0
        found[key] = (status.st_size, status.st_nlink, seen + 1)
    return sum(size for size, names, seen in found.values() if seen >= names)
