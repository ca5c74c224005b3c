"""Chats in memory and on disk, for pictures of the window about memory and storage."""

from __future__ import annotations

from app.widgets.commands import CommandId
from app.widgets.memory_window import MemoryView, MemoryWindow
from engine.cache_figures import HeldChat, HeldChats
from engine.questions import ReportChats
from engine.types import ConversationId
from tests.fakes.stage import Stage

_MB = 10**6
_QUESTIONS = (
    "How do boats float?",
    "Trains of the Alps",
    "A long story about a lighthouse keeper and her cat",
    "Taxes 2026",
    "Recipe for bread",
    "Python: radix trees",
    "Names for a dog",
)


def memory(stage: Stage, view: MemoryView) -> None:
    """Show chats in memory, on disk and in use; one is kept, and one is selected."""
    ids: list[str] = []
    for question in _QUESTIONS:
        stage.run(CommandId.NEW_CHAT)
        stage.chat(question, "Yes.")
        ids.append(str(stage.core.library.current))
    stage.run(CommandId.MEMORY_MAP)
    window = stage.window.findChild(MemoryWindow)
    assert isinstance(window, MemoryWindow)
    stage.engine.answer(ReportChats, _report(ids))
    stage.settle()
    window.tabs.buttons[view].click()
    window.map.chosen.emit(frozenset({ids[1]}))


def empty_memory(stage: Stage) -> None:
    """Show the window before a model has read a chat."""
    stage.run(CommandId.MEMORY_MAP)
    stage.engine.answer(ReportChats, HeldChats(model_bytes=5_200 * _MB, budget_bytes=12_000 * _MB))
    stage.settle()


def _report(ids: list[str]) -> HeldChats:
    sizes = (
        (900, 14_310, 1_100),
        (420, 8_014, 0),
        (310, 5_900, 310),
        (0, 0, 260),
        (0, 0, 190),
        (75, 812, 0),
        (12, 96, 0),
    )
    chats = [
        HeldChat(
            conversation_id=ConversationId(key),
            memory_bytes=memory_mb * _MB,
            memory_tokens=tokens,
            disk_bytes=disk_mb * _MB,
            disk_tokens=(tokens or disk_mb * 20) if disk_mb else 0,
            last_tokens=tokens,
            is_pinned=number == 0,
            is_in_use=number == 5,
        )
        for number, (key, (memory_mb, tokens, disk_mb)) in enumerate(zip(ids, sizes, strict=True))
    ]
    program = HeldChat(
        conversation_id=ConversationId("server:1"),
        memory_bytes=230 * _MB,
        memory_tokens=4_100,
        disk_bytes=0,
        disk_tokens=0,
        is_pinned=False,
        is_in_use=False,
    )
    return HeldChats(
        chats=(*chats, program),
        is_disk_open=True,
        shared_bytes=96 * _MB,
        shared_disk_bytes=96 * _MB,
        other_disk_bytes=640 * _MB,
        model_bytes=5_200 * _MB,
        budget_bytes=12_000 * _MB,
    )
