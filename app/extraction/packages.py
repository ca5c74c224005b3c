"""The text of Word and EPUB documents, which are ZIP files with XML."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote
from xml.parsers import expat

from app.extraction.markup import html_text
from app.extraction.plain import decoded
from app.extraction.refusal import Refused, RefusedFileError

MAX_UNPACKED = 256 << 20  # most bytes of the parts of a document together
MAX_PARTS = 20_000
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main "
_FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
_ENDS = {"p": "\n\n", "br": "\n", "cr": "\n", "tab": "\t", "tc": "\t", "tr": "\n"}
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")

StartHandler = Callable[[str, dict[str, str]], None]


class Package:
    """A ZIP file whose parts are read under a limit of their total size."""

    def __init__(self, path: Path) -> None:
        self._file = zipfile.ZipFile(path)
        self._left = MAX_UNPACKED
        self.names = self._file.namelist()
        if len(self.names) > MAX_PARTS:
            raise RefusedFileError(Refused.TOO_LARGE)

    def part(self, name: str) -> bytes:
        """Return the bytes of a part.

        Raises:
            RefusedFileError: the parts are too large, or the part is protected or missing.
        """
        try:
            with self._file.open(name) as part:
                data = part.read(self._left + 1)
        except RuntimeError:
            raise RefusedFileError(Refused.ENCRYPTED) from None
        except KeyError:
            raise RefusedFileError(Refused.DAMAGED) from None
        self._left -= len(data)
        if self._left < 0:
            raise RefusedFileError(Refused.TOO_LARGE)
        return data


def _parse(
    data: bytes,
    start: StartHandler,
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
) -> None:
    """Parse XML. A document type, which could define entities, is refused."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise RefusedFileError(Refused.DAMAGED)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        raise RefusedFileError(Refused.DAMAGED) from None


def word_text(package: Package) -> str:
    """Return the text of a Word document with its notes, without deleted text."""
    notes = [name for name in _NOTES if name in package.names]
    texts = [_word_part(package.part(name)) for name in ("word/document.xml", *notes)]
    return "\n\n".join(filter(None, texts))


def _word_part(data: bytes) -> str:
    parts: list[str] = []
    hidden = runs = 0  # open elements of a fallback, and of a run's text

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal hidden, runs
        hidden += name == _FALLBACK
        runs += name == f"{_WORD}t"

    def end(name: str) -> None:
        nonlocal hidden, runs
        hidden -= name == _FALLBACK
        runs -= name == f"{_WORD}t"
        if not hidden and name.startswith(_WORD):
            parts.append(_ENDS.get(name.removeprefix(_WORD), ""))

    def text(data: str) -> None:
        if runs and not hidden:
            parts.append(data)

    _parse(data, start, end, text)
    joined = re.sub(r"(?<!\n)\n+\t", "\t", "".join(parts))  # a cell ends with its last paragraph
    return re.sub(r"\n{3,}", "\n\n", joined).strip()


def epub_text(package: Package) -> str:
    """Return the text of the chapters of an EPUB document, in reading order."""
    roots: list[str] = []

    def find_root(name: str, attributes: dict[str, str]) -> None:
        if name.endswith(" rootfile"):
            roots.append(attributes.get("full-path", ""))

    _parse(package.part("META-INF/container.xml"), find_root)
    if "META-INF/encryption.xml" in package.names and "META-INF/rights.xml" in package.names:
        raise RefusedFileError(Refused.ENCRYPTED)
    if not roots:
        raise RefusedFileError(Refused.DAMAGED)
    files: dict[str, str] = {}
    order: list[str] = []

    def find_chapter(name: str, attributes: dict[str, str]) -> None:
        if name.endswith(" item"):
            files[attributes.get("id", "")] = attributes.get("href", "")
        elif name.endswith(" itemref"):
            order.append(attributes.get("idref", ""))

    _parse(package.part(roots[0]), find_chapter)
    folder = posixpath.dirname(roots[0])
    paths = [
        posixpath.normpath(posixpath.join(folder, unquote(files[one])))
        for one in order
        if one in files
    ]
    known = set(package.names)
    texts = [
        html_text(decoded(package.part(path))) for path in dict.fromkeys(paths) if path in known
    ]
    return "\n\n".join(filter(None, texts))
