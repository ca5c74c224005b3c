"""The starter model, imported while the app is built: the first launch finds it ready, and there is one copy."""

from __future__ import annotations

import shutil
from pathlib import Path

from appbundle.spec import BundleLayout
from engine.catalog.starter import find_starter_file, starter_folder
from engine.gguf.importer import import_once


def add_starter(layout: BundleLayout, cache: Path) -> None:
    """Put the model's folder into the bundle; it is imported once for many builds.

    Raises:
        FileNotFoundError: its package is not installed.
    """
    source = find_starter_file()
    if source is None:
        raise FileNotFoundError("the starter model is not installed: run `make starter`")
    folder = starter_folder(cache)
    import_once(source, folder, lambda _done: None)
    target = layout.models / folder.name
    target.mkdir(parents=True)
    for file in folder.iterdir():
        shutil.copyfile(file, target / file.name)  # everyone may read it, unlike an imported one
