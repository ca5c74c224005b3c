"""Tokens and time that pictures in the composer and the editor cost, in each size. Main thread."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal

from app.controllers.chat_services import ChatServices
from app.conversation.attachments import AttachedPicture, view_size
from app.settings import PictureSize
from app.viewmodels.picture_price import PicturePrice
from engine.questions import PicturesCounted

ViewSize = tuple[int, int]  # width and height in pixels


class PicturePrices(QObject):
    """Asks the engine once for each size of a picture, as long as a model is loaded."""

    changed = Signal()

    def __init__(self, services: ChatServices) -> None:
        super().__init__()
        self._bridge = services.bridge
        self._desk = services.desk
        self._models = services.models
        self._library = services.library
        self._rate = services.rate
        self._facts = services.models.status.facts
        self._asked: set[ViewSize] = set()
        self._num_tokens: dict[ViewSize, int] = {}
        self._edited: tuple[AttachedPicture, ...] = ()  # the pictures in the editor of a message
        services.rate.changed.connect(self.changed)
        services.desk.changed.connect(self._refresh)
        services.library.current_changed.connect(self._refresh)
        services.models.status_changed.connect(self._refresh)

    def price(self, picture: AttachedPicture, size: PictureSize) -> PicturePrice | None:
        """Return the price of a picture in a size; None if it is not counted."""
        num_tokens = self._num_tokens.get(view_size(picture.width, picture.height, size))
        if num_tokens is None:
            return None
        return PicturePrice(num_tokens, self._rate.time(0, num_tokens))

    def note_edited(self, pictures: tuple[AttachedPicture, ...]) -> None:
        """Ask also for the pictures in the editor of a message."""
        if pictures != self._edited:
            self._edited = pictures
            self._refresh()

    def _refresh(self) -> None:
        """Ask for the sizes that are not known yet, of the draft on show and the editor.

        Each picture has a question of its own: one that the model refuses must not hide the others.
        """
        facts = self._models.status.facts
        if facts is not self._facts:
            self._facts = facts
            self._asked.clear()
            self._num_tokens.clear()
            self.changed.emit()
        if facts is None or not facts.sees:
            return
        files = self._desk.get(self._library.current).draft_attachments
        drafted = (file.picture for file in files if file.picture is not None)
        for picture in (*drafted, *self._edited):
            wanted = {view_size(picture.width, picture.height, size) for size in PictureSize}
            new = tuple(sorted(wanted - self._asked))
            if new:
                self._asked.update(new)
                asked = self._bridge.engine.count_pictures(new)
                self._bridge.when_answered(asked, partial(self._on_counted, facts.path, new))

    def _on_counted(self, path: str, sizes: tuple[ViewSize, ...], counted: PicturesCounted) -> None:
        facts = self._facts
        if facts is not None and facts.path == path:
            self._num_tokens.update(zip(sizes, counted.num_tokens, strict=True))
            self.changed.emit()
