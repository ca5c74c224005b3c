"""Messages between the app and its worker process: a JSON header and a body of bytes.

A frame is the lengths of header and body (8 bytes), the header, and the body. Texts travel in the
body, because JSON would escape them, which takes longer than the work itself.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

_LENGTHS = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class Frame:
    """A message: a header of JSON values, and a body."""

    header: Mapping[str, object] = field(default_factory=dict[str, object])
    body: bytes = b""

    def packed(self) -> bytes:
        """Return the bytes of the frame."""
        header = json.dumps(self.header).encode()
        return b"".join((_LENGTHS.pack(len(header), len(self.body)), header, self.body))


def read_frame(read: Callable[[int], bytes]) -> Frame | None:
    """Return the next frame, or None at the end of the stream.

    Args:
        read: returns exactly the number of bytes that it is called with, or fewer at the end.
    """
    lengths = read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_len, body_len = _LENGTHS.unpack(lengths)
    content = read(header_len + body_len)
    if len(content) < header_len + body_len:
        return None
    return Frame(json.loads(content[:header_len]), content[header_len:])


def pack_texts(texts: Iterable[str]) -> tuple[list[int], bytes]:
    """Return the length of each text in characters, and all texts as one body.

    A lone surrogate becomes a question mark: it is half a character, which has no encoding.
    """
    texts = list(texts)
    return [len(text) for text in texts], "".join(texts).encode("utf-8", "replace")


def unpack_texts(lengths: Iterable[int], body: bytes) -> list[str]:
    """Return the texts that pack_texts packed."""
    text = body.decode()
    texts: list[str] = []
    position = 0
    for length in lengths:
        texts.append(text[position : position + length])
        position += length
    return texts
