"""Data URLs: the content of a picture as text, for example data:image/png;base64,iVBORw0KGgo."""

from __future__ import annotations

import binascii

from app.conversation.attachments import MAX_PICTURE_BYTES

DATA_URL_START = "data:image/"
_MAX_START = 100  # characters before the data


def make_data_url(content: bytes, extension: str) -> str:
    """Return the data URL of a picture. `extension`: the ending of the name of its file."""
    kind = "jpeg" if extension == "jpg" else extension
    data = binascii.b2a_base64(content, newline=False).decode()
    return f"{DATA_URL_START}{kind};base64,{data}"


def decode_data_url(url: str) -> bytes:
    """Return the content of a picture, or nothing if the text is no data URL of a picture.

    A picture that is larger than MAX_PICTURE_BYTES counts as none.
    """
    start = url.find(",", 0, _MAX_START) + 1
    head = url[: max(0, start - 1)]
    if not (head.startswith(DATA_URL_START) and head.endswith(";base64")):
        return b""
    try:
        content = binascii.a2b_base64(url[start:])
    except ValueError:
        return b""
    return content if len(content) <= MAX_PICTURE_BYTES else b""
