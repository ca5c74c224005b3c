"""The text of a file without structure: encodings, and the limits of what counts as text."""

from __future__ import annotations

import codecs
import re

from app.conversation.attachments import MAX_CHARS
from app.extraction.refusal import Refused, RefusedFileError

# Most bytes of a text file that are read: enough for MAX_CHARS in every encoding.
MAX_BYTES = 4 * MAX_CHARS
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Control characters that text does not have. Tab, line breaks, form feed, backspace (in manual
# pages) and escape (in logs) are allowed.
_CONTROL = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
_DROPPED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff]")
_MAX_CONTROL = 0.002  # highest share of control characters
_MAX_HIGH = 0.35  # highest share of bytes above 127 in Latin-1 text; other encodings have more
_SAMPLE = 1 << 16


def decoded(data: bytes) -> str:
    """Return the text of bytes in UTF-8, UTF-16, UTF-32 or Latin-1.

    Raises:
        RefusedFileError: the bytes are no text, or the text has another encoding.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _checked(data[len(bom) :].decode(encoding, "replace"))
    wide = _wide_encoding(data[:_SAMPLE])
    if wide:
        return _checked(data.decode(wide, "replace"))
    if b"\0" in data[:_SAMPLE]:
        raise RefusedFileError(Refused.BINARY)
    try:
        # The end of the data may cut a character.
        return _checked(codecs.getincrementaldecoder("utf-8")().decode(data))
    except UnicodeDecodeError:
        pass
    text = _checked(data.decode("cp1252", "replace"))
    high = sum(byte > 127 for byte in data[:_SAMPLE])
    if high > _MAX_HIGH * len(data[:_SAMPLE]):
        raise RefusedFileError(Refused.ENCODING)
    return text


def tidied(text: str) -> str:
    """Return text with Unix line breaks, without control characters and trailing blank lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    return _DROPPED.sub("", text).strip("\n").rstrip()


def _wide_encoding(sample: bytes) -> str:
    """Return the encoding of UTF-16 text without a byte order mark; "" for other bytes.

    In text of European languages, every second byte is 0.
    """
    half = len(sample) // 2
    if half < 2:
        return ""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.05 * half:
        return "utf-16-be"
    return ""


def _checked(text: str) -> str:
    sample = text[:_SAMPLE]
    if len(_CONTROL.findall(sample)) > _MAX_CONTROL * len(sample):
        raise RefusedFileError(Refused.BINARY)
    return text
