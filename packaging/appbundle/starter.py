"""Imports the starter model during the build and puts it into the bundle.

The app loads the model from the bundle, so the first launch has nothing to import or copy.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from appbundle.spec import BundleLayout
from engine.catalog.starter import find_starter_file, starter_folder
from engine.gguf.importer import import_once


def add_starter(layout: BundleLayout, cache: Path) -> None:
    """Copy the folder of the starter model into the bundle.

    If `cache` has no such folder, import the model into `cache` first.

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
        # Imported files are readable by their owner only. copyfile() does not copy the mode, so all
        # users may read the copy.
        shutil.copyfile(file, target / file.name)
