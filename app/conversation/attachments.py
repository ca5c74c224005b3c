"""Files that are attached to a message: their text, and its form in the prompt. Pure.

Only the extracted text of a file is kept, not the file. In the prompt, the attachments of a message
stand before the user's own text, so that this text can change while the attachments keep their
tokens. The form is stable: it depends on nothing but the name and the text of the file. A change
of it would make the engine read every attachment again.

    File: manual.pdf
    ```
    [Page 1]
    the text of the file
    ```

    the next file, or the user's text

The fence is longer than every run of backticks in the text, so the text cannot end it. The engine
never recognises control tokens in a user's message, so neither does it in a file.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.conversation.text import FILE_NAME_LEN, clean_text, one_line
from app.settings import PictureSize
from app.words import attachments as words
from engine.types import Picture

PICTURE = "picture"  # kind of an attachment that is a picture
MAX_ATTACHMENTS = 50  # of one message, without the documents of a folder
MAX_DOCUMENTS = 50  # of one folder
MAX_CHARS = 4_000_000  # longest text of one attachment: about a million tokens
MAX_PICTURE_BYTES = 50 << 20  # of the file of a picture
MAX_PIXELS: Final = 100_000_000  # of a picture's file; four bytes each: 400 MB

_DIGEST = re.compile(r"[0-9a-f]{64}")
_BACKTICKS = re.compile(r"`{3,}")
_PAGE = re.compile(r"^\[Page (\d+)\]$", re.MULTILINE)
_BREAKS = ("\n\n", "\n", ". ", " ")  # places where a text is cut, the best first
_SEARCHED = 400  # characters in which such a place is searched for


# Most pixels of a picture of each size. A larger picture is made smaller for the model.
PICTURE_AREAS: Final = {
    PictureSize.SMALL: 300 * 1024,
    PictureSize.MEDIUM: 1_200 * 1024,
    PictureSize.FULL: 6_000 * 1024,
}


PICTURE_EXTENSIONS: Final = ("png", "jpg", "webp")  # of stored pictures


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedPicture:
    """A picture in the data folder, and the version of it that the model gets.

    The names of files are made of its values, so others than those of stored pictures are refused.

    Raises:
        ValueError: a digest is no SHA-256, the extension is unknown, or a side is not positive.
    """

    original: str  # SHA-256 of the stored file, as hex: the user's file without its metadata
    extension: str  # of the stored file, such as "jpg"
    width: int  # pixels of the stored file as it is shown, turned upright
    height: int
    size: PictureSize
    view: Picture

    def __post_init__(self) -> None:
        if not (_DIGEST.fullmatch(self.original) and _DIGEST.fullmatch(self.view.digest)):
            raise ValueError("a picture has no digest")
        if self.extension not in PICTURE_EXTENSIONS:
            raise ValueError("a picture has an unknown extension")
        if min(self.width, self.height, self.view.width, self.view.height) < 1:
            raise ValueError("a picture has no pixels")


@dataclass(frozen=True, slots=True)
class PictureContent:
    """The files of a picture that is attached."""

    original: bytes  # the user's file without its metadata
    view: bytes  # PNG with the pixels that the model gets
    thumbnail: bytes  # PNG


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """The text of an attached file, or of a part of it; or a picture, whose text is empty."""

    name: str  # name of the file, on one line
    kind: str  # such as "pdf" or PICTURE; names the icon
    text: str
    digest: str  # SHA-256 of the text, or the digest of the picture's view
    num_pages: int | None = None  # pages of the whole file, None if it has no pages
    part: str = ""  # label of the part, such as "Pages 1-20"; empty for the whole file
    source: str = ""  # path of the file when it was attached; empty after an import
    picture: AttachedPicture | None = None
    from_folder: bool = False  # True: a document of the folder in which the chat was begun

    def with_text(self, text: str, part: str) -> Attachment:
        """Return an attachment with a part of the text."""
        return replace(self, text=text, digest=digest_of(text), part=part)


Files = tuple[Attachment, ...]  # the files of a message or a draft, in order


@dataclass(frozen=True, slots=True)
class PromptText:
    """The content of a user message for the engine, and where each attachment ends in it."""

    content: str
    part_ends: tuple[int, ...] = ()
    pictures: tuple[Picture, ...] = ()


def make_attachment(
    name: str,
    kind: str,
    text: str,
    *,
    num_pages: int | None = None,
    part: str = "",
    source: str = "",
) -> Attachment:
    """Return an attachment. The text has no lone surrogates: it comes from UTF-8, or is cleaned."""
    return Attachment(
        name=one_line(name, FILE_NAME_LEN) or words.UNNAMED,
        kind=kind,
        text=text,
        digest=digest_of(text),
        num_pages=num_pages,
        part=part,
        source=clean_text(source),
    )


def make_picture(name: str, picture: AttachedPicture, *, source: str = "") -> Attachment:
    return Attachment(
        name=one_line(name, FILE_NAME_LEN) or words.UNNAMED,
        kind=PICTURE,
        text="",
        digest=picture.view.digest,
        source=clean_text(source),
        picture=picture,
    )


def lost_picture(name: str) -> Attachment:
    """Return an attachment in the place of a picture that cannot be read.

    It has a text, so that a reader and the model find out that a picture was attached.
    """
    return make_attachment(name, PICTURE, words.LOST_PICTURE, part=words.LOST_PART)


def with_view(attachment: Attachment, picture: AttachedPicture) -> Attachment:
    """Return the attachment of a picture with another view of it."""
    return replace(attachment, digest=picture.view.digest, picture=picture)


def size_for(width: int, height: int, wanted: PictureSize) -> PictureSize:
    """Return the wanted size of a picture, or the full size if the picture is no larger."""
    return wanted if width * height > PICTURE_AREAS[wanted] else PictureSize.FULL


def view_size(width: int, height: int, size: PictureSize) -> tuple[int, int]:
    """Return the width and height of a picture of a size, with its proportions and never larger."""
    area = PICTURE_AREAS[size]
    if width * height <= area:
        return width, height
    scale = math.sqrt(area / (width * height))
    # A side of at least one pixel must not make the other one too long.
    shown_width = max(1, min(math.floor(width * scale), area))
    return shown_width, max(1, min(math.floor(height * scale), area // shown_width))


def own_files(attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
    """Return the attachments of a message without the documents of its folder."""
    return tuple(one for one in attachments if not one.from_folder)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def prompt_text(attachments: Iterable[Attachment], question: str) -> PromptText:
    """Return the content of a message: its pictures, its files in order, then the user's text."""
    content = ""
    ends: list[int] = []
    pictures: list[Picture] = []
    for attachment in attachments:
        if attachment.picture is not None:
            pictures.append(attachment.picture.view)
        else:
            content += _block(attachment)
            ends.append(len(content))
    return PromptText(content + question, tuple(ends), tuple(pictures))


def join_prompts(earlier: PromptText, later: PromptText) -> PromptText:
    """Return one message from two, with a blank line between their texts."""
    between = "\n\n" if earlier.content and later.content else ""
    start = len(earlier.content) + len(between)
    ends = (*earlier.part_ends, *(start + end for end in later.part_ends))
    pictures = earlier.pictures + later.pictures
    return PromptText(f"{earlier.content}{between}{later.content}", ends, pictures)


def _block(attachment: Attachment) -> str:
    text = attachment.text
    # The search for backticks takes 5 ms per million characters, and most texts have none.
    runs = _BACKTICKS.findall(text) if "```" in text else []
    longest = max(map(len, runs), default=2)
    fence = "`" * (longest + 1)
    part = f" ({attachment.part})" if attachment.part else ""
    return f"File: {attachment.name}{part}\n{fence}\n{text}\n{fence}\n\n"


def document_text(attachments: Iterable[Attachment], question: str) -> str:
    """Return a message for a reader: the names of its attachments, then the user's text."""
    names = [words.attached(one.name, one.part) for one in attachments]
    return "\n\n".join(part for part in ("\n".join(names), question) if part)


def page_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of the pages that a text has marks for, in order."""
    return tuple(int(mark[1]) for mark in _PAGE.finditer(text))


def marked_page(number: int, text: str) -> str:
    """Return the text of a page below its mark."""
    return f"[Page {number}]\n{text.strip()}"


def chosen_pages(attachment: Attachment, pages: Sequence[range]) -> Attachment | None:
    """Return the attachment with these pages only, or None if the text has none of them."""
    marks = list(_PAGE.finditer(attachment.text))
    ends = [*(mark.start() for mark in marks[1:]), len(attachment.text)]
    kept: set[int] = set()
    texts: list[str] = []
    for mark, end in zip(marks, ends, strict=True):
        number = int(mark[1])
        if any(number in some for some in pages):
            kept.add(number)
            texts.append(attachment.text[mark.start() : end].strip())
    if not texts:
        return None
    return attachment.with_text("\n\n".join(texts), words.pages_part(_ranges(sorted(kept))))


def lacking_pages(attachment: Attachment, pages: Sequence[range]) -> str:
    """Return the pages that the text does not have, in short form; empty if it has all."""
    chosen = {number for some in pages for number in some}
    return _ranges(sorted(chosen.difference(page_numbers(attachment.text))))


def first_part(attachment: Attachment, num_chars: int) -> Attachment:
    """Return the attachment with at most this many characters, cut where a paragraph ends.

    If the text has pages, whole pages are kept if at least one fits. Otherwise the label names the
    share of the whole file, also if the attachment is such a part of it already.
    """
    text = attachment.text
    if num_chars >= len(text):
        return attachment
    marks = [mark for mark in _PAGE.finditer(text) if 0 < mark.start() <= num_chars]
    if marks:
        numbers = page_numbers(text[: marks[-1].start()])
        part = chosen_pages(attachment, [range(number, number + 1) for number in numbers])
        if part is not None:
            return part
    cut = _break_before(text, num_chars)
    share = words.shared_percent(attachment.part) * cut / len(text)
    return attachment.with_text(text[:cut].rstrip(), words.first_share(share))


def _break_before(text: str, end: int) -> int:
    """Return a place to cut a text before `end`: after a paragraph, line, sentence or word."""
    start = max(0, end - _SEARCHED)
    places = (text.rfind(mark, start, end) + len(mark.rstrip()) for mark in _BREAKS)
    return next((place for place in places if place > start), end)


def parse_pages(typed: str) -> tuple[range, ...]:
    """Return the pages that a user typed, such as "1-3, 7" or "3-1"; empty if not understood."""
    ranges: list[range] = []
    without_gaps = re.sub(r"(?<!\s)\s*[-\u2013\u2014]\s*", "-", typed.strip())
    for piece in re.split(r"[,;\s]+", without_gaps):
        found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", piece)
        if found is None:
            return ()
        first, last = sorted((int(found[1]), int(found[2] or found[1])))
        ranges.append(range(first, last + 1))
    return tuple(ranges)


def _ranges(numbers: Sequence[int]) -> str:
    """Return sorted numbers in short form, such as "1-3, 7", with a dash between."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}\u2013{b}" for a, b in runs)
