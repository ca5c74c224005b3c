"""The text of PDF documents, page by page, with pypdf."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

from app.conversation.attachments import marked_page
from app.extraction.plain import tidied
from app.extraction.refusal import Refused, RefusedFileError

MAX_PAGES = 20_000
# Ligatures, soft hyphens, and the tabs that Qt's PDF files have between words: they would take a
# token each.
_REPLACED = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "ft", "ﬆ": "st"}
    | {"\xad": "", "\t": " "}
)
_WORD = re.compile(r"\w")


class PdfPages:
    """The pages of a PDF document. Iterating yields the text of each page, with its mark."""

    def __init__(self, path: Path) -> None:
        """Open a document.

        Raises:
            RefusedFileError: the document is damaged, encrypted, or has too many pages.
        """
        logging.disable()  # pypdf logs every irregularity of a file
        self.num_with_text = 0
        self.num_damaged = 0  # pages without text because of an error
        try:
            self._reader = PdfReader(io.BytesIO(path.read_bytes()), strict=False)
            if self._reader.is_encrypted and not self._reader.decrypt(""):
                raise RefusedFileError(Refused.ENCRYPTED)
            self.num_pages = len(self._reader.pages)
        except (DependencyError, FileNotDecryptedError):
            raise RefusedFileError(Refused.ENCRYPTED) from None
        except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise RefusedFileError(Refused.DAMAGED) from None
        if self.num_pages > MAX_PAGES:
            raise RefusedFileError(Refused.TOO_LARGE)
        if not self.num_pages:
            raise RefusedFileError(Refused.EMPTY)

    def __iter__(self) -> Iterator[str]:
        for index in range(self.num_pages):
            text = self._text(index)
            if _WORD.search(text):
                self.num_with_text += 1
                yield marked_page(index + 1, text)
            else:
                yield ""

    def _text(self, index: int) -> str:
        """Return the text of a page. A damaged page has no text; the others still have theirs."""
        try:
            text = self._reader.pages[index].extract_text()
        except MemoryError:
            raise
        except DependencyError:
            raise RefusedFileError(Refused.ENCRYPTED) from None
        except Exception:  # noqa: BLE001 - pypdf raises errors of every kind for damaged pages
            self.num_damaged += 1
            return ""
        lines = tidied(text.translate(_REPLACED)).split("\n")
        return "\n".join(line.rstrip() for line in lines)
