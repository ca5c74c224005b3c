"""Build the token ids of a prompt from the messages of a conversation, and choose resume points.

The runner calls `PromptBuilder.build` once per request, before it restores cached state and feeds
the rest of the prompt. At the end of each reply, and for each read-ahead task, it calls
`build_read_ahead`, which builds the part of the next prompt that is already known. The engine can
then feed this part early. Each call gets the whole list of messages, and encodes only text that is
new: while the model is loaded, the tokenizer and the encoder keep the token ids of text that they
have seen, in caches of limited size. A prompt is built in three steps:

1. `ChatTemplate.segments` renders the chat template and divides the text into segments. A segment
   is text of the template or text of one message. Control tokens such as <|im_start|> are
   recognised only in text of the template, so that text typed by users never becomes a control
   token.
2. `MessageEncoder` encodes the segments. Earlier replies get the token ids that the model produced.
3. `build` adds resume points. A resume point is a position n in the prompt. A later request is
   likely to begin with the tokens [0, n), so the state after these tokens is worth keeping. The
   kind of a point decides how soon its state is evicted (cache/points.py):

    SYSTEM   start of the text of the first user or tool message. The tokens before it are shared
             by all conversations with this system prompt. Also the start of the system prompt's
             text: the tokens before it are shared by all conversations with a system prompt.
    TURN     start of the text of a later user or tool message, or of a draft; the end of each part
             of a message (Message.part_ends), so that the text after it can change; also the first
             token that the next turn's prompt will not share
    PROMPT   end of a request's prompt
    TAIL     after a reply: start of the text of the next message, which is not known yet
    STRIDE   inside a draft: the user may still change the draft, so the state is evicted early

All token positions count from the start of the prompt. Use this module on the engine thread.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from weakref import proxy

from engine.cache.points import PointKind, ResumePoint
from engine.chat.message_encoder import MessageEncoder
from engine.chat.pictures import PictureRules
from engine.chat.prompt import Prompt, TokenizedMessages
from engine.chat.reply_ids import any_reply, begun_ids
from engine.chat.segments import Renderer
from engine.chat.template import ChatTemplate, TemplateOptions
from engine.chat.tokenizer import ChatTokenizer
from engine.errors import PictureError, TemplateError
from engine.sequences import common_prefix_len
from engine.types import Message, Role

log = logging.getLogger(__name__)

# Placeholders for the unknown next message. Only the tokens before the placeholder are used.
_ANYTHING = Message(role=Role.USER, content="x")
_ANY_RESULT = Message(role=Role.TOOL, content="x")
# Pattern for the last word of a draft, which further typing may change. Some scripts have no spaces
# between words, so the pattern matches at most the last 24 characters of a word.
_UNFINISHED = re.compile(r"\s*\S{1,24}\Z")
# Number of characters at the end of a draft that are searched for the last word.
_UNFINISHED_LEN = 64


class PromptBuilder:
    """Builds prompts for one loaded model, with its tokenizer and chat template.

    The loader creates one builder per loaded model. The builder does not store conversations: every
    call gets all messages. The builder keeps only caches, which never change a result.
    """

    def __init__(
        self, tokenizer: ChatTokenizer, renderer: Renderer, pictures: PictureRules | None = None
    ) -> None:
        """Create the builder of a model. `pictures` is None if the model cannot see."""
        self.tokenizer = tokenizer
        self.pictures = pictures
        markers = (tokenizer.markers.think_start, tokenizer.markers.think_end)
        self.template = ChatTemplate(renderer, map(tokenizer.decode, markers))
        self._encoder = MessageEncoder(tokenizer, pictures)
        # The two caches reference this builder weakly. In a reference cycle, the weights behind
        # `pictures` would stay in memory after the model is unloaded.
        this = proxy(self)
        # Cache of _find_passing_len's results, by messages of the newest turn and options.
        self._passing_len = lru_cache(maxsize=64)(partial(PromptBuilder._find_passing_len, this))
        # Cache of _find_result_lens's results, by options.
        self._result_lens = lru_cache(maxsize=64)(partial(PromptBuilder._find_result_lens, this))

    def build(
        self,
        messages: Sequence[Message],
        *,
        thinking: bool | None,
        keep_thinking: bool,
        tools: str = "",
    ) -> Prompt:
        """Return the prompt for the assistant's next reply.

        If the last message is a reply, the prompt ends with the reply's tokens, so that the model
        continues it.

        Raises:
            TemplateError: as in Renderer.segments.
            PictureError: the model cannot see, or accepts no picture of this form.
            CannotContinueError: the reply cannot be continued.
        """
        self._check_pictures(messages)
        *before, last = messages
        if last.role is Role.ASSISTANT:
            prompt = self.build(before, thinking=thinking, keep_thinking=keep_thinking, tools=tools)
            begun = prompt.followed_by(
                begun_ids(self.tokenizer, last, in_reasoning=prompt.in_reasoning)
            )
            # The template's text that opens a reply counts as part of the reply's message. The
            # template adds no text after the reply.
            starts = (*prompt.message_starts, len(begun.token_ids))
            return replace(begun, message_starts=starts)
        options = TemplateOptions(thinking, keep_thinking, tools)
        segments = self.template.segments(messages, options, reply_follows=True)
        shown = {segment.message for segment in segments if segment.is_reasoning}
        tokens = self._encoder.encode(segments, messages)
        tokens.end(len(messages))
        token_ids = tuple(tokens.runs.token_ids)
        if not token_ids:
            raise TemplateError("It makes an empty prompt of this chat.")
        turns = self._turn_ends(messages, options, tokens)
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
        before_user: bool = False,
        tools: str = "",
    ) -> Prompt:
        """Return the part of a conversation's next prompt that is already known.

        The caller feeds these tokens before the next request arrives. If that request differs from
        the expected one, the tokens before the first difference can still be used.

        Args:
            messages: the conversation. The last message is a reply, or a draft that is being typed.
            thinking: the value that the next request is expected to have.
            keep_thinking: the value that the next request is expected to have.
            is_draft: True if the last message is a draft. The prompt then ends before the tokens
                that further typing can change. Otherwise it ends where the next message's text
                will begin.
            before_user: True if the next message is certainly a user message. Otherwise a tool
                result is expected after a reply that seems to call a tool.
            tools: the value that the next request is expected to have.

        Raises:
            TemplateError, PictureError: as in `build`.
        """
        self._check_pictures(messages)
        options = TemplateOptions(thinking, keep_thinking, tools)
        if is_draft:
            return self._draft(messages, options)
        if before_user:
            return self._up_to(_ANYTHING, messages, options)
        return self._next_turn(messages, options)

    def _turn_ends(
        self, messages: Sequence[Message], options: TemplateOptions, tokens: TokenizedMessages
    ) -> set[int]:
        """Return the positions near the end of a prompt where later prompts may differ from it."""
        num_tokens, end = len(tokens.runs.token_ids), tokens.starts[-1]
        # Assume that later requests drop the reasoning, even if this request keeps the reasoning.
        passing = self._passing_len(
            _since_last_user(messages), replace(options, keep_thinking=False)
        )
        # `stable` is the first token that the next turn's prompt will not share. Usually `stable`
        # does not lie before the end of the last message. In a tool loop, `stable` may lie earlier:
        # if the next message is a user message, the template drops the loop's reasoning.
        stable = max(0, num_tokens - passing)
        lens = self._result_lens(options) if messages[-1].role is Role.TOOL else ()
        # If the next message is a tool result, the next prompt resumes after the last message.
        results = {max(end, num_tokens - num) for num in lens}
        return {stable} | (results or {max(stable, end)})

    def _find_passing_len(self, messages: tuple[Message, ...], options: TemplateOptions) -> int:
        """Return how many of a prompt's last tokens will not be in the next turn's prompt.

        For example, Qwen3.5's template opens a new reply with <think>, but writes earlier replies
        without <think>. If a tool loop contains reasoning, the number includes all tokens from the
        first reasoning block on. The method builds both prompts and compares them.
        """
        try:
            now = self._tokens_of(messages, options, reply_follows=True).runs.token_ids
            reply = any_reply(self.tokenizer, in_reasoning=self._ends_in_reasoning(now))
            later = self._up_to(_ANYTHING, [*messages, reply], options).token_ids
        except TemplateError:
            # The template refuses the placeholder messages, so nothing is known about the next
            # prompt. Assume that the next prompt has all tokens of this prompt.
            return 0
        return len(now) - common_prefix_len(now, later)

    def _find_result_lens(self, options: TemplateOptions) -> frozenset[int]:
        """Return how many of a prompt's last tokens will not be in the prompt of another result.

        The prompt ends with a tool result. There are two numbers. In the first case, the other
        result follows this result, because the reply called several tools. In the second case, it
        follows the next reply. The tokens are text of the template after the last message, so the
        numbers are found with placeholders.

        Returns:
            No numbers if the template does not support tool results.
        """
        try:
            asked = self._tokens_of([_ANYTHING], options, reply_follows=True).runs.token_ids
            reply = any_reply(self.tokenizer, in_reasoning=self._ends_in_reasoning(asked))
            loop = [_ANYTHING, reply, _ANY_RESULT]
            now = self._tokens_of(loop, options, reply_follows=True).runs.token_ids
            laters = [self._up_to(_ANY_RESULT, above, options) for above in (loop, [*loop, reply])]
        except TemplateError:
            return frozenset()
        return frozenset(len(now) - common_prefix_len(now, later.token_ids) for later in laters)

    def _next_turn(self, messages: Sequence[Message], options: TemplateOptions) -> Prompt:
        """Return the next turn's prompt, up to the start of the new message's text.

        The last of `messages` is a reply, and the new message follows it. If the reply seems to
        call a tool, the new message is expected to be a tool result, otherwise a user message. If
        the reply may call a tool, both are possible, and the point where the two prompts differ is
        a resume point.
        """
        of_user = self._up_to(_ANYTHING, messages, options)
        calls = self._calls_tool(messages[-1])
        if not calls and not may_call_tool(messages):
            return of_user
        try:
            of_tool = self._up_to(_ANY_RESULT, messages, options)
        except TemplateError:
            log.debug("the chat template does not support tool results")
            return of_user
        # The first token where the two possible prompts differ, or the end of the reply if the end
        # is later: the template may keep the reply's reasoning only before a tool result.
        shared = common_prefix_len(of_tool.token_ids, of_user.token_ids)
        fork = ResumePoint(max(shared, of_tool.message_starts[-1]), PointKind.TAIL)
        if calls:
            return of_tool.with_point(fork)
        return of_user.with_point(fork) if fork.num_tokens == shared else of_user

    def _up_to(
        self, following: Message, messages: Sequence[Message], options: TemplateOptions
    ) -> Prompt:
        """Return the prompt up to the position where the text of the message `following` begins.

        Raises:
            TemplateError: as in Renderer.segments.
        """
        above = [*messages, following]
        segments = self.template.segments(above, options, reply_follows=False)
        tokens = self._encoder.encode(segments, above)
        tokens.end(len(above))
        end = tokens.points[-1].num_tokens
        return tokens.cut(end, PointKind.TAIL, len(messages))

    def _calls_tool(self, reply: Message) -> bool:
        """Return True if a reply calls a tool, probably: its answer contains control tokens.

        Markers of reasoning do not count.
        """
        if reply.calls:
            return True
        own = reply.reply.token_ids[reply.reply.answer_start :] if reply.reply else ()
        markers = self.tokenizer.markers
        reasoning = {*markers.think_start, *markers.think_end}
        return self.tokenizer.count_control([one for one in own if one not in reasoning]) > 0

    def _draft(self, messages: Sequence[Message], options: TemplateOptions) -> Prompt:
        """Return the prompt of a draft, up to the last token that further typing cannot change.

        The last word is left out, because it may be unfinished. If typing can change all tokens of
        the draft, the prompt ends where the draft's text begins.
        """
        # Divide the draft into its parts, `settled`, which typing is not expected to change, and
        # the rest: the last word and the blanks before it.
        draft = messages[-1]
        parts = draft.content[: draft.part_ends[-1] if draft.part_ends else 0]
        typed = draft.content[len(parts) :].rstrip()
        ending = _UNFINISHED.sub("", typed[-_UNFINISHED_LEN:])
        settled = f"{typed[:-_UNFINISHED_LEN]}{ending}".rstrip()
        turn = [*messages[:-1], replace(draft, content=parts + (settled or "x"))]
        # Render the draft as `build` will render the sent message. Then remove the template's text
        # after the draft, so that the draft's run is still open.
        segments = self.template.segments(turn, options, reply_follows=True)
        while segments and not segments[-1].is_content:
            segments.pop()
        tokens = self._encoder.encode(segments, turn)
        begin = tokens.points[-1].num_tokens if tokens.points else 0
        # boundary counts the tokens of `settled` that stay the same if the rest of the draft
        # follows. Leave out one more token as a margin, because a longer last word may change that
        # token.
        end = tokens.runs.boundary([typed[len(settled) :]]) - 1
        tokens.end(len(turn))
        if settled and end > begin:
            return tokens.cut(end, PointKind.STRIDE, len(messages))
        return tokens.cut(begin, PointKind.TURN, len(messages))

    def _tokens_of(
        self, messages: Sequence[Message], options: TemplateOptions, *, reply_follows: bool
    ) -> TokenizedMessages:
        segments = self.template.segments(messages, options, reply_follows=reply_follows)
        tokens = self._encoder.encode(segments, messages)
        tokens.end(len(messages))
        return tokens

    def _check_pictures(self, messages: Sequence[Message]) -> None:
        if self.pictures is None and any(message.pictures for message in messages):
            raise PictureError.of_blind_model()

    def _ends_in_reasoning(self, token_ids: Sequence[int]) -> bool:
        """Return True if a prompt ends inside a reasoning block, so that the reply starts in it."""
        markers = self.tokenizer.markers
        if not markers.think_start:
            return False
        # A template that opens or skips reasoning writes the markers in the last tokens of a
        # prompt.
        tail = tuple(token_ids[-16:])
        return _find_last(tail, markers.think_start) > _find_last(tail, markers.think_end)


def may_call_tool(messages: Sequence[Message]) -> bool:
    """Return True if the last message, a reply, may call a tool in text without control tokens.

    It may if an earlier reply did, or if it ends like a call: {"name": "f"}, [f(x=1)], <call/>.
    """
    is_call = messages[-1].content.rstrip().endswith(("}", "]", ">"))
    return is_call or any(message.role is Role.TOOL for message in messages)


def _since_last_user(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return all messages from the last user message on, with a placeholder for the user message.

    The result is a cache key of `PromptBuilder.build`. The cached number does not depend on the
    user's text, so prompts that differ only in that text share one cache entry.
    """
    users = [i for i, message in enumerate(messages) if message.role is Role.USER]
    return (_ANYTHING, *messages[users[-1] + 1 if users else 0 :])


def _find_last(token_ids: tuple[int, ...], marker: tuple[int, ...]) -> int:
    """Return the start of the last occurrence of marker in token_ids, or -1."""
    starts = range(len(token_ids) - len(marker), -1, -1)
    return next((i for i in starts if token_ids[i : i + len(marker)] == marker), -1)
