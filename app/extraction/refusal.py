"""The error of a file that has no text to attach."""

from __future__ import annotations

from app.words.attachments import Refused


class RefusedFileError(Exception):
    """A file cannot be attached. `why` is the reason."""

    def __init__(self, why: Refused) -> None:
        super().__init__(why.value)
        self.why = why
