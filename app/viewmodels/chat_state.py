"""Place of a chat's cached state, from the engine's ledger or a counted prompt. No Qt, no I/O."""

from __future__ import annotations

from enum import Enum, auto

from app.words import state as words
from engine.cache_figures import HeldChat
from engine.questions import TokensCounted

# Part of the branch used last, or of the next prompt, that must be cached. The rest is, for
# example, the text of the template after an answer.
_MOST = 0.9


class ChatState(Enum):
    """The place of a chat's cached state. A dot shows it in the list of chats."""

    MEMORY = auto()
    DISK = auto()
    UNREAD = auto()  # the loaded model has to read most of the chat

    @property
    def text(self) -> str:
        return _TEXTS[self]


_TEXTS = {
    ChatState.MEMORY: words.IN_MEMORY,
    ChatState.DISK: words.ON_DISK,
    ChatState.UNREAD: words.TO_BE_READ,
}


def chat_state(held: HeldChat | None) -> ChatState:
    """Return the state of a chat. `held` is None if no state of it is cached.

    The length of the branch used last is known if the chat was read since the app was started.
    """
    if held is None:
        return ChatState.UNREAD
    length = held.last_tokens or max(held.memory_tokens, held.disk_tokens)
    return _state(length, held.memory_tokens, held.disk_tokens)


def counted_state(counted: TokensCounted) -> ChatState:
    """Return the state of a chat whose next prompt was counted."""
    num_in_memory = counted.num_cached - counted.num_on_disk
    return _state(counted.num_tokens, num_in_memory, counted.num_cached)


def _state(length: int, num_in_memory: int, num_on_disk: int) -> ChatState:
    least = max(1, _MOST * length)
    if num_in_memory >= least:
        return ChatState.MEMORY
    return ChatState.DISK if num_on_disk >= least else ChatState.UNREAD
