"""Plan and carry out the removal of a model from this machine.

A repository in the Hub's cache is deleted by huggingface_hub's own function, which knows which blobs
repositories share. Everything else is moved to the Trash. No connection is opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.catalog.card import ModelSource
from engine.catalog.installed import InstalledModel, read_layers
from engine.catalog.reading import FolderReader, is_folder
from engine.catalog.trash import move_to_trash
from engine.errors import DiskError, UserFixableError

if TYPE_CHECKING:
    from huggingface_hub import DeleteCacheStrategy

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

_MAX_REFERENCE: Final = 1000  # bytes of a file with the id of a revision


class RemovalError(UserFixableError):
    """A model must not be removed by the app."""

    title = "This model can’t be removed here."
    advice = "Remove its files in the Finder."


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalPlan:
    """The files and folders that a removal takes, and the bytes that come free."""

    model: InstalledModel
    paths: tuple[Path, ...]
    freed_bytes: int
    uses_trash: bool  # False: the files are deleted at once, by huggingface_hub


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
        return _plan_repository(model)
    others = [other for other in others if other.owned != model.owned]
    paths = (*model.owned, *(_unshared_blobs(model) if model.source is ModelSource.OLLAMA else ()))
    shared = {os.path.realpath(file) for other in others for file in other.files}
    if any(os.path.realpath(path) in shared for path in paths):
        raise RemovalError("Another model uses the same file.")
    for path in paths:
        _require_only_a_model(path)
    freed = _unlinked_bytes(file for file in model.files if _is_below(file, paths))
    return RemovalPlan(model=model, paths=paths, freed_bytes=freed, uses_trash=True)


def remove(plan: RemovalPlan, trash: Callable[[Path], None] = move_to_trash) -> None:
    """Carry out a plan.

    Args:
        plan: the plan.
        trash: moves a file or a folder to the Trash.

    Raises:
        DiskError: a file cannot be moved or deleted.
        RemovalError: the model has changed since the plan was made.
    """
    _require_inside(plan.model)
    if plan.uses_trash:
        for path in plan.paths:
            _require_only_a_model(path)
            trash(path)
        return
    _strategy(plan.model).execute()
    left = [path for path in plan.paths if os.path.lexists(path)]
    if left:
        raise DiskError(f"{left[0]} can’t be deleted.", advice="Remove it in the Finder.")


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
    for manifest in _manifests(model.root / "manifests", reader):
        if manifest not in model.owned:
            layers = read_layers(manifest)
            if layers is None:
                raise RemovalError(f"{manifest} can’t be read, and may name the same files.")
            kept |= {f"sha256-{layer.digest}" for layer in layers}
    if reader.is_exhausted:
        raise RemovalError(f"{model.root} has too many files to check.")
    return tuple(file for file in model.files if file.name not in kept and file not in model.owned)


def _manifests(folder: Path, reader: FolderReader) -> Iterable[Path]:
    for entry in reader.entries(folder):
        if entry.is_symlink():
            continue
        if is_folder(entry):
            yield from _manifests(folder / entry.name, reader)
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


def _plan_repository(model: InstalledModel) -> RemovalPlan:
    strategy = _strategy(model)
    return RemovalPlan(
        model=model,
        paths=model.owned,
        freed_bytes=strategy.expected_freed_size,
        uses_trash=False,
    )


def _strategy(model: InstalledModel) -> DeleteCacheStrategy:
    """Return huggingface_hub's plan to delete all revisions of a repository."""
    # Import late: the import takes a third of a second.
    from huggingface_hub import scan_cache_dir  # noqa: PLC0415

    repository = model.owned[0]
    _require_readable(model.root)
    try:
        cache = scan_cache_dir(model.root)
        found = [repo for repo in cache.repos if repo.repo_path.name == repository.name]
        strategy = cache.delete_revisions(
            *(revision.commit_hash for repo in found for revision in repo.revisions)
        )
    except (OSError, ValueError) as error:
        raise DiskError(f"The cache {model.root} can’t be read: {error}.") from error
    # All revisions go, so the whole folder goes. Single blobs could be links to other places.
    if {path.name for path in strategy.repos} != {repository.name} or strategy.blobs:
        raise RemovalError(f"{repository} has no complete revision.")
    return strategy


def _require_readable(cache: Path) -> None:
    """Refuse a cache in which huggingface_hub would wait for a pipe or read a huge file."""
    reader = FolderReader()
    for repository in reader.entries(cache):
        for path in _manifests(cache / repository.name / "refs", reader):
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_REFERENCE:
                raise RemovalError(f"{path} is not a reference to a revision.")
