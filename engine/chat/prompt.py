"""Messages to the token ids of a prompt, with the places where state is worth keeping.

Replies keep the ids that the model produced; text of people never becomes control tokens. Token
positions count from the start of the prompt.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from engine.cache.points import PointKind, ResumePoint
from engine.chat.reply import ReplyStream
from engine.chat.runs import Runs
from engine.chat.splice import Splicer
from engine.chat.template import ChatTemplate, Renderer, Segment, Thoughts, render_segments
from engine.chat.tokenizer import ChatTokenizer
from engine.errors import CannotContinueError, TemplateError
from engine.sequences import common_prefix_len
from engine.types import Message, ReplyTokens, Role

log = logging.getLogger(__name__)

# Any next message of a person or a tool: of its text nothing is used.
_ANYTHING = Message(role=Role.USER, content="x")
_ANY_RESULT = Message(role=Role.TOOL, content="x")
# The word that is being typed; where words are not set apart, the last few characters.
_UNFINISHED = re.compile(r"\s*\S{1,24}\Z")
_UNFINISHED_LEN = 64


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered and tokenised conversation, or the part of it that is known ahead.

    message_starts[i] is where the tokens of message i begin (with the template's text before it);
    the last entry is where the generation tail begins. points are in order. in_reasoning: the reply
    starts inside a thought. thoughtless are the messages whose reasoning the template left out.
    begun are the last tokens, if they are those of a continued reply.
    """

    token_ids: tuple[int, ...]
    message_starts: tuple[int, ...]
    points: tuple[ResumePoint, ...]
    in_reasoning: bool = False
    thoughtless: frozenset[int] = frozenset()
    begun: tuple[int, ...] = ()

    def followed_by(self, token_ids: Sequence[int]) -> Prompt:
        """With more of the reply, and a point at its end."""
        all_ids = (*self.token_ids, *token_ids)
        end = ResumePoint(len(all_ids), PointKind.PROMPT)
        return replace(
            self,
            token_ids=all_ids,
            points=(*self.points, end) if token_ids else self.points,
            begun=(*self.begun, *token_ids),
        )

    def with_point(self, point: ResumePoint) -> Prompt:
        """Add a resume point. An existing one at the same position stays."""
        points = {one.num_tokens: one for one in (point, *self.points)}
        return replace(self, points=tuple(points[at] for at in sorted(points)))


@dataclass(slots=True)
class _Tokenized:
    """Messages as ids. starts holds one position more than there are messages.

    points are where the texts of people and tools begin.
    """

    runs: Runs
    starts: list[int] = field(default_factory=list[int])
    points: list[ResumePoint] = field(default_factory=list[ResumePoint])

    def end(self, num_messages: int) -> None:
        """Nothing more comes."""
        self.runs.end_run()
        self.starts += [len(self.runs.token_ids)] * (num_messages + 1 - len(self.starts))

    def cut(self, end: int, kind: PointKind, num_messages: int) -> Prompt:
        """What lies before end, which is a point of its own."""
        inside = [point for point in self.points if 0 < point.num_tokens < end]
        return Prompt(
            token_ids=tuple(self.runs.token_ids[:end]),
            message_starts=tuple(min(start, end) for start in self.starts[: num_messages + 1]),
            points=(*inside, ResumePoint(end, kind)) if end else (),
        )


class PromptBuilder:
    """Builds prompts with one model's tokenizer and template. Used on the engine thread."""

    def __init__(self, tokenizer: ChatTokenizer, renderer: Renderer) -> None:
        self.tokenizer = tokenizer
        self.template = ChatTemplate(renderer)
        self._splicer = Splicer(tokenizer)
        self._passing_len = lru_cache(maxsize=64)(self._find_passing_len)

    def build(
        self, messages: Sequence[Message], *, thinking: bool | None, keep_thinking: bool
    ) -> Prompt:
        """The prompt for the assistant's next reply, or for the rest of the one that messages end with.

        Raises:
            TemplateError: see render_segments.
            CannotContinueError: the reply cannot be continued.
        """
        *before, last = messages
        if last.role is Role.ASSISTANT:
            prompt = self.build(before, thinking=thinking, keep_thinking=keep_thinking)
            begun = prompt.followed_by(self._begun_ids(last, in_reasoning=prompt.in_reasoning))
            # The generation tail is where the reply begins; none follows it.
            starts = (*prompt.message_starts, len(begun.token_ids))
            return replace(begun, message_starts=starts)
        thoughts = Thoughts(thinking, keep_thinking)
        segments = render_segments(self.template, messages, thoughts, reply_follows=True)
        shown = {segment.message for segment in segments if segment.is_reasoning}
        tokens = self._tokenize(segments, messages)
        tokens.end(len(messages))
        token_ids = tuple(tokens.runs.token_ids)
        # As if thoughts were not kept: the conversation may cease to, another may begin alike.
        stable = len(token_ids) - self._passing_len(_since_last_user(messages), Thoughts(thinking))
        # In a tool loop both: its next step resumes at the end, a user's next message may make the
        # template drop all the thoughts of the loop.
        turns = {max(0, stable), max(stable, tokens.starts[-1])}
        points = [
            *tokens.points,
            *(ResumePoint(num_tokens, PointKind.TURN) for num_tokens in turns),
            ResumePoint(len(token_ids), PointKind.PROMPT),
        ]
        by_place = {point.num_tokens: point for point in points if point.num_tokens}
        return Prompt(
            token_ids=token_ids,
            message_starts=tuple(tokens.starts),
            points=tuple(by_place[num_tokens] for num_tokens in sorted(by_place)),
            in_reasoning=self._ends_in_reasoning(token_ids),
            thoughtless=frozenset(i for i, m in enumerate(messages) if m.reasoning) - shown,
        )

    def build_read_ahead(
        self,
        messages: Sequence[Message],
        *,
        thinking: bool | None,
        keep_thinking: bool,
        is_draft: bool,
    ) -> Prompt:
        """What the next prompt of a conversation is known to begin with.

        Args:
            messages: ending with a reply, or with a user message that is still being typed.
            thinking: as the next request will have it.
            keep_thinking: as the next request will have it.
            is_draft: the last message is being typed; it is used as far as further typing can't
                reach. Otherwise the prompt ends where the next message's text will begin.

        Raises:
            TemplateError: see render_segments.
        """
        thoughts = Thoughts(thinking, keep_thinking)
        return (self._draft if is_draft else self._next_turn)(messages, thoughts)

    def forced_ids(self, text: str, reasoning: str, *, in_reasoning: bool) -> tuple[int, ...]:
        """The ids of a reply written by hand, its end marker not included.

        Control tokens of the answer are such (a tool call is), unless they would end the reply.
        """
        tokenizer, markers = self.tokenizer, self.tokenizer.markers
        token_ids: list[int] = []
        if markers.think_end and (reasoning or in_reasoning):
            token_ids += self._thought_ids(reasoning, in_reasoning=in_reasoning, ends=True)
            text = f"\n\n{text}"
        for part in tokenizer.split_control(text):
            control = tokenizer.control_prefix(part)
            ends = markers.eos_ids & set(tokenizer.encode_template(control))
            encode = tokenizer.encode_text if ends else tokenizer.encode_template
            token_ids += (*encode(control), *tokenizer.encode_text(part.removeprefix(control)))
        return tuple(token_ids)

    def _begun_ids(self, reply: Message, *, in_reasoning: bool) -> tuple[int, ...]:
        """Return the ids of a continued reply: its own, or ids of its text where only that is left.

        Raises:
            CannotContinueError: it would not be the same reply.
        """
        tokenizer, thought, answer = self.tokenizer, reply.reasoning, reply.content
        if reply.reply and reply.reply.tokenizer_hash == tokenizer.tokenizer_hash:
            token_ids = reply.reply.token_ids
        elif thought or in_reasoning:
            opening = self._thought_ids(thought, in_reasoning=in_reasoning, ends=bool(answer))
            token_ids = (*opening, *tokenizer.encode_text(answer and f"\n\n{answer}"))
        else:
            token_ids = tuple(tokenizer.encode_text(answer))
        stream = ReplyStream(tokenizer, in_reasoning=in_reasoning, begun=token_ids)
        stream.flush()
        if (stream.content, stream.reasoning) != (answer, thought):
            raise CannotContinueError("Its text does not give the tokens that it was written in.")
        return token_ids

    def _thought_ids(self, reasoning: str, *, in_reasoning: bool, ends: bool) -> tuple[int, ...]:
        """The ids of a reply's thought, with the markers that it needs."""
        tokenizer, markers = self.tokenizer, self.tokenizer.markers
        opened = () if in_reasoning else (*markers.think_start, *tokenizer.encode_text("\n"))
        if not ends:
            return (*opened, *tokenizer.encode_text(reasoning))
        return (*opened, *tokenizer.encode_text(f"{reasoning}\n"), *markers.think_end)

    def _find_passing_len(self, messages: tuple[Message, ...], thoughts: Thoughts) -> int:
        """Tokens at the end of a prompt that the prompt after the next user message won't repeat.

        Found by rendering both; no template is known by name. Qwen3.5's `<think>` that opens a
        reply is such an end, and in a tool loop all that follows the first thought.
        """
        try:
            now = self._tokens_of(messages, thoughts, reply_follows=True).runs.token_ids
            reply = self._any_reply(in_reasoning=self._ends_in_reasoning(now))
            later = self._next_turn([*messages, reply], thoughts).token_ids
        except TemplateError:
            # What comes next may be refused; the prompt itself was not.
            return 0
        return len(now) - common_prefix_len(now, later)

    def _any_reply(self, *, in_reasoning: bool) -> Message:
        """Some reply that the model could give."""
        reasoning = "x" if in_reasoning else ""
        token_ids = self.forced_ids("x", reasoning, in_reasoning=in_reasoning)
        tokens = ReplyTokens.of(
            token_ids,
            answer_start=len(token_ids) - 1,
            tokenizer_hash=self.tokenizer.tokenizer_hash,
        )
        return Message(role=Role.ASSISTANT, content="x", reasoning=reasoning, reply=tokens)

    def _next_turn(self, messages: Sequence[Message], thoughts: Thoughts) -> Prompt:
        """Return the next turn's prompt up to where the text of the message after a reply begins."""
        of_user = self._up_to(_ANYTHING, messages, thoughts)
        if not self._calls_tool(messages[-1]):
            return of_user
        try:
            of_tool = self._up_to(_ANY_RESULT, messages, thoughts)
        except TemplateError:
            log.debug("the template knows no tools")
            return of_user
        # The user may answer instead: that prompt resumes where the two part, after the reply.
        shared = common_prefix_len(of_tool.token_ids, of_user.token_ids)
        fork = max(shared, of_tool.message_starts[-1])
        return of_tool.with_point(ResumePoint(fork, PointKind.TAIL))

    def _up_to(self, following: Message, messages: Sequence[Message], thoughts: Thoughts) -> Prompt:
        tokens = self._tokens_of([*messages, following], thoughts, reply_follows=False)
        end = tokens.points[-1].num_tokens if tokens.points else 0
        return tokens.cut(end, PointKind.TAIL, len(messages))

    def _calls_tool(self, reply: Message) -> bool:
        """Whether a reply most likely calls a tool: its answer holds control tokens of its own."""
        own = reply.reply.token_ids[reply.reply.answer_start :] if reply.reply else ()
        return self.tokenizer.count_control(own) > 0

    def _draft(self, messages: Sequence[Message], thoughts: Thoughts) -> Prompt:
        """Up to where further typing of the last message can't change anything."""
        typed = messages[-1].content.rstrip()
        ending = _UNFINISHED.sub("", typed[-_UNFINISHED_LEN:])
        settled = f"{typed[:-_UNFINISHED_LEN]}{ending}".rstrip()
        turn = [*messages[:-1], replace(_ANYTHING, content=settled or "x")]
        segments = render_segments(self.template, turn, thoughts, reply_follows=True)
        while segments and not segments[-1].is_content:
            segments.pop()
        tokens = self._tokenize(segments, turn)
        begin = tokens.points[-1].num_tokens if tokens.points else 0
        end = tokens.runs.boundary([typed[len(settled) :]]) - 1
        tokens.end(len(turn))
        if settled and end > begin:
            return tokens.cut(end, PointKind.STRIDE, len(messages))
        return tokens.cut(begin, PointKind.TURN, len(messages))

    def _tokens_of(
        self, messages: Sequence[Message], thoughts: Thoughts, *, reply_follows: bool
    ) -> _Tokenized:
        segments = render_segments(self.template, messages, thoughts, reply_follows=reply_follows)
        tokens = self._tokenize(segments, messages)
        tokens.end(len(messages))
        return tokens

    def _tokenize(self, segments: Sequence[Segment], messages: Sequence[Message]) -> _Tokenized:
        """The ids of segments; their last run is left open."""
        runs = Runs(self.tokenizer)
        tokens = _Tokenized(runs)
        for segment in self._splicer.splice(segments, messages):
            missing = segment.message + 1 - len(tokens.starts)
            if missing > 0:
                tokens.starts += [self._message_start(runs, segment)] * missing
            if segment.token_ids:
                runs.add_ids(segment.token_ids)
            elif not segment.is_content:
                runs.add_template(segment.text)
            else:
                if messages[segment.message].role in (Role.USER, Role.TOOL):
                    kind = PointKind.TURN if tokens.points else PointKind.SYSTEM
                    tokens.points.append(ResumePoint(runs.boundary(), kind))
                runs.add_content(segment.text)
        return tokens

    def _message_start(self, runs: Runs, segment: Segment) -> int:
        """Where a message begins: at its first control token if it has one, else at the next run."""
        if segment.is_content or self.tokenizer.control_prefix(segment.text):
            runs.end_run()
        return runs.boundary()

    def _ends_in_reasoning(self, token_ids: Sequence[int]) -> bool:
        """Whether the prompt leaves a reasoning block open, so that the reply starts inside it."""
        markers = self.tokenizer.markers
        if not markers.think_start:
            return False
        tail = tuple(token_ids[-16:])
        return _find_last(tail, markers.think_start) > _find_last(tail, markers.think_end)


def _since_last_user(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The last user message, whatever it says, and what follows it."""
    users = [i for i, message in enumerate(messages) if message.role is Role.USER]
    return (_ANYTHING, *messages[users[-1] + 1 if users else 0 :])


def _find_last(token_ids: tuple[int, ...], marker: tuple[int, ...]) -> int:
    """Start of the last occurrence of marker, -1 if there is none."""
    starts = range(len(token_ids) - len(marker), -1, -1)
    return next((i for i in starts if token_ids[i : i + len(marker)] == marker), -1)
