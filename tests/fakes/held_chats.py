"""Reports of cached state, for windows on the fake engine."""

from __future__ import annotations

from engine.cache_figures import HeldChat, HeldChats
from engine.questions import ReportChats
from engine.types import ConversationId
from tests.fakes.stage import Stage

NUM_TOKENS = 100


def held_chat(
    conversation_id: ConversationId, *, memory_tokens: int = NUM_TOKENS, last_tokens: int = 0
) -> HeldChat:
    """Return the entry of a conversation that has nothing on disk."""
    return HeldChat(
        conversation_id=conversation_id,
        memory_bytes=0,
        memory_tokens=memory_tokens,
        disk_bytes=0,
        disk_tokens=0,
        last_tokens=last_tokens,
        is_pinned=False,
        is_in_use=False,
    )


def report_chats(stage: Stage, *chats: HeldChat, total_bytes: int = 0, budget: int = 0) -> None:
    """Report the cached state of conversations, after a change that the fake engine does not make."""
    stage.core.memory_map.ask()
    report = HeldChats(chats=chats, shared_bytes=total_bytes, budget_bytes=budget)
    stage.engine.answer(ReportChats, report)
    stage.settle()


def report_all_in_memory(stage: Stage, *, total_bytes: int, budget: int = 0) -> None:
    """Report that all conversations of the list are in memory."""
    listed = stage.core.library.listed.all
    chats = (held_chat(one.conversation_id) for one in listed)
    report_chats(stage, *chats, total_bytes=total_bytes, budget=budget)
