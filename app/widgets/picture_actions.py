"""Open, copy and save attached pictures. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QWidget

from app.conversation.attachments import AttachedPicture, Attachment
from app.theme.palette import Theme
from app.widgets.dialogs import ask_where_to_save
from app.widgets.picture_window import PictureWindow
from app.widgets.transcript.rows.picture_shelf import PictureShelf
from app.words import attachments as words

MakeFull = Callable[[AttachedPicture, Callable[[AttachedPicture], None]], None]


class PictureActions(QObject):
    """The actions on the pictures of drafts and of sent messages."""

    said = Signal(str)  # argument: a problem, as a sentence for the user

    def __init__(
        self, theme: Theme, pictures: PictureShelf, make_full: MakeFull, parent: QWidget
    ) -> None:
        """Create the actions. make_full: makes the view of a picture in the size FULL."""
        super().__init__(parent)
        self._make_full = make_full
        self._theme = theme
        self._pictures = pictures
        self._window = parent
        self._copied: AttachedPicture | None = None  # the picture that will be on the clipboard
        pictures.whole_read.connect(self._on_read)

    def open(self, attachment: Attachment) -> None:
        """Show a picture in a window of its own."""
        window = PictureWindow(self._theme, self._pictures, attachment, self._window.window())
        window.save_requested.connect(self.save)
        window.show()
        picture = attachment.picture
        assert picture is not None
        # Other files may be opened first, for minutes. The window shows the model's view until
        # then.
        self._pictures.read_whole(picture, picture.view)
        self._read_full(picture)

    def copy(self, attachment: Attachment) -> None:
        """Put a picture on the clipboard."""
        picture = attachment.picture
        assert picture is not None
        self._copied = picture
        self._read_full(picture)

    def save(self, attachment: Attachment) -> None:
        """Ask for a place, and save the user's file there, without its metadata."""
        picture = attachment.picture
        assert picture is not None
        name = f"{Path(attachment.name).stem}.{picture.extension}"

        def save(path: Path) -> None:
            self._pictures.save_original(picture, path, lambda one: self.said.emit(str(one)))

        ask_where_to_save(self._window, name, save)

    def _read_full(self, picture: AttachedPicture) -> None:
        """Read a picture in the size FULL. The shelf emits it."""
        self._make_full(picture, lambda full: self._pictures.read_whole(picture, full.view))

    def _on_read(self, picture: AttachedPicture, image: QImage | None) -> None:
        if picture is not self._copied:
            return
        self._copied = None
        if image is None:
            self.said.emit(words.NOT_COPIED)
        else:
            QGuiApplication.clipboard().setImage(image)
