"""The files of attached pictures in the data folder. Their names are digests, so each is stored once."""

from __future__ import annotations

from pathlib import Path

from app.conversation.attachments import AttachedPicture
from engine.types import Picture


class PictureFiles:
    """The folder of the stored pictures. Any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def original(self, picture: AttachedPicture) -> Path:
        """Return the path of the user's file, without its metadata."""
        return self.folder / f"{picture.original}.{picture.extension}"

    def view(self, picture: Picture) -> Path:
        """Return the path of a PNG file with the pixels that a model gets."""
        return self.folder / f"{picture.digest}.png"

    def thumbnail(self, picture: AttachedPicture) -> Path:
        """Return the path of a PNG file with at most 640 pixels a side, turned upright."""
        return self.folder / f"{picture.original}.small.png"
