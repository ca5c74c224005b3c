"""A reply as it is produced: token ids in, text of the reasoning and of the answer out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.chat.tokenizer import ChatTokenizer, TextStream
from engine.types import Channel, ReplyTokens


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Some text of one channel."""

    channel: Channel
    text: str


class ReplyStream:
    """Splits one reply into reasoning and answer by the model's own marker tokens.

    The ids are kept whole; blank lines that separate the two parts are not part of either text.
    """

    def __init__(
        self, tokenizer: ChatTokenizer, *, in_reasoning: bool, begun: Iterable[int] = ()
    ) -> None:
        """in_reasoning: it starts inside a thought. begun: what it holds already."""
        self._tokenizer = tokenizer
        self._text = TextStream(tokenizer)
        self._channel = Channel.REASONING if in_reasoning else Channel.ANSWER
        self._parts: dict[Channel, list[str]] = {Channel.REASONING: [], Channel.ANSWER: []}
        self._strip_left = in_reasoning
        self._answer_start = 0
        self.token_ids: list[int] = []
        for token_id in begun:
            self.add(token_id)

    @property
    def is_reasoning(self) -> bool:
        """Whether it is inside its thoughts now."""
        return self._channel is Channel.REASONING

    def add(self, token_id: int) -> list[TextPiece]:
        """The text that becomes visible with this token."""
        self.token_ids.append(token_id)
        pieces = self._emit(self._text.add(token_id))
        markers = self._tokenizer.markers
        if self._channel is Channel.REASONING and self._ends_with(markers.think_end):
            self._drop_tail(markers.think_end, pieces)
            self._switch_to(Channel.ANSWER)
            self._answer_start = len(self.token_ids)
        elif self._opens_thought(markers.think_start):
            self._drop_tail(markers.think_start, pieces)
            self._parts[Channel.ANSWER].clear()
            self._switch_to(Channel.REASONING)
        return [piece for piece in pieces if piece.text]

    def flush(self) -> list[TextPiece]:
        """Text still held back when the reply ends."""
        return self._emit(self._text.flush())

    @property
    def content(self) -> str:
        return "".join(self._parts[Channel.ANSWER])

    @property
    def reasoning(self) -> str:
        return "".join(self._parts[Channel.REASONING]).rstrip("\n")

    def tokens(self) -> ReplyTokens:
        """The ids so far. A reply that ended inside its reasoning has no answer."""
        answer_start = (
            len(self.token_ids) if self._channel is Channel.REASONING else self._answer_start
        )
        return ReplyTokens.of(
            self.token_ids,
            answer_start=answer_start,
            tokenizer_hash=self._tokenizer.tokenizer_hash,
        )

    def _emit(self, text: str) -> list[TextPiece]:
        if self._strip_left:
            text = text.lstrip("\n")
            self._strip_left = not text
        if not text:
            return []
        self._parts[self._channel].append(text)
        return [TextPiece(self._channel, text)]

    def _opens_thought(self, marker: tuple[int, ...]) -> bool:
        """Whether the reply begins with the marker, blanks aside."""
        if self._answer_start or self._channel is Channel.REASONING or not self._ends_with(marker):
            return False
        return not self._tokenizer.decode(self.token_ids[: -len(marker)]).strip()

    def _ends_with(self, marker: tuple[int, ...]) -> bool:
        return bool(marker) and tuple(self.token_ids[-len(marker) :]) == marker

    def _drop_tail(self, marker: tuple[int, ...], pieces: list[TextPiece]) -> None:
        """Take the marker's own text out again; only its last token's piece is still unsent."""
        parts = self._parts[self._channel]
        shown = self._tokenizer.decode(marker)
        if pieces and pieces[-1].text.endswith(shown):
            kept = pieces[-1].text.removesuffix(shown)
            parts[-1] = kept
            pieces[-1] = TextPiece(self._channel, kept)
        elif parts:
            # A marker of several tokens: its first part was shown already, the stored text is exact.
            joined = "".join(parts).removesuffix(shown)
            self._parts[self._channel] = [joined]
            pieces.clear()

    def _switch_to(self, channel: Channel) -> None:
        self._channel = channel
        self._strip_left = True
