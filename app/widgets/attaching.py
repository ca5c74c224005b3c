"""The chat pane's part for attached files: chips, offers, opening and dropping. Main thread."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QMimeData, QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QImage
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.conversation.attachments import PICTURE, Attachment
from app.conversation.tree import NodeId
from app.settings import PictureSize
from app.viewmodels.picture_price import priced
from app.widgets.composer import Composer
from app.widgets.dialogs import ask_for_files
from app.widgets.long_files import LongFiles
from app.widgets.message_edit import image_of
from app.widgets.picture_actions import PictureActions
from app.widgets.transcript.input.click_actions import PictureAction
from app.widgets.transcript.rows.picture_shelf import png_of
from app.widgets.unseen_pictures import UnseenPictures
from app.words import attachments as words
from engine.types import ConversationId


class Attaching(QObject):
    """The connection of the composer's files to their controller."""

    # arguments: ConversationId that the problem is about, the problem as a sentence for the user
    said = Signal(object, str)
    text_requested = Signal(object)  # argument: Attachment whose text is shown
    noted = Signal(str)  # argument: a sentence that soon is no longer true

    def __init__(
        self,
        core: Core,
        composer: Composer,
        offer: LongFiles,
        unseen: UnseenPictures,
        pictures: PictureActions,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._core = core
        self._files = core.attachments
        self._composer = composer
        self._offer = offer
        self._unseen = unseen
        unseen.changed.connect(self._refresh_send)
        self._refresh_send()
        self.window = parent
        self._pictures = pictures
        pictures.said.connect(self._report)
        self._files.changed.connect(self._on_changed)
        self._files.said.connect(self.said)
        composer.files.removed.connect(self._remove)
        composer.files.moved.connect(self._move)
        composer.files.opened.connect(self._open_draft_file)
        composer.files_added.connect(self.attach)
        composer.image_pasted.connect(self._attach_image)
        composer.files.resized.connect(self._resize)
        core.picture_prices.changed.connect(self.refresh)
        core.prompt_sizes.changed.connect(self.refresh)
        offer.first_part_requested.connect(lambda: self._files.use_first_part(self._shown))
        offer.pages_requested.connect(self._use_pages)
        offer.model_requested.connect(self._use_model)

    def choose(self) -> None:
        """Ask for files, and attach them."""
        ask_for_files(self.window, self.attach)

    def attach(self, paths: Iterable[Path]) -> None:
        self._files.attach(self._shown, tuple(paths))
        self._composer.edit.setFocus()

    def _attach_image(self, image: bytes | QImage) -> None:
        self._files.attach_image(
            self._shown, partial(png_of, image) if isinstance(image, QImage) else lambda: image
        )

    def _resize(self, place: int, size: PictureSize) -> None:
        self._files.resize(self._shown, place, size)

    def drop(self, mime: QMimeData) -> None:
        """Attach dropped files and pictures, and load dropped models. A web address is refused."""
        paths = local_paths(mime)
        if paths:
            self._core.open_files(paths)
            self._composer.edit.setFocus()
        elif mime.hasImage():
            self._attach_image(image_of(mime))
            self._composer.edit.setFocus()
        else:
            self._report(words.MESSAGE_LINK)

    def refresh(self) -> None:
        """Show the files of the conversation on show."""
        files = self._files
        price, to_read = self._core.picture_prices.price, self._core.prompt_sizes.to_read
        is_instant = to_read is not None and to_read.is_instant
        chips = [priced(chip, price, is_instant=is_instant) for chip in files.chips]
        self._composer.show_files(chips)
        card = files.fitting_model
        self._offer.show_offer(
            files.excess_note,
            paged_file=files.paged_file,
            model_name="" if card is None else card.title,
        )

    def _refresh_send(self) -> None:
        self._composer.set_blocked(bool(self._unseen.note))

    def may_send(self) -> bool:
        """Return True if the files can be sent. Otherwise say why not."""
        if self._files.is_opening(self._shown):
            self.noted.emit(words.WAIT)
            return False
        if self._unseen.note:
            self.noted.emit(self._unseen.note)
            return False
        if self._files.excess is not None:
            self.noted.emit(self._files.excess_note)
            return False
        return True

    def open_sent_file(self, key: str, place: int) -> None:
        """Open a file of a sent message in its own app, and show the text of a document."""
        node = self._core.desk.get(self._shown).nodes[NodeId(key)]
        file = node.attachments[place]
        if file.from_folder:
            self.text_requested.emit(file)  # the file itself may have changed
        else:
            self.open(file)

    def act_on_sent_picture(self, key: str, place: int, action: PictureAction) -> None:
        """Carry out an action on a picture of a sent message."""
        conversation_id = self._shown
        node = self._core.desk.get(conversation_id).nodes[NodeId(key)]
        attachment = node.attachments[place]
        match action:
            case PictureAction.OPEN:
                self._pictures.open(attachment)
            case PictureAction.COPY:
                self._pictures.copy(attachment)
            case PictureAction.SAVE:
                self._pictures.save(attachment)
            case PictureAction.SEND_WITHOUT:
                others = (*node.attachments[:place], *node.attachments[place + 1 :])
                self._core.chat.edit(conversation_id, node.node_id, node.content, others)

    @property
    def _shown(self) -> ConversationId:
        return self._core.library.current

    def _on_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._shown:
            self.refresh()

    def _remove(self, place: int) -> None:
        self._files.remove(self._shown, place)

    def _move(self, place: int, to: int) -> None:
        self._files.move(self._shown, place, to)

    def _open_draft_file(self, place: int) -> None:
        files = self._core.desk.get(self._shown).draft_attachments
        if place < len(files):
            self.open(files[place])

    def open(self, file: Attachment) -> None:
        """Show a picture, or open the file of a text in its own app."""
        if file.picture is not None:
            self._pictures.open(file)
            return
        if file.kind == PICTURE:
            self._report(words.lost_picture(file.name))
            return
        path = Path(file.source) if file.source else None
        if path is None or not path.is_file():
            self._report(words.source_gone(file.name))
        else:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))

    def _report(self, text: str) -> None:
        self.said.emit(self._shown, text)

    def _use_pages(self, pages: tuple[range, ...]) -> None:
        if problem := self._files.use_pages(self._shown, pages):
            self._report(problem)

    def _use_model(self) -> None:
        card = self._files.fitting_model
        if card is not None:
            self._core.models.choose(card.path)


def has_droppable(mime: QMimeData) -> bool:
    """Return True for files, pictures and web addresses. The latter are refused with a sentence."""
    return mime.hasUrls() or mime.hasImage()


def local_paths(mime: QMimeData) -> tuple[Path, ...]:
    return tuple(Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile())
