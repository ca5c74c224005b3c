"""The paths that each conversation fed, to explain why a prompt was not restored. Pure.

Kept apart from the prefix cache, for it explains what the cache has evicted. Token ids, digests of
messages and positions; no text, no arrays of the device.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from engine.chat.prompt import Prompt
from engine.events import ReadAhead
from engine.sequences import common_prefix_len
from engine.types import ConversationId, Message, Request, Role

_MAX_CONVERSATIONS = 256
_MAX_PATHS = 8  # branches of one conversation
_MAX_TOKENS = 1 << 20  # of all paths together: 4 MiB

_NO_IDS = array("I")


@dataclass(frozen=True, slots=True)
class MessageMark:
    """A message, to be told from others."""

    role: Role
    digest: int


def marks_of(messages: Iterable[Message]) -> tuple[MessageMark, ...]:
    return tuple(MessageMark(m.role, hash((m.content, m.reasoning))) for m in messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class FedPath:
    """A branch of a conversation: the tokens fed, the messages they show, where state was kept.

    Once the model is unloaded only the messages count: another model has other ids for them.
    """

    token_ids: array[int]
    marks: tuple[MessageMark, ...]
    points: frozenset[int]
    thinking: bool | None
    keep_thinking: bool
    is_unloaded: bool = False
    faulted_at: int | None = None  # what was stored after so many tokens was wrong and is dropped


@dataclass(frozen=True, slots=True)
class Known:
    """The path that agrees longest with a prompt: on its first num_tokens tokens."""

    path: FedPath
    num_tokens: int


class History:
    """The paths of the conversations used last. Engine thread only."""

    def __init__(self) -> None:
        self._paths: OrderedDict[ConversationId, list[FedPath]] = OrderedDict()

    def recall(self, request: Request, prompt: Prompt) -> Known | None:
        """What the request's conversation fed of this prompt; the newest of equal paths."""
        token_ids = array("I", prompt.token_ids)
        marks = marks_of(request.messages)
        known = [
            Known(path, prompt.message_starts[common_prefix_len(path.marks, marks)])
            if path.is_unloaded
            else Known(path, common_prefix_len(path.token_ids, token_ids))
            for path in reversed(self._paths.get(request.conversation_id, []))
        ]
        return max(known, key=lambda one: one.num_tokens, default=None)

    def remember(
        self,
        shown: Request | ReadAhead,
        prompt: Prompt,
        token_ids: Iterable[int],
        points: Iterable[int],
    ) -> None:
        """Replace the paths that the fed tokens extend.

        Args:
            shown: the messages that the tokens show, and how they were rendered.
            prompt: what was being fed; a reply may have followed.
            token_ids: all tokens fed, from the first.
            points: where state was kept this time.
        """
        fed = array("I", token_ids)
        is_draft = isinstance(shown, ReadAhead) and shown.is_draft
        said = shown.messages[:-1] if is_draft else shown.messages
        marks = marks_of(said[: bisect_left(prompt.message_starts, len(fed))])
        kept = set(points)
        others: list[FedPath] = []
        for path in self._paths.pop(shown.conversation_id, []):
            agreed = common_prefix_len(path.token_ids, fed)
            kept |= {point for point in path.points if point <= agreed}
            extends = marks[: len(path.marks)] == path.marks
            if not extends and (path.is_unloaded or agreed < len(path.token_ids)):
                others.append(path)
        newest = FedPath(
            token_ids=fed,
            marks=marks,
            points=frozenset(kept),
            thinking=shown.thinking,
            keep_thinking=shown.keep_thinking,
        )
        self._paths[shown.conversation_id] = [*others[1 - _MAX_PATHS :], newest]
        self._keep_small()

    def mark_faulted(self, token_ids: Sequence[int], num_tokens: int) -> None:
        """Note that the state stored for token_ids after num_tokens was wrong and is dropped."""
        wrong = array("I", token_ids)
        for paths in self._paths.values():
            paths[:] = [
                replace(path, faulted_at=num_tokens)
                if common_prefix_len(path.token_ids, wrong) > num_tokens
                else path
                for path in paths
            ]

    def forget(self, conversation_id: ConversationId) -> None:
        self._paths.pop(conversation_id, None)

    def forget_model(self) -> None:
        """The model's cached state is gone."""
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
