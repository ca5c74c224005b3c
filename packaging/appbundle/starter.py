"""Puts the starter model into the bundle, imported while the app is built.

The app uses the model in its place in the bundle, so the first launch imports and copies nothing.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from appbundle.spec import BundleLayout
from engine.catalog.starter import find_starter_file, starter_folder
from engine.gguf.importer import import_once


def add_starter(layout: BundleLayout, cache: Path) -> None:
    """Import the model unless `cache` has it, and copy its folder into the bundle.

    Raises:
        FileNotFoundError: the package with the model is not installed.
    """
    source = find_starter_file()
    if source is None:
        raise FileNotFoundError("the starter model is not installed: run `make starter`")
    folder = starter_folder(cache)
    import_once(source, folder, lambda _done: None)
    target = layout.models / folder.name
    target.mkdir(parents=True)
    for file in folder.iterdir():
        shutil.copyfile(file, target / file.name)  # all users may read it, unlike the imported file
