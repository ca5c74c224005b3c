"""Attached files and pictures in Rejoinder's own JSON. The package's docstring has the fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from app.conversation.attachments import (
    MAX_ATTACHMENTS,
    MAX_CHARS,
    MAX_DOCUMENTS,
    PICTURE,
    AttachedPicture,
    Attachment,
    Files,
    lost_picture,
    make_attachment,
    make_picture,
)
from app.conversation.text import FILE_NAME_LEN, clean_text, one_line
from app.exchange.data_urls import decode_data_url, make_data_url
from app.exchange.found import FoundPicture
from app.settings import PictureSize
from app.store.codec import from_parsed

PICTURE_FORMAT = "rejoinder-picture"
VERSION = 1  # of all objects of the JSON
_MAX_KIND_LEN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedInFile:
    """An attached file in the JSON. The path that it had on this computer is left out."""

    name: str
    kind: str
    text: str
    num_pages: int | None = None
    part: str = ""
    picture: AttachedPicture | None = None
    from_folder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _PictureFile:
    """The file of a picture in the JSON, before the conversations that have the picture."""

    original: str
    size: PictureSize = PictureSize.MEDIUM
    data: str  # a data URL


def picture_to_json(picture: AttachedPicture, content: bytes) -> str:
    """Return the JSON object of the stored file of a picture."""
    file = _PictureFile(
        original=picture.original,
        size=picture.size,
        data=make_data_url(content, picture.extension),
    )
    value = {"format": PICTURE_FORMAT, "version": VERSION, **asdict(file)}
    return json.dumps(value, separators=(",", ":"))


def is_picture(value: Mapping[str, object]) -> bool:
    return value.get("format") == PICTURE_FORMAT


def picture_from_value(value: Mapping[str, object]) -> FoundPicture | None:
    """Return the picture that a parsed object describes, or None if the object is not valid."""
    try:
        file = from_parsed(_PictureFile, value)
    except ValueError:
        return None
    content = decode_data_url(file.data)
    if not content:
        return None
    return FoundPicture(key=file.original, content=content, size=file.size)


def attached_in_file(file: Attachment) -> AttachedInFile:
    """Return a file of a message as it stands in the JSON."""
    return AttachedInFile(
        name=file.name,
        kind=file.kind,
        text=file.text,
        num_pages=file.num_pages,
        part=file.part,
        picture=file.picture,
        from_folder=file.from_folder,
    )


def read_attachments(files: tuple[AttachedInFile, ...]) -> Files:
    """Return the files that the JSON describes.

    Raises:
        ValueError: a text is too long, or there are too many files.
    """
    are_many = len(files) > MAX_ATTACHMENTS + MAX_DOCUMENTS
    if are_many or any(len(file.text) > MAX_CHARS for file in files):
        raise ValueError("an attachment is too long, or there are too many")
    return tuple(map(_attachment, files))


def _attachment(file: AttachedInFile) -> Attachment:
    if file.picture is not None:
        return make_picture(file.name, file.picture)
    if file.kind == PICTURE and not file.text:
        return lost_picture(file.name)
    made = make_attachment(
        file.name,
        one_line(file.kind, _MAX_KIND_LEN),
        clean_text(file.text),
        num_pages=file.num_pages,
        part=one_line(file.part, FILE_NAME_LEN),
    )
    return replace(made, from_folder=file.from_folder)
