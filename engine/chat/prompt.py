"""Messages to the token ids of a prompt, with the places where state is worth keeping.

Replies keep the ids that the model produced; text of people never becomes control tokens. Token
positions count from the start of the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache, partial

from engine.chat.splice import splice_reply
from engine.chat.template import Renderer, Segment, dummy_turn, render_segments
from engine.chat.tokenizer import ChatTokenizer
from engine.types import Message, ReplyTokens, Role


class PointKind(StrEnum):
    """Why a snapshot is taken, which also says how soon it may be given up."""

    SYSTEM = "system"  # where the first user message's text begins
    TURN = "turn"  # where a later user message's text begins, or the next turn's prompt may diverge
    PROMPT = "prompt"  # the end of the prompt, with its logits
    TAIL = "tail"  # after a reply, where the next user message's text will begin
    BRANCH = "branch"  # where a match went on in K/V but not in snapshots
    STRIDE = "stride"  # every so often in a long prefill


@dataclass(frozen=True, slots=True)
class Point:
    """A token position worth a snapshot."""

    n_tokens: int
    kind: PointKind


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered and tokenised conversation.

    message_starts[i] is where the tokens of message i begin (with the template's text before it);
    the last entry is where the generation tail begins.
    """

    token_ids: tuple[int, ...]
    message_starts: tuple[int, ...]
    points: tuple[Point, ...]
    in_reasoning: bool


@dataclass(slots=True)
class _Ids:
    """Token ids under construction, run by run: a control token of the template and what follows it.

    Tokenizers do not reach across a control token. What people typed never starts a run.
    """

    tokenizer: ChatTokenizer
    token_ids: list[int] = field(default_factory=list[int])
    _control: str = ""
    _text: str = ""

    def add_template(self, text: str) -> None:
        for part in self.tokenizer.split_control(text):
            control = self.tokenizer.control_prefix(part)
            if control:
                self.end_run()
                self._control = control
            self._text += part.removeprefix(control)

    def add_content(self, text: str) -> None:
        self._text += text

    def add_ids(self, token_ids: Sequence[int]) -> None:
        self.end_run()
        self.token_ids.extend(token_ids)

    def boundary(self) -> int:
        """The last position that no letter or digit which follows can change.

        Blank lines could: the app takes them off the front of a message.
        """
        before = self._encode()
        probes = (self._encode("a"), self._encode("1"))
        return len(self.token_ids) + min(_common_len(before, probe) for probe in probes)

    def end_run(self) -> None:
        self.token_ids.extend(self._encode())
        self._control = self._text = ""

    def _encode(self, probe: str = "") -> tuple[int, ...]:
        return self.tokenizer.encode_run(self._control, self._text + probe)


def _common_len(a: Sequence[int], b: Sequence[int]) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


class PromptBuilder:
    """Builds prompts with one model's tokenizer and template. Used on the engine thread."""

    def __init__(self, tokenizer: ChatTokenizer, renderer: Renderer) -> None:
        self.tokenizer = tokenizer
        self.renderer = renderer
        self._tail_lens: dict[bool | None, int] = {}
        # Every request renders all earlier replies again.
        self._splice = lru_cache(maxsize=4096)(partial(splice_reply, tokenizer))

    def build(self, messages: Sequence[Message], *, thinking: bool | None) -> Prompt:
        """The prompt for the assistant's next reply.

        Raises:
            TemplateError: see render_segments.
        """
        segments = render_segments(self.renderer, messages, thinking=thinking, reply_follows=True)
        token_ids, starts, points = self._tokenize(segments, messages)
        stable = len(token_ids) - self._tail_len(thinking=thinking)
        if stable >= starts[-1]:
            points.append(Point(stable, PointKind.TURN))
        points.append(Point(len(token_ids), PointKind.PROMPT))
        return Prompt(
            token_ids=tuple(token_ids),
            message_starts=tuple(starts),
            points=tuple({point.n_tokens: point for point in points}.values()),
            in_reasoning=self._ends_in_reasoning(token_ids),
        )

    def next_turn_ids(
        self, messages: Sequence[Message], reply: Message, *, thinking: bool | None
    ) -> tuple[int, ...]:
        """How the prompt of the turn after reply will begin, up to the user's own text."""
        _, user = dummy_turn()
        turn = [*messages, reply, user]
        segments = render_segments(self.renderer, turn, thinking=thinking, reply_follows=False)
        token_ids, _, points = self._tokenize(segments, turn)
        last = max((point.n_tokens for point in points), default=0)
        return tuple(token_ids[:last])

    def forced_ids(self, text: str, reasoning: str, *, in_reasoning: bool) -> tuple[int, ...]:
        """The ids of a reply written by hand, its end marker not included."""
        markers = self.tokenizer.markers
        thought: tuple[int, ...] = ()
        if markers.think_end and (reasoning or in_reasoning):
            opened = () if in_reasoning else (*markers.think_start, *self._encode("\n"))
            thought = (*opened, *self._encode(f"{reasoning}\n"), *markers.think_end)
            text = f"\n\n{text}"
        return (*thought, *self._encode(text))

    def _encode(self, text: str) -> tuple[int, ...]:
        return self.tokenizer.encode_text(text) if text else ()

    def _tokenize(
        self, segments: Sequence[Segment], messages: Sequence[Message]
    ) -> tuple[list[int], list[int], list[Point]]:
        """-> token ids, the start of each message and of what follows, points before user texts."""
        ids = _Ids(self.tokenizer)
        starts = [0] * (len(messages) + 1)
        points: list[Point] = []
        seen = -1
        for segment in segments:
            if segment.message > seen:
                start = self._message_start(ids, segment)
                starts[seen + 1 : segment.message + 1] = [start] * (segment.message - seen)
                seen = segment.message
            self._add_segment(ids, segment, messages, points)
        ids.end_run()
        starts[seen + 1 :] = [len(ids.token_ids)] * (len(messages) - seen)
        return ids.token_ids, starts, points

    def _message_start(self, ids: _Ids, segment: Segment) -> int:
        """Where a message begins: at its first control token if it has one, else at the next run."""
        if segment.is_content or self.tokenizer.control_prefix(segment.text):
            ids.end_run()
        return ids.boundary()

    def _add_segment(
        self, ids: _Ids, segment: Segment, messages: Sequence[Message], points: list[Point]
    ) -> None:
        if not segment.is_content:
            ids.add_template(segment.text)
            return
        message = messages[segment.message]
        if message.role is Role.USER:
            kind = PointKind.TURN if points else PointKind.SYSTEM
            points.append(Point(ids.boundary(), kind))
        spliced = None
        if message.reply is not None and not segment.is_reasoning:
            spliced = self._splice(message.reply, segment.text)
        if spliced is None:
            ids.add_content(segment.text)
        else:
            ids.add_ids(spliced)

    def _tail_len(self, *, thinking: bool | None) -> int:
        """Tokens at the end of a prompt that the next turn's prompt will not repeat.

        Found by rendering a one-message conversation and its next turn; no template is known by
        name. Qwen3.5's `<think>` that opens a reply is such a tail.
        """
        if thinking not in self._tail_lens:
            reply, user = dummy_turn()
            marked = Message(
                role=Role.ASSISTANT,
                content=reply.content,
                reply=ReplyTokens(
                    token_ids=self.tokenizer.encode_text(reply.content),
                    answer_start=0,
                    tokenizer_hash=self.tokenizer.tokenizer_hash,
                ),
            )
            now = self._ids_of([user], thinking=thinking, reply_follows=True)
            later = self._ids_of([user, marked, user], thinking=thinking, reply_follows=False)
            self._tail_lens[thinking] = len(now) - _common_len(now, later)
        return self._tail_lens[thinking]

    def _ids_of(
        self, messages: Sequence[Message], *, thinking: bool | None, reply_follows: bool
    ) -> list[int]:
        segments = render_segments(
            self.renderer, messages, thinking=thinking, reply_follows=reply_follows
        )
        return self._tokenize(segments, messages)[0]

    def _ends_in_reasoning(self, token_ids: Sequence[int]) -> bool:
        """Whether the prompt leaves a reasoning block open, so that the reply starts inside it."""
        markers = self.tokenizer.markers
        if not markers.think_start:
            return False
        tail = tuple(token_ids[-16:])
        return _find_last(tail, markers.think_start) > _find_last(tail, markers.think_end)


def _find_last(token_ids: tuple[int, ...], marker: tuple[int, ...]) -> int:
    """Start of the last occurrence of marker, -1 if there is none."""
    starts = range(len(token_ids) - len(marker), -1, -1)
    return next((i for i in starts if token_ids[i : i + len(marker)] == marker), -1)
