"""Messages to the token ids of a prompt, with the places where state is worth keeping.

Replies keep the ids that the model produced; text of people never becomes control tokens. Token
positions count from the start of the prompt.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

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

    def message_at(self, position: int) -> int:
        """Index of the message that a token belongs to; the tail counts as one more message."""
        return bisect_right(self.message_starts, position) - 1


@dataclass(slots=True)
class _Ids:
    """Token ids under construction. Template and people's text are encoded run by run.

    A run starts at a control token of the template: no tokenizer reaches across one.
    """

    tokenizer: ChatTokenizer
    token_ids: list[int] = field(default_factory=list[int])
    _run: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])

    def add_template(self, text: str) -> None:
        first, *others = self.tokenizer.split_control(text) or [""]
        if self.tokenizer.control_prefix(first):
            self.end_run()
        self._add(first, is_content=False)
        for part in others:
            self.end_run()
            self._add(part, is_content=False)

    def add_content(self, text: str) -> None:
        self._add(text, is_content=True)

    def add_ids(self, token_ids: Sequence[int]) -> None:
        self.end_run()
        self.token_ids.extend(token_ids)

    def boundary(self) -> int | None:
        """The position here, if whatever text follows can't change the ids before it."""
        before = self._encode_run()
        # A letter and a line break are what most often joins with the text before.
        for probe in ("a", "1"):
            joined = self._encode_run(probe)
            if joined[: len(before)] != before:
                return None
        return len(self.token_ids) + len(before)

    def end_run(self) -> None:
        self.token_ids.extend(self._encode_run())
        self._run.clear()

    def _add(self, text: str, *, is_content: bool) -> None:
        if text:
            self._run.append((text, is_content))

    def _encode_run(self, probe: str = "") -> tuple[int, ...]:
        text = "".join(part for part, _ in self._run) + probe
        if not text:
            return ()
        if not any(
            is_content and self.tokenizer.has_control(part) for part, is_content in self._run
        ):
            return self.tokenizer.encode_template(text)
        # Someone typed the letters of a control token: only the run's own first token is one.
        control = self.tokenizer.control_prefix(text) if not self._run[0][1] else ""
        return (
            *(self.tokenizer.encode_template(control) if control else ()),
            *self.tokenizer.encode_text(text[len(control) :]),
        )


class PromptBuilder:
    """Builds prompts with one model's tokenizer and template. Used on the engine thread."""

    def __init__(self, tokenizer: ChatTokenizer, renderer: Renderer) -> None:
        self.tokenizer = tokenizer
        self.renderer = renderer
        self._tail_lens: dict[bool | None, int] = {}

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
        boundary = ids.boundary()
        return len(ids.token_ids) if boundary is None else boundary

    def _add_segment(
        self, ids: _Ids, segment: Segment, messages: Sequence[Message], points: list[Point]
    ) -> None:
        if not segment.is_content:
            ids.add_template(segment.text)
            return
        message = messages[segment.message]
        if message.role is Role.USER and (boundary := ids.boundary()) is not None:
            kind = PointKind.TURN if points else PointKind.SYSTEM
            points.append(Point(boundary, kind))
        spliced = None
        if message.reply is not None and not segment.is_reasoning:
            spliced = splice_reply(self.tokenizer, message.reply, segment.text)
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
            common = next(
                (i for i, (a, b) in enumerate(zip(now, later, strict=False)) if a != b),
                min(len(now), len(later)),
            )
            self._tail_lens[thinking] = len(now) - common
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
