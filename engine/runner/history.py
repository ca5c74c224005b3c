"""The token sequences that each conversation fed, used to explain why a prompt was not restored.

The history is separate from the prefix cache, because it must describe state that the cache has
evicted. It keeps token ids, digests of messages and positions, but no text and no mlx arrays. The
runner calls `remember` when it publishes fed tokens, and `recall` when it starts a request.
explain.py then compares the request's prompt with the recalled path. The engine keeps one History
until it ends, also while no model is loaded. A path is dropped when a newer path extends it, when
the limits below are exceeded, or when the user deletes the state of its tokens.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from engine.chat.prompt import Prompt
from engine.events import ReadAhead
from engine.sequences import common_prefix_len
from engine.types import ConversationId, Message, Request, Role

_MAX_CONVERSATIONS = 256  # largest number of conversations; the least recently used are dropped
_MAX_PATHS = 8  # largest number of paths kept for one conversation
_MAX_TOKENS = 1 << 20  # largest number of token ids in all paths together: 4 MiB

_MAX_SIBLINGS = 8192  # largest number of token ids that `siblings` returns

_NO_IDS = array("I")


@dataclass(frozen=True, slots=True)
class MessageMark:
    """The role and a digest of a message, to compare messages without keeping their text."""

    role: Role
    num_chars: int  # of the text
    digest: int

    def is_start_of(self, message: Message) -> bool:
        """Return True if the marked message was this one without the end of its text."""
        shorter = replace(message, content=message.content[: self.num_chars])
        return self.num_chars < len(message.content) and self in marks_of([shorter])


def marks_of(messages: Iterable[Message]) -> tuple[MessageMark, ...]:
    """Return a mark per message. Messages with equal roles, texts and pictures have equal marks."""
    return tuple(
        MessageMark(
            m.role,
            len(m.content),
            hash((m.content, m.reasoning, m.pictures, m.calls, m.tool_name)),
        )
        for m in messages
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FedPath:
    """One branch of a conversation that was fed to the model.

    After the model is unloaded, only the messages of a path are compared with a prompt, because
    another model has other token ids.
    """

    token_ids: array[int]  # from token 0; empty after the model is unloaded
    # One mark for each message in token_ids, in their order. The last message may be there only in
    # part. The unsent text of the composer has no mark, because it may still change.
    marks: tuple[MessageMark, ...]
    last_fed: Fraction  # part of the last marked message's tokens that was fed, above 0 to 1
    model: str  # path of the model that was fed
    # Positions at which a snapshot was captured. A snapshot may have been evicted since.
    points: frozenset[int]
    thinking: bool | None  # template option with which the tokens were rendered
    keep_thinking: bool  # template option with which the tokens were rendered
    tools: int  # hash of the tools with which the tokens were rendered
    # True if the engine dropped the prefix cache with the state of these tokens, because the model
    # was unloaded or replaced.
    is_unloaded: bool = False
    # Position after which the stored state was wrong and was removed; None if no fault was found.
    faulted_at: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """The fed path that agrees longest with a prompt."""

    path: FedPath
    # Number of leading prompt tokens that agree with the path. If the path is unloaded, it is found
    # by messages: the tokens before the first message that differs, less the part of the path's
    # last message that was not fed. It is exact for the same model, and an estimate for another
    # one. If text was only added to the message that differs, its earlier text counts too, by its
    # share of characters.
    num_tokens: int
    is_whole: bool  # True if the path agrees up to its end
    is_foreign: bool = False  # True if the path was fed to another model
    # The path of this model that agrees longest with the prompt, of the paths that the prompt
    # leaves before their end. None if there is none. Set only if is_whole.
    left: Known | None = None


class History:
    """The fed paths of the conversations used most recently. Engine thread only."""

    def __init__(self) -> None:
        self._paths: OrderedDict[ConversationId, list[FedPath]] = OrderedDict()
        # Number of tokens of the newest prompt, and of the reply to it if it was fed
        self._last_len: dict[ConversationId, int] = {}
        # Conversations that were forgotten and have fed nothing since
        self._forgotten: set[ConversationId] = set()
        self._is_cleared = False  # True if the state on disk was deleted, of all conversations

    def recall(self, request: Request, prompt: Prompt, *, model: str) -> Known | None:
        """Return the path of the request's conversation that agrees longest with a prompt.

        If two paths agree equally long, the newer path is returned. None if there is no path. If
        the whole path agrees, the path that the prompt leaves is added: reading ahead may have
        stopped soon after a change, so the whole path does not show the change.

        model: path of the model that the prompt is for.
        """
        token_ids = array("I", prompt.token_ids)
        known = [
            _known_by_messages(path, prompt, request.messages, model)
            if path.is_unloaded
            else _known_by_tokens(path, token_ids)
            for path in reversed(self._paths.get(request.conversation_id, []))
        ]
        longest = max(known, key=lambda one: one.num_tokens, default=None)
        if longest is None or not longest.is_whole:
            return longest
        left = (one for one in known if not one.is_whole and one.path.model == model)
        return replace(longest, left=max(left, key=lambda one: one.num_tokens, default=None))

    def last_len(self, conversation_id: ConversationId) -> int:
        """Return the number of tokens of the branch used last, fed or not; 0 if it is not known."""
        return self._last_len.get(conversation_id, 0)

    def note_prompt(self, conversation_id: ConversationId, num_tokens: int) -> None:
        """Record the length of a conversation's newest prompt, of which nothing may be fed yet."""
        self._last_len[conversation_id] = num_tokens

    def siblings(
        self, conversation_id: ConversationId, prompt_ids: Sequence[int], *, context: int
    ) -> list[Sequence[int]]:
        """Return the branches that leave a prompt: earlier versions of an edited message or reply.

        The branch that leaves latest is the last one. Together, the branches have at most
        _MAX_SIBLINGS tokens.

        Args:
            conversation_id: the conversation.
            prompt_ids: the token ids of the prompt.
            context: number of tokens before the place where a branch leaves, which are included.
        """
        prompt = array("I", prompt_ids)
        branches: list[tuple[int, array[int]]] = []
        for path in self._paths.get(conversation_id, []):
            agreed = common_prefix_len(path.token_ids, prompt)
            if agreed < len(path.token_ids):
                branches.append((agreed, path.token_ids[max(0, agreed - context) :]))
        branches.sort(key=lambda branch: branch[0], reverse=True)
        found: list[Sequence[int]] = []
        room = _MAX_SIBLINGS
        for _, token_ids in branches:
            found.append(token_ids[:room])
            room -= len(found[-1])
        return found[::-1]

    def remember(
        self,
        shown: Request | ReadAhead,
        prompt: Prompt,
        token_ids: Iterable[int],
        points: Iterable[int],
        *,
        model: str,
    ) -> None:
        """Add a fed path to a conversation, and remove the paths that it extends.

        Args:
            shown: the request or read-ahead task whose messages were fed.
            prompt: the prompt that was fed. The tokens of a reply may follow it in token_ids.
            token_ids: all tokens fed, from the first token of the sequence.
            points: the positions of the snapshots captured while these tokens were fed.
            model: path of the model that was fed.
        """
        fed = array("I", token_ids)
        is_draft = isinstance(shown, ReadAhead) and shown.is_draft
        said = shown.messages[:-1] if is_draft else shown.messages
        marks = marks_of(said[: bisect_left(prompt.message_starts, len(fed))])
        newest = FedPath(
            token_ids=fed,
            marks=marks,
            last_fed=_part_fed(prompt.message_starts, len(marks), len(fed)),
            model=model,
            points=frozenset(points),
            thinking=shown.thinking,
            keep_thinking=shown.keep_thinking,
            tools=hash(shown.tools),
        )
        kept = set(newest.points)
        others: list[FedPath] = []
        for path in self._paths.pop(shown.conversation_id, []):
            agreed = common_prefix_len(path.token_ids, fed)
            kept |= {point for point in path.points if point <= agreed}
            is_held = not path.is_unloaded and agreed == len(path.token_ids)
            if not is_held and not _has_messages_of(newest, path):
                others.append(path)
        self._forgotten.discard(shown.conversation_id)
        self.note_prompt(shown.conversation_id, max(len(fed), len(prompt.token_ids)))
        newest = replace(newest, points=frozenset(kept))
        self._paths[shown.conversation_id] = [*others[1 - _MAX_PATHS :], newest]
        self._keep_small()

    def mark_faulted(self, token_ids: Sequence[int], num_tokens: int) -> None:
        """Record that the state of token_ids after num_tokens was wrong and was removed."""
        wrong = array("I", token_ids)
        for paths in self._paths.values():
            paths[:] = [
                replace(path, faulted_at=num_tokens)
                if common_prefix_len(path.token_ids, wrong) > num_tokens
                else path
                for path in paths
            ]

    def hand_over(self, conversation_id: ConversationId, heir: ConversationId) -> None:
        """Move the paths of a conversation to another one, which takes over its state."""
        paths = [*self._paths.pop(heir, []), *self._paths.pop(conversation_id, [])]
        if paths:
            self._paths[heir] = paths[-_MAX_PATHS:]
        if conversation_id in self._last_len:
            self._last_len[heir] = self._last_len.pop(conversation_id)

    def forget(self, conversation_id: ConversationId) -> None:
        """Remove all paths of a conversation: its state was deleted."""
        self._paths.pop(conversation_id, None)
        self._last_len.pop(conversation_id, None)
        self._forgotten.add(conversation_id)

    def clear_stored(self, in_memory: Callable[[ConversationId, Sequence[int]], int]) -> None:
        """Remove the paths whose state was on disk only: all state on disk was deleted.

        in_memory: function that returns how many of the given tokens can be restored from memory.
        """
        self._is_cleared = True
        for conversation_id, paths in list(self._paths.items()):
            paths[:] = [
                path
                for path in paths
                if not path.is_unloaded
                and in_memory(conversation_id, path.token_ids)
                >= max(path.points, default=len(path.token_ids))
            ]
            if not paths:
                del self._paths[conversation_id]

    def was_deleted(self, conversation_id: ConversationId) -> bool:
        """Return True if state of a conversation may have been deleted since it was last fed."""
        if conversation_id in self._forgotten:
            return True
        return self._is_cleared and conversation_id not in self._paths

    def forget_model(self) -> None:
        """Mark all paths as unloaded and remove their token ids: the cached state is gone."""
        self._last_len.clear()
        for paths in self._paths.values():
            paths[:] = [
                replace(path, token_ids=_NO_IDS, points=frozenset(), is_unloaded=True)
                for path in paths
            ]

    def _keep_small(self) -> None:
        while len(self._paths) > _MAX_CONVERSATIONS or (
            len(self._paths) > 1 and self._num_tokens() > _MAX_TOKENS
        ):
            self._paths.popitem(last=False)

    def _num_tokens(self) -> int:
        return sum(len(path.token_ids) for paths in self._paths.values() for path in paths)


def _known_by_tokens(path: FedPath, token_ids: array[int]) -> Known:
    agreed = common_prefix_len(path.token_ids, token_ids)
    return Known(path, agreed, is_whole=agreed == len(path.token_ids))


def _known_by_messages(
    path: FedPath, prompt: Prompt, messages: Sequence[Message], model: str
) -> Known:
    agreed = common_prefix_len(path.marks, marks_of(messages))
    is_whole = agreed == len(path.marks)
    end = prompt.message_starts[agreed]
    if is_whole and agreed:
        start = prompt.message_starts[agreed - 1]
        end = start + int((end - start) * path.last_fed)
    elif not is_whole and agreed < len(messages):
        mark, message = path.marks[agreed], messages[agreed]
        if mark.is_start_of(message):
            part = Fraction(mark.num_chars, len(message.content))
            part *= path.last_fed if agreed == len(path.marks) - 1 else 1
            end += int((prompt.message_starts[agreed + 1] - end) * part)
    return Known(path, end, is_whole=is_whole, is_foreign=path.model != model)


def _part_fed(starts: Sequence[int], num_marks: int, num_fed: int) -> Fraction:
    """Return the part of the last marked message's tokens that was fed.

    A reply that follows the prompt has no end in `starts`. It counts as whole.
    """
    if num_marks in (0, len(starts)) or num_fed >= starts[num_marks]:
        return Fraction(1)
    start, end = starts[num_marks - 1], starts[num_marks]
    return Fraction(num_fed - start, end - start)


def _has_messages_of(path: FedPath, other: FedPath) -> bool:
    """Return True if a path contains all messages of another one, as far as they were fed."""
    is_shorter = len(other.marks) < len(path.marks) or other.last_fed <= path.last_fed
    return is_shorter and path.marks[: len(other.marks)] == other.marks
