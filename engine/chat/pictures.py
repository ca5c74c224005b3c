"""Pictures in the messages of a prompt: where they stand, and the ids that stand for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from engine.cache.points import PointKind, ResumePoint
from engine.chat.prompt import TokenizedMessages
from engine.errors import TemplateError
from engine.types import Message, Picture

# Tokens behind a tile of a picture, behind a row of tiles, and before the whole picture as a tile:
# of Llama 4, whose chat template writes the last one in the place of a picture
TILE_TOKENS: Final = ("<|tile_x_separator|>", "<|tile_y_separator|>", "<|image|>")


@dataclass(frozen=True, slots=True)
class PictureTokens:
    """The control tokens of a model's pictures."""

    placeholder: str  # what the chat template writes in the place of a picture
    # Ids of the tokens that end a row of a picture and a picture; 0 if the model has none.
    row_end: int = 0
    picture_end: int = 0
    # Texts of the tokens between which config.json puts a picture; "" if it names none.
    begin: str = ""
    end: str = ""
    # Ids of the tokens that may stand between the tiles of a picture, by their texts
    markers: Mapping[str, int] = field(default_factory=dict[str, int])


class PictureRules(Protocol):
    """The form in which a model gets pictures."""

    @property
    def placeholder(self) -> str:
        """The control token that the chat template writes in the place of a picture."""
        ...

    @property
    def opening(self) -> str:
        """Text that stands before each picture, beside that of the template."""
        ...

    @property
    def closing(self) -> str:
        """Text that stands behind each picture."""
        ...

    def ids(self, picture: Picture) -> tuple[int, ...]:
        """Return the ids that stand for a picture (engine/picture_ids.py).

        Raises:
            PictureError: the model cannot get this picture.
        """
        ...


class PlacedPictures:
    """Puts the pictures of a conversation, one after the other, into its prompt."""

    def __init__(self, rules: PictureRules, messages: Sequence[Message]) -> None:
        self._rules = rules
        self._waiting = _pictures(messages)
        self._next = next(self._waiting, None)
        self._has_any = self._next is not None

    def add_template(self, tokens: TokenizedMessages, text: str) -> None:
        """Add text of the template, with the ids of a picture in the place of each placeholder.

        There is a resume point before the first picture of a message and one behind each picture,
        so that the question about a picture can change. If text follows the last one, the start of
        this text is a resume point already.

        Raises:
            PictureError: the model accepts no picture of this form.
            TemplateError: the template writes more placeholders than there are pictures.
        """
        placeholder, runs = self._rules.placeholder, tokens.runs
        while self._next is not None and placeholder in text:
            before, _, text = text.partition(placeholder)
            runs.add_template(before + self._rules.opening)
            runs.end_run()
            text = self._rules.closing + text
            picture, is_first, has_text_next = self._next
            if is_first:
                tokens.points.append(ResumePoint(len(runs.token_ids), tokens.next_kind))
                tokens.is_opened = True
            runs.add_ids(self._rules.ids(picture))
            if not has_text_next:
                tokens.points.append(ResumePoint(len(runs.token_ids), PointKind.TURN))
            self._next = next(self._waiting, None)
        if self._has_any and placeholder in text:
            raise TemplateError("It writes a picture twice.")
        runs.add_template(text)

    def require_all(self) -> None:
        """Raise an error if the template has left pictures out."""
        if self._next is not None:
            raise TemplateError("It leaves out a picture.")


def _pictures(messages: Sequence[Message]) -> Iterator[tuple[Picture, bool, bool]]:
    """Yield each picture, if it is its message's first, and if the message's text follows it."""
    for message in messages:
        last = len(message.pictures) - 1
        for place, picture in enumerate(message.pictures):
            yield picture, place == 0, place == last and bool(message.content)
