"""The token ids of a prompt, with the positions of its messages and its resume points.

A Prompt is a value that the runner plans and feeds. MessageEncoder creates a TokenizedMessages for
each prompt that it encodes. PromptBuilder.build makes a whole Prompt of it after `end`, and
build_read_ahead makes the known part with `cut`. Both work on the engine thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from engine.cache.points import PointKind, ResumePoint
from engine.chat.runs import Runs


@dataclass(frozen=True, slots=True)
class Prompt:
    """The token ids of a prompt, or of the part of a later prompt that is already known."""

    token_ids: tuple[int, ...]
    # Position of each message's first token. The template's text before a message counts as part of
    # the message. So the <|im_end|> that closes a message belongs to the next message. The last
    # entry is the end of the last message's text: the generation tail follows it.
    message_starts: tuple[int, ...]
    points: tuple[ResumePoint, ...]  # resume points, sorted by position
    # True if the prompt opens a reasoning block in which the reply starts.
    in_reasoning: bool = False
    # Indices of messages whose reasoning the template left out.
    thoughtless: frozenset[int] = frozenset()
    # Token ids of the reply that the model will continue; empty if the model starts a new reply.
    # The prompt's token_ids end with these ids.
    begun: tuple[int, ...] = ()

    def followed_by(self, token_ids: Sequence[int]) -> Prompt:
        """Return the prompt with tokens of the reply appended and a resume point at its new end.

        `PromptBuilder.build` calls this for a reply to continue. The runner calls it for a reply
        that has ended.
        """
        all_ids = (*self.token_ids, *token_ids)
        end = ResumePoint(len(all_ids), PointKind.PROMPT)
        return replace(
            self,
            token_ids=all_ids,
            points=(*self.points, end) if token_ids else self.points,
            begun=(*self.begun, *token_ids),
        )

    def with_point(self, point: ResumePoint) -> Prompt:
        """Return the prompt with a resume point added.

        If the prompt already has a resume point at the position of `point`, keep the existing one.
        """
        points = {one.num_tokens: one for one in (point, *self.points)}
        return replace(self, points=tuple(points[at] for at in sorted(points)))


@dataclass(slots=True)
class TokenizedMessages:
    """The part of a conversation's prompt that has been encoded so far."""

    runs: Runs
    # Position of each message's first token, as in Prompt.message_starts.
    starts: list[int] = field(default_factory=list[int])
    # Resume points: the starts of texts of messages that are no replies, and of their parts, such
    # as files and pictures.
    points: list[ResumePoint] = field(default_factory=list[ResumePoint])
    is_opened: bool = False  # True after the start of the first user or tool message

    @property
    def next_kind(self) -> PointKind:
        """The kind of the next point in `points`."""
        return PointKind.TURN if self.is_opened else PointKind.SYSTEM

    def end(self, num_messages: int) -> None:
        """Encode the last run and append the end position to `starts`.

        Call after the last segment.
        """
        self.runs.end_run()
        self.starts += [len(self.runs.token_ids)] * (num_messages + 1 - len(self.starts))

    def cut(self, end: int, kind: PointKind, num_messages: int) -> Prompt:
        """Return a prompt of the tokens before `end`, with a resume point of `kind` at `end`."""
        inside = [point for point in self.points if 0 < point.num_tokens < end]
        return Prompt(
            token_ids=tuple(self.runs.token_ids[:end]),
            message_starts=tuple(min(start, end) for start in self.starts[: num_messages + 1]),
            points=(*inside, ResumePoint(end, kind)) if end else (),
        )
