"""The connection between the files in the editor of a message and their controller. Main thread."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtGui import QImage

from app.controllers.core import Core
from app.controllers.requests import OpenEdit
from app.conversation.tree import NodeId
from app.settings import PictureSize
from app.viewmodels.picture_price import priced
from app.widgets.attaching import Attaching
from app.widgets.dialogs import ask_for_files
from app.widgets.transcript.editor.host import EditorHost
from app.widgets.transcript.rows.picture_shelf import png_of
from engine.types import ConversationId


class EditingFiles(QObject):
    """Shows the files of the message in the editor, and their prices."""

    def __init__(self, core: Core, host: EditorHost, attaching: Attaching) -> None:
        super().__init__(host)
        self._core = core
        self._files = core.edited_files
        self._host = host
        self._attaching = attaching
        core.prompt_sizes.watch_edit(lambda: self.edit)
        core.previews.watch_edit(lambda: self.edit)
        for changed in (host.edited, self._files.changed):
            changed.connect(self._refresh)
            changed.connect(core.prompt_sizes.note_edit)
            changed.connect(core.previews.note_edit)
        core.previews.message_read.connect(core.prompt_sizes.count_again)
        self._files.said.connect(attaching.said)
        core.picture_prices.changed.connect(self._refresh)
        core.prompt_sizes.changed.connect(self._refresh)
        host.cancelled.connect(self._cancel)
        host.attach_requested.connect(self._choose)
        host.files_added.connect(self._attach)
        host.image_pasted.connect(self._attach_image)
        host.file_removed.connect(self._remove)
        host.file_moved.connect(self._move)
        host.file_opened.connect(self._open)
        host.file_resized.connect(self._resize)

    @property
    def edit(self) -> OpenEdit | None:
        """The content of the open editor, or None."""
        edit = self._host.edit
        if edit is None:
            return None
        return OpenEdit(*edit, self._files.changed_files(NodeId(edit[0])))

    @property
    def _place(self) -> tuple[ConversationId, NodeId]:
        return self._core.library.current, NodeId(self._host.key)

    def _refresh(self) -> None:
        if self._host.edit is None:
            return
        files = self._files.files(*self._place)
        self._core.picture_prices.note_edited(
            tuple(file.picture for file in files if file.picture is not None)
        )
        price, to_read = self._core.picture_prices.price, self._core.prompt_sizes.to_read
        is_instant = to_read is not None and to_read.is_instant
        num_read = self._files.num_unchanged(*self._place)
        chips = enumerate(self._files.chips(*self._place))
        self._host.set_files(
            [priced(chip, price, is_instant=is_instant or at < num_read) for at, chip in chips],
            are_changed=self._files.is_changed(self._place[1]),
        )

    def _choose(self) -> None:
        place = self._place
        ask_for_files(self._attaching.window, lambda paths: self._files.attach(*place, paths))

    def _attach(self, paths: tuple[Path, ...]) -> None:
        self._files.attach(*self._place, paths)

    def _attach_image(self, image: bytes | QImage) -> None:
        content = partial(png_of, image) if isinstance(image, QImage) else lambda: image
        self._files.attach(*self._place, [content])

    def _cancel(self, key: str) -> None:
        self._files.cancel_openings(NodeId(key))

    def _remove(self, place: int) -> None:
        self._files.remove(*self._place, place)

    def _move(self, place: int, to: int) -> None:
        self._files.move(*self._place, place, to)

    def _open(self, place: int) -> None:
        files = self._files.files(*self._place)
        if place < len(files):
            self._attaching.open(files[place])

    def _resize(self, place: int, size: PictureSize) -> None:
        self._files.resize(*self._place, place, size)
