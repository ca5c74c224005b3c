"""The chips of attached files, and the notes about them. No Qt, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from app.conversation.attachments import AttachedPicture, Attachment
from app.conversation.text import file_label, one_line
from app.settings import PictureSize
from app.viewmodels import figures
from app.words import attachments as words, units
from engine.events import ModelFacts
from engine.questions import TokensCounted

# Tokens of the context that must stay free for the question and its answer. Of a short context, a
# sixteenth.
_RESERVED = 512
_RESERVED_SHARE = 16
_MAX_ETA_S = 3600.0
# Highest number of tokens at the end of a file that may change with the text typed after it.
_NUM_OPEN = 32
_MAX_NAME = 28  # characters
_MAX_PATH_LEN = 1024


@dataclass(frozen=True, slots=True)
class SizeChoice:
    """A size that a picture can have for the model."""

    size: PictureSize
    label: str  # its name and its price
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A file in the composer, or in a message."""

    name: str
    kind: str
    details: str = ""  # pages, tokens and how far it is read, separated by dots
    tip: str = ""
    share: float | None = None  # share that the model has read, None if unknown
    is_opening: bool = False  # True while its text is extracted
    picture: AttachedPicture | None = None
    sizes: tuple[SizeChoice, ...] = ()  # choices of the size of a picture; empty if there is one
    from_folder: bool = False  # True: a document of the folder in which the chat was begun


@dataclass(frozen=True, slots=True)
class FileSize:
    """The tokens of one attached file, and how many of them are cached or fed."""

    num_tokens: int
    num_read: int

    @property
    def share(self) -> float:
        return self.num_read / self.num_tokens if self.num_tokens else 1.0


@dataclass(frozen=True, slots=True)
class Excess:
    """The files of a draft are too long for the model."""

    num_tokens: int  # length of the prompt
    over: int  # tokens above the limit
    is_estimate: bool


def file_sizes(
    files: Sequence[Attachment], counted: TokensCounted | None, read: int
) -> list[FileSize] | None:
    """Return the size of each file, or None if the engine has not counted these files.

    Args:
        files: the attachments of the draft.
        counted: the size of the next prompt.
        read: number of tokens at the start of the prompt that are cached or fed.
    """
    # Documents of the folder stand before the files.
    ends = () if counted is None else counted.part_ends[-1 - len(files) :]
    if len(ends) != len(files) + 1:
        return None
    return [
        FileSize(end - start, min(max(0, read - start), end - start))
        for start, end in pairwise(ends)
    ]


def excess_of(
    files: Sequence[Attachment],
    counted: TokensCounted | None,
    facts: ModelFacts,
    *,
    chars_per_token: float | None,
) -> Excess | None:
    """Return by how much the next prompt is too long because of its files, or None if it fits.

    chars_per_token: for an estimate, if the files are so long that they are not counted; else None.
    """
    limit = facts.context_len - min(_RESERVED, facts.context_len // _RESERVED_SHARE)
    if chars_per_token is not None:
        num_tokens = sum(estimate(file, chars_per_token) for file in files)
        return Excess(num_tokens, num_tokens - limit, is_estimate=True)
    if not files or counted is None or counted.num_tokens <= limit:
        return None
    return Excess(counted.num_tokens, counted.num_tokens - limit, is_estimate=False)


def excess_note(files: Sequence[Attachment], excess: Excess, model_name: str) -> str:
    """Return the sentence about an excess. An estimate is of the files, a count of the prompt."""
    if not excess.is_estimate:
        return words.chat_too_long(
            len(files),
            model_name=model_name,
            num_tokens=units.tokens(excess.num_tokens),
            over=figures.count(excess.over),
        )
    tokens = words.about(units.tokens(figures.about(excess.num_tokens)))
    limit = units.tokens(excess.num_tokens - excess.over)
    if len(files) == 1:
        return words.too_long(files[0].name, model_name=model_name, num_tokens=tokens, limit=limit)
    return words.all_too_long(model_name=model_name, num_tokens=tokens, limit=limit)


def chip_of(
    file: Attachment, size: FileSize | None, *, counts: bool, estimated: int | None = None
) -> Chip:
    """Return the chip of a file in the composer.

    Args:
        file: the file.
        size: its size; None if the engine has not counted it.
        counts: True if the size will be known soon.
        estimated: estimated tokens, if the files are too long to be counted.
    """
    part = file.part or (words.num_pages(file.num_pages) if file.num_pages else "")
    state = words.COUNTING if size is None and counts else ""
    tokens = units.tokens(size.num_tokens) if size is not None else ""
    if size is None and estimated is not None:
        tokens = words.about(units.tokens(figures.about(estimated)))
    if size is not None and (percent := int(100 * size.share)):
        is_read = size.num_tokens - size.num_read <= _NUM_OPEN < size.num_read
        state = words.read(100 if is_read else percent)
    # A chip has room for two of them. The tooltip has all. That a file is a part is never left out.
    shown = (file.part or tokens, state) if tokens and state else (part, tokens, state)
    details = " · ".join(filter(None, shown))
    return Chip(
        name=file.name,
        kind=file.kind,
        details=details,
        tip=f"{file.name}\n{' · '.join(filter(None, (part, tokens, state)))}",
        share=None if size is None else size.share,
    )


def estimate(file: Attachment, chars_per_token: float) -> int:
    """Return the estimated number of tokens of a file that is not counted."""
    return max(1, int(len(file.text) / chars_per_token))


def short_name(name: str) -> str:
    """Return a name that fits into a line with figures. Its middle is left out if it is long."""
    if len(name) <= _MAX_NAME:
        return name
    half = _MAX_NAME // 2
    return f"{name[:half].rstrip()}…{name[-half + 1 :].lstrip()}"


def sent_chip(file: Attachment) -> Chip:
    if file.picture is not None:
        size = words.picture_size(file.picture.width, file.picture.height)
        tip = f"{file.name}\n{size}"
        return Chip(name=file.name, kind=file.kind, details=size, tip=tip, picture=file.picture)
    details = file.part or (words.num_pages(file.num_pages) if file.num_pages else "")
    return Chip(
        name=file.name,
        kind=file.kind,
        details=details,
        tip=file.name,
        from_folder=file.from_folder,
    )


def opening_chip(path: Path, share: float | None) -> Chip:
    """Return the chip of a file whose text is being extracted. share: what is done, 0 to 1."""
    return Chip(
        name=file_label(path),
        kind="",
        details=words.OPENING,
        tip=one_line(str(path), _MAX_PATH_LEN),
        share=share,
        is_opening=True,
    )


def reading_note(
    files: Sequence[Attachment], sizes: Sequence[FileSize], percent: str, seconds: int | None
) -> str:
    """Return a note on the files that are being read; empty if all are read.

    Args:
        files: the attachments of the draft.
        sizes: their sizes.
        percent: share of the prompt with the files that is read, as the sidebar shows it.
        seconds: expected seconds until all are read; None if unknown.
    """
    if all(size.num_read >= size.num_tokens for size in sizes):
        return ""
    return words.reading(
        len(files),
        name=short_name(files[0].name),
        percent=percent,
        time_left="" if seconds is None else figures.seconds(seconds),
    )


def seconds_left(*, done: int, total: int, spent_s: float) -> int | None:
    """Return the expected seconds until `total`, or None if they cannot be estimated yet."""
    if done <= 0 or spent_s <= 0:
        return None
    left = (total - done) * spent_s / done
    return max(1, round(left)) if left <= _MAX_ETA_S else None
