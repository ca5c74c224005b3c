"""Decode the tokens of a reply one by one, and divide its text into reasoning and answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.chat.tokenizer import ChatTokenizer, TextStream
from engine.types import Channel, ReplyTokens


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of a reply's text. It is entirely reasoning or entirely answer."""

    channel: Channel
    text: str


class ReplyStream:
    """The text and token ids of one reply while the model produces it.

    Marker tokens of the model, such as <think> and </think>, separate reasoning from answer. The
    text contains neither the markers nor the blank lines around the markers. `token_ids` contains
    all tokens of the reply, including the markers.
    """

    def __init__(
        self, tokenizer: ChatTokenizer, *, in_reasoning: bool, begun: Iterable[int] = ()
    ) -> None:
        """Start a reply.

        Args:
            tokenizer: the model's tokenizer.
            in_reasoning: True if the prompt ends inside a reasoning block, so that the reply's
                first tokens are reasoning.
            begun: the token ids of the reply that the model continues; empty for a new reply.
        """
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
        """True if the next token belongs to the reasoning."""
        return self._channel is Channel.REASONING

    @property
    def answer_ids(self) -> list[int] | None:
        """The token ids of the answer so far. None within the reasoning."""
        return None if self.is_reasoning else self.token_ids[self._answer_start :]

    def add(self, token_id: int) -> list[TextPiece]:
        """Append a token. Return the text that the token completes, as a list of 0 or 1 pieces."""
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
        """Return the text that is left in the decoder when the reply ends inside a character."""
        return self._emit(self._text.flush())

    @property
    def content(self) -> str:
        return "".join(self._parts[Channel.ANSWER])

    @property
    def reasoning(self) -> str:
        return "".join(self._parts[Channel.REASONING]).rstrip("\n")

    def tokens(self) -> ReplyTokens:
        """Return the token ids so far, with the index of the answer's first token.

        While the reply is inside its reasoning, this index is the number of token ids.
        """
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
        """Return True if the reply so far is the marker, or blanks followed by the marker."""
        if self._answer_start or self._channel is Channel.REASONING or not self._ends_with(marker):
            return False
        return not self._tokenizer.decode(self.token_ids[: -len(marker)]).strip()

    def _ends_with(self, marker: tuple[int, ...]) -> bool:
        return bool(marker) and tuple(self.token_ids[-len(marker) :]) == marker

    def _drop_tail(self, marker: tuple[int, ...], pieces: list[TextPiece]) -> None:
        """Remove the marker's text from the end of the current channel.

        Args:
            marker: the token ids of the marker. The last one was just added to the reply.
            pieces: the text of this last token, which is not delivered yet. Changed in place.
        """
        parts = self._parts[self._channel]
        shown = self._tokenizer.decode(marker)
        if pieces and pieces[-1].text.endswith(shown):
            kept = pieces[-1].text.removesuffix(shown)
            parts[-1] = kept
            pieces[-1] = TextPiece(self._channel, kept)
        elif parts:
            # The marker has several tokens. The caller already has the text of all but the last
            # marker token. So the marker's text can only be removed from the stored text.
            joined = "".join(parts).removesuffix(shown)
            self._parts[self._channel] = [joined]
            pieces.clear()

    def _switch_to(self, channel: Channel) -> None:
        self._channel = channel
        self._strip_left = True
