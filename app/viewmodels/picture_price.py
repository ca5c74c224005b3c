"""The prices of the sizes of an attached picture, for its chip. No Qt, no I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from app.conversation.attachments import AttachedPicture, size_for
from app.settings import PictureSize
from app.viewmodels.attachments import Chip, SizeChoice
from app.viewmodels.reading import INSTANT_S, reading_time
from app.words import attachments as words, units
from engine.reading_pace import ReadingTime


@dataclass(frozen=True, slots=True)
class PicturePrice:
    """The tokens that the model reads for a picture, and the time that this takes."""

    num_tokens: int
    time: ReadingTime | None  # None before the first measurement

    @property
    def text(self) -> str:
        """The tokens and the time: 1,200 tokens · 5 s. A time below INSTANT_S is left out."""
        tokens = units.tokens(self.num_tokens)
        if self.time is None or self.time.most < INSTANT_S:
            return tokens
        return f"{tokens} · {reading_time(self.time)}"


Price = Callable[[AttachedPicture, PictureSize], PicturePrice | None]


def priced(chip: Chip, price: Price, *, is_instant: bool) -> Chip:
    """Return the chip of a picture with its price and the prices of its other sizes.

    Args:
        chip: the chip of the picture.
        price: returns the price of a picture in a size; None if it is not known. A picture that is
            smaller than a size has no such choice.
        is_instant: True if the message can be answered at once, so that the picture takes no time
            any more. Another size has to be read.
    """
    picture = chip.picture
    if picture is None:
        return chip
    shown = price(picture, picture.size)
    sizes = [size for size in PictureSize if size_for(picture.width, picture.height, size) is size]
    choices = [_choice(picture, size, price) for size in sizes] if len(sizes) > 1 else []
    if shown is not None and is_instant:
        shown = replace(shown, time=None)
    details = chip.details if shown is None else shown.text
    tip = "\n".join(dict.fromkeys((chip.name, chip.details, details)))
    return replace(chip, details=details, tip=tip, sizes=tuple(choices))


def _choice(picture: AttachedPicture, size: PictureSize, price: Price) -> SizeChoice:
    cost, name = price(picture, size), words.SIZES[size.value]
    label = name if cost is None else f"{name} · {cost.text}"
    return SizeChoice(size, label, is_chosen=size is picture.size)
