"""The figures of cached state as texts: in memory and on disk. No Qt, no I/O."""

from __future__ import annotations

from app.viewmodels import figures
from app.words import storage as words
from engine.cache_figures import CacheStatistics, HeldChats


def memory_text(found: CacheStatistics | None) -> str:
    if found is None or not found.budget_bytes:
        return words.NOTHING
    size, budget = figures.file_size(found.total_bytes), figures.file_size(found.budget_bytes)
    return words.share(size=size, budget=budget)


def memory_line(found: HeldChats | None, num_chats: int) -> str:
    """Return the line of the sidebar, or an empty string if no chat is in memory."""
    if found is None or not num_chats:
        return ""
    return words.line(size=figures.file_size(found.total_bytes), num_chats=num_chats)


def memory_tip(found: HeldChats | None) -> str:
    if found is None:
        return ""
    return words.line_tip(figures.share(found.total_bytes, found.budget_bytes))


def disk_text(found: CacheStatistics | None) -> str:
    """Return the disk space in use, or the problem for which nothing is kept on disk.

    Without a limit, nothing more is written. Without chats of its own, no model is loaded, or the
    loaded one has nothing on disk.
    """
    if found is None:
        return words.MEASURING
    if found.disk_problem is not None:
        return found.disk_problem
    if not found.disk_bytes:
        return words.NOTHING
    size = figures.file_size(found.disk_bytes)
    if not found.disk_budget_bytes:
        return size
    budget = figures.file_size(found.disk_budget_bytes)
    if not found.disk_conversations:
        return words.share(size=size, budget=budget)
    return words.used_on_disk(
        size=size,
        budget=budget,
        own=figures.file_size(found.disk_model_bytes),
        num_chats=found.disk_conversations,
    )


def pictures_text(num_bytes: int | None) -> str:
    """Return the disk space of all stored pictures."""
    if num_bytes is None:
        return words.MEASURING
    return figures.file_size(num_bytes) if num_bytes else words.NOTHING


def written_text(found: CacheStatistics | None) -> str:
    """Return how much was written to disk today."""
    if found is None:
        return words.MEASURING
    if not found.disk_written_today_bytes:
        return words.NOTHING
    return figures.file_size(found.disk_written_today_bytes)
