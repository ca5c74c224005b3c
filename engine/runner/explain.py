"""Reasons why tokens of a prompt were fed instead of restored from the prefix cache.

Runner.start builds a PrefixHit when it has restored a prompt, and calls plan_prompt (plan.py),
which calls explain() once for the request. The app shows the reasons under the answer. explain()
gives a reason to every token that was not restored, by comparing the prompt with the path that its
conversation fed before (history.py). It keeps nothing and changes nothing.

    [0, restored)          restored: no reason needed
    [restored, lost_end)   lost: this conversation fed these tokens before and kept their state, but
                           the state was evicted, was faulty, or belonged to an unloaded model
    [lost_end, end)        decided message by message (_Case._why_message). New: no model has read
                           the message. Changed: the tokens follow the first difference from the
                           earlier path, for example an edited message or another option. Else the
                           app read the message before, and its state was not kept

explain() lists the positions at which the reason can change, finds the reason at each position, and
merges neighbours that have the same reason. So the counts of the reasons add up to the number of
fed tokens. A reason is `again` if its tokens had been fed before. This module imports no mlx.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from engine.chat.prompt import Prompt
from engine.runner.history import FedPath, Known, marks_of
from engine.runner.why import Why, sentence
from engine.types import Request, Role
from engine.usage import Reason, ReasonKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixHit:
    """The part of a prompt that the prefix cache held."""

    restored: int  # number of leading tokens whose state was restored
    matched: int  # number of leading tokens whose K/V was stored, at least `restored`
    on_disk: int = 0  # number of leading tokens whose state was read from disk for this turn
    fed_ahead: int = 0  # number of restored tokens that were fed before the request
    faulted: int = 0  # number of leading tokens for which faulty stored state was found
    needs_points: bool = True  # True if the model resumes only at snapshots, not at any token
    # Highest number of tokens whose state the prefix cache could hold if it held nothing else.
    max_held: int = sys.maxsize
    # True if the user has deleted stored state, maybe of this conversation, and none was fed since.
    was_deleted: bool = False


def explain(
    request: Request, prompt: Prompt, found: PrefixHit, known: Known | None, end: int
) -> tuple[Reason, ...]:
    """Return the reasons for the tokens from found.restored to `end`, in the order of the tokens.

    The token counts of the reasons add up to the number of tokens fed.

    Args:
        request: the request that the prompt was built for.
        prompt: the token ids, and the start of each message.
        found: the part of the prompt that the prefix cache held.
        known: the earlier path of this conversation that agrees longest with the prompt. None if
            the conversation has not been fed yet.
        end: number of tokens in the caches after the prompt, or a part of it, was read.
    """
    case = _Case(request, prompt, found, known)
    stretches: list[tuple[int, Why]] = []
    for start in case.starts(end):
        before = stretches[-1] if stretches else None
        why = case.why(start, before and before[1])
        if before is not None and (joined := before[1].joined(why)) is not None:
            stretches[-1] = (before[0], joined)
        else:
            stretches.append((start, why))
    bounds = [*(start for start, _ in stretches), end]
    return tuple(
        Reason(
            kind=why.kind,
            num_tokens=stop - start,
            at=start,
            text=sentence(why, stop - start),
            is_again=why.is_again,
            message=case.number_at(start) if why.message is None else why.message,
        )
        for (_, why), (start, stop) in zip(stretches, pairwise(bounds), strict=True)
    )


@dataclass(frozen=True)
class _Case:
    """The inputs of one explanation, with methods that find the reason for a token position."""

    request: Request
    prompt: Prompt
    found: PrefixHit
    known: Known | None

    def starts(self, end: int) -> list[int]:
        """Return, in order, the positions before `end` where the reason for feeding may change."""
        first = self.found.restored
        places = {first, self.lost_end, self.found.matched, *self.prompt.message_starts}
        if self.known is not None:
            places.add(self.known.num_tokens)
        return sorted(place for place in places if first <= place < end)

    def why(self, start: int, before: Why | None) -> Why:
        """Return the reason why the token at start is fed.

        Args:
            start: the position of the token, one of starts().
            before: the reason of the preceding token; None for the first token that is fed.
        """
        if before is None and self._is_only_end(start):
            return Why(kind=ReasonKind.PROMPT_END)
        if start < self.lost_end:
            return replace(self._why_lost(start), is_again=True)
        index = self._message_at(start)
        if index == len(self.request.messages):
            # The generation tail (the template's text after the last message) gets the same reason
            # as the token before it. If only the tail is fed, it gets the reason of the last
            # message.
            return before or self._why_message(index - 1)
        is_again = index not in self.request.new_messages
        why = replace(self._why_message(index), is_again=is_again)
        if why.kind is ReasonKind.ADDED_TEXT and start < why.place:
            return Why(kind=ReasonKind.NOT_KEPT, is_again=True)
        return why

    def _is_only_end(self, start: int) -> bool:
        """Return True if nothing but the end of a prompt that was read before is fed.

        It is fed if the message was read ahead, if the logits after the prompt are not stored, or
        if reading them takes longer.
        """
        last = min(self.prompt.message_starts[-1], len(self.prompt.token_ids) - 1)
        is_lost = (
            len(self.request.messages) - 1 in self.request.new_messages and start < self.lost_end
        )
        path = None if self.known is None else self.known.path
        is_changed = path is not None and (self._options_differ(path) or self._tools_differ(path))
        return start >= last and not (is_lost or is_changed or self.found.faulted)

    @cached_property
    def lost_end(self) -> int:
        """Position at which this request would have resumed if no stored state had been lost."""
        if self.known is None:
            return self.found.faulted
        path, agreed = self.known.path, self.known.num_tokens
        points = [point for point in path.points if point <= agreed]
        if not self.found.needs_points:
            # Such a model resumes at any token. The last token is always fed, unless its logits
            # are stored, which a point at the end of the prompt shows.
            points.append(min(agreed, len(self.prompt.token_ids) - 1))
        # The points of an unloaded path are gone. All tokens that agree with it were fed before, so
        # they count as lost.
        usable = agreed if path.is_unloaded else max(points, default=0)
        return max(self.found.faulted, usable)

    def _why_left(self, known: Known) -> Why:
        """Return the reason for the first difference from a path that was fed before."""
        path, place = known.path, known.num_tokens
        index, messages = self._changed_message(known), self.request.messages
        if index == len(messages):
            return self._why_tail()
        if self._is_cut_off(index):
            return Why(kind=ReasonKind.INTERRUPTED)
        before, now = path.marks[index], marks_of(messages)[index]
        if before == now:
            return self._why_rendered(path, index, place)
        is_last = index == len(messages) - 1
        # Templates write the tools before a message, and there they count as part of it.
        if is_last and before.is_start_of(messages[index]) and not self._tools_differ(path):
            return Why(kind=ReasonKind.ADDED_TEXT, message=self._number(index), place=place)
        is_system = Role.SYSTEM in (before.role, now.role)
        kind = ReasonKind.SYSTEM_CHANGED if is_system else ReasonKind.EDITED_MESSAGE
        return Why(kind=kind, message=self._number(index), place=place)

    def _why_lost(self, start: int) -> Why:
        """Return the reason why the stored state of the token at start is gone.

        If the state at lost_end still existed, none of the lost tokens would be fed. So a fault of
        that state explains all lost tokens. The two kinds of fault differ in time: found.faulted
        was found while this prompt was restored, path.faulted_at by an earlier request or audit.
        """
        if self.found.faulted:
            return Why(kind=ReasonKind.FAULT)
        assert self.known is not None
        # A fault at a position removed all state after it. A fault at or after lost_end explains
        # nothing here.
        faulted_at = self.known.path.faulted_at
        if faulted_at is not None and faulted_at < self.lost_end:
            return Why(kind=ReasonKind.FAULT)
        if self.known.path.is_unloaded:
            index = self._message_at(start)
            is_foreign = index in self.request.foreign_messages
            if index in self.request.new_messages:
                # The app counts no model as a reader of a message whose reading was stopped.
                is_foreign = self.known.is_foreign
            return Why(kind=ReasonKind.MODEL_CHANGED if is_foreign else ReasonKind.MODEL_RELOADED)
        if self.lost_end > self.found.max_held:
            return Why(kind=ReasonKind.CHAT_TOO_LARGE)
        if start < self.found.matched:
            return Why(kind=ReasonKind.SNAPSHOT_EVICTED, place=self.lost_end)
        return Why(kind=ReasonKind.STATE_EVICTED, place=self.found.matched)

    def _why_message(self, index: int) -> Why:
        """Return the reason why a message is fed although no stored state was lost.

            message                                        reason
            read by other models only, no left path        MODEL_CHANGED
            the newest answer, without its tokens          INTERRUPTED
            follows a change of a left path                _why_left(), unless it is new and not the
                                                           first message that changed
            no known path, all messages are new            NEW_CONVERSATION
            no left path, a new system prompt, or
            a message after it that was read before        SYSTEM_CHANGED
            new                                            NEW_MESSAGE
            read before, for a newest answer               INTERRUPTED, if that has no tokens and
                                                           the user has deleted no state
            read before                                    NOT_KEPT

        There is no known path after a start of the app, or if the engine forgot it. A left path is
        one that the prompt leaves before its end.
        """
        request = self.request
        is_new, is_foreign = index in request.new_messages, index in request.foreign_messages
        left = self._left_path(index, is_new=is_new)
        if is_foreign and left is None:
            return Why(kind=ReasonKind.MODEL_CHANGED)
        if self._is_cut_off(index):
            return Why(kind=ReasonKind.INTERRUPTED)
        if left is not None:
            return self._why_left(left)
        if (news := self._why_unknown(index, is_new=is_new)) is not None:
            return news
        if is_new:
            return Why(kind=ReasonKind.NEW_MESSAGE, message=self._number(index))
        is_last = index == len(request.messages) - 1
        is_cut = self._is_cut_off(index + 1) or (is_last and request.is_unsaved)
        is_cut = is_cut and not self.found.was_deleted
        return Why(kind=ReasonKind.INTERRUPTED if is_cut else ReasonKind.NOT_KEPT)

    def _left_path(self, index: int, *, is_new: bool) -> Known | None:
        """Return the path whose difference from the prompt is why a message is fed, or None."""
        if self.known is None:
            return None
        if not self._extends(self.known):
            is_beside = is_new and index != self._changed_message(self.known)
            return None if is_beside else self.known
        left, path = self.known.left, self.known.path
        num_fed = len(path.marks) - (path.last_fed < 1)
        if left is None or index < num_fed or self._extends(left):
            return None
        if is_new:
            return left if index == self._changed_message(left) else None
        return left if marks_of(self.request.messages)[index] in left.path.marks else None

    def _why_unknown(self, index: int, *, is_new: bool) -> Why | None:
        """Return the reason that the request alone shows if no fed path explains a message."""
        messages, new = self.request.messages, self.request.new_messages
        if len(new) == len(messages):
            return Why(kind=ReasonKind.NEW_CONVERSATION) if self.known is None else None
        if messages[0].role is Role.SYSTEM and 0 in new and (index == 0 or not is_new):
            # A known path begins with the new system prompt, so its end is not the change.
            place = self.found.matched if self.known is None else self.prompt.message_starts[0]
            return Why(kind=ReasonKind.SYSTEM_CHANGED, message=self._number(0), place=place)
        return None

    def _is_cut_off(self, index: int) -> bool:
        """Return True if a message is an answer of a model whose tokens were not saved.

        Only new messages may follow it. An earlier answer has no tokens because it was edited.
        """
        following = self.request.messages[index:]
        if not following or index in self.request.new_messages:
            return False
        is_newest = self.request.new_messages.issuperset(range(index + 1, index + len(following)))
        return is_newest and following[0].role is Role.ASSISTANT and following[0].reply is None

    def _why_rendered(self, path: FedPath, index: int, place: int) -> Why:
        """Return the reason why an unchanged message has other tokens than when it was last fed."""
        messages, thoughtless = self.request.messages, self.prompt.thoughtless
        switched_off = path.keep_thinking and not self.request.keep_thinking
        if index in thoughtless and not switched_off:
            replies = [messages[one].reply for one in thoughtless if index <= one < len(path.marks)]
            num_dropped = sum(reply.answer_start for reply in replies if reply is not None)
            return Why(kind=ReasonKind.REASONING_DROPPED, num_dropped=num_dropped)
        if self._tools_differ(path):
            return Why(kind=ReasonKind.TOOLS_CHANGED, place=place)
        if self._options_differ(path):
            return Why(kind=ReasonKind.OPTIONS_CHANGED, place=place)
        return Why(kind=ReasonKind.REPLY_RENDERED, message=self._number(index))

    def _why_tail(self) -> Why:
        """Return the reason if all messages have the tokens that were fed before.

        This happens, for example, if the user regenerates a reply.
        """
        assert self.known is not None
        if self._options_differ(self.known.path):
            return Why(kind=ReasonKind.OPTIONS_CHANGED, place=self.found.restored)
        if self._tools_differ(self.known.path):
            return Why(kind=ReasonKind.TOOLS_CHANGED, place=self.found.restored)
        # Usually the known path begins with this prompt and continues with a reply. A snapshot
        # with logits was stored at the prompt's end. If it still existed, no token would be fed.
        place = len(self.prompt.token_ids)
        return Why(kind=ReasonKind.SNAPSHOT_EVICTED, place=place)

    def _tools_differ(self, path: FedPath) -> bool:
        return hash(self.request.tools) != path.tools

    def _options_differ(self, path: FedPath) -> bool:
        now = (self.request.thinking, self.request.keep_thinking)
        return now != (path.thinking, path.keep_thinking)

    def _extends(self, known: Known) -> bool:
        """Return True if the prompt only adds tokens or messages to a fed path."""
        if known.is_whole:
            return True
        # After its messages, a path may have the tokens of a draft or of a generation tail. If the
        # first difference lies there, no message that was fed has changed.
        return len(known.path.marks) <= self._changed_message(known) < len(self.request.messages)

    def _changed_message(self, known: Known) -> int:
        """Return the index of the message that contains the first difference from a fed path."""
        return self._message_at(known.num_tokens)

    def _message_at(self, place: int) -> int:
        """Return the index of the message that a token belongs to.

        The generation tail follows the last message. For its tokens, return the number of messages.
        """
        return max(0, bisect_right(self.prompt.message_starts, place) - 1)

    def number_at(self, place: int) -> int:
        """Return the number of the message of a token. The last one's for the generation tail."""
        return self._number(min(self._message_at(place), len(self.request.messages) - 1))

    def _number(self, index: int) -> int:
        """Return the number that the user sees for a message. System prompts do not count."""
        return sum(one.role is not Role.SYSTEM for one in self.request.messages[: index + 1])
