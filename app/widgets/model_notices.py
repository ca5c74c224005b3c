"""Toasts about models that have become complete, with a button that loads them. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject

from app.controllers.core import Core
from app.hub.values import Download
from app.viewmodels.models import model_name
from app.words import hub as words

# A function that shows a toast. Arguments: a sentence, the label of the button, its action.
OfferToast = Callable[[str, str, Callable[[], object]], None]


class ModelNotices(QObject):
    """The toasts about downloads, imports and smaller copies that have ended."""

    def __init__(self, core: Core, offer: OfferToast, parent: QObject) -> None:
        super().__init__(parent)
        self._core = core
        self._offer = offer
        core.hub.completed.connect(self._on_downloaded)
        core.copies.completed.connect(self._on_made)
        core.opening.imported.connect(self._on_made)

    def _on_downloaded(self, download: Download) -> None:
        if download.chosen:  # a GGUF file must be imported before it can be used
            self._core.opening.import_model(Path(download.folder, download.chosen))
        else:
            self._offer_use(download.title, Path(download.folder))

    def _on_made(self, path: Path) -> None:
        self._offer_use(model_name(path), path)

    def _offer_use(self, name: str, path: Path) -> None:
        self._offer(words.complete(name), words.USE, partial(self._core.models.choose, path))
