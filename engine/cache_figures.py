"""Figures of the cached state, in memory and on disk: for the user, and for checks. No mlx."""

from __future__ import annotations

from dataclasses import dataclass

from engine.problem import Problem
from engine.types import ConversationId


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStatistics:
    """Memory use of the prefix cache, and counters of events since the cache was created."""

    kv_bytes: int = 0  # bytes of K/V arrays that belong to tree nodes, outside of live caches
    snapshot_bytes: int = 0
    hot_bytes: int = 0  # bytes of live caches, including K/V that tree nodes reference
    total_bytes: int = 0  # kv_bytes + snapshot_bytes + hot_bytes
    budget_bytes: int = 0
    num_conversations: int = 0  # number of chats with state in memory
    num_nodes: int = 0
    num_snapshots: int = 0
    num_hot: int = 0  # number of live caches that no request is using
    matches: int = 0  # number of prompts with at least one restored token
    evictions: int = 0  # number of nodes, snapshots, logits and live caches evicted to make room
    # Number of cached states that were removed because a restore found them wrong.
    restore_faults: int = 0
    copied_bytes: int = 0  # number of K/V bytes that had to be copied
    audits: int = 0  # number of stored states that were recomputed and compared
    audit_faults: int = 0  # number of audits that found a wrong state, which was removed
    disk_bytes: int = 0  # size of the cached state of all models on disk
    disk_model_bytes: int = 0  # the part of disk_bytes that belongs to the loaded model
    disk_records: int = 0  # number of files of the loaded model
    disk_conversations: int = 0  # number of chats with state on disk, for the loaded model
    disk_written_bytes: int = 0  # bytes written to disk since the model was loaded
    disk_written_today_bytes: int = 0
    disk_budget_bytes: int = 0  # highest size of all cached state on disk
    disk_damaged: int = 0  # number of files that could not be used and were removed
    disk_problem: str | None = None  # why nothing is kept on disk any more, as one sentence

    def without_model(self) -> CacheStatistics:
        """Return the figures that all models share, without those of the loaded model."""
        return CacheStatistics(
            disk_bytes=self.disk_bytes,
            disk_budget_bytes=self.disk_budget_bytes,
            disk_written_today_bytes=self.disk_written_today_bytes,
            disk_problem=self.disk_problem,
        )


NOTHING_CACHED = CacheStatistics()


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The prefix cache, and memory beside it."""

    statistics: CacheStatistics
    # The violated invariant of the cache. None if no check found one.
    broken: Problem | None = None
    # Bytes of freed buffers that MLX keeps for reuse. The cache's budget does not include them.
    freed_bytes: int = 0
    process_bytes: int = 0  # resident memory of the whole process


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldChat:
    """The cached state of one conversation, without state that other conversations use too."""

    conversation_id: ConversationId
    memory_bytes: int
    # Number of tokens up to the deepest resume point in memory, on the branch used last. A request
    # that is still running has not added its own yet.
    memory_tokens: int
    disk_bytes: int
    disk_tokens: int  # number of tokens up to the deepest resume point on disk, on any branch
    # Length of the newest prompt, of which a part or nothing may be fed yet, and of its reply; 0 if
    # it is not known.
    last_tokens: int = 0
    is_pinned: bool
    is_in_use: bool  # True while a request or a read-ahead of the conversation is running


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldChats:
    """The cached state by conversation, and memory beside it. Each byte is in exactly one field.

    In memory: CacheStatistics.total_bytes in sum. On disk: CacheStatistics.disk_bytes in sum.
    """

    chats: tuple[HeldChat, ...] = ()  # the conversations with cached state
    shared_bytes: int = 0  # bytes in memory that several conversations use
    # Bytes in memory that no conversation uses: of a title, preview or audit that is running, and
    # forgotten state that a running request still needs.
    unused_bytes: int = 0
    shared_disk_bytes: int = 0
    unused_disk_bytes: int = 0
    other_disk_bytes: int = 0  # size of the cached state of all other models on disk
    # False while the folder on disk is not in use: the files in it are not counted then.
    is_disk_open: bool = False
    model_bytes: int = 0  # size of the weights of the loaded model, on all stages
    budget_bytes: int = 0  # highest size of the cached state in memory
    freed_bytes: int = 0  # same meaning as CacheReport.freed_bytes
    process_bytes: int = 0  # same meaning as CacheReport.process_bytes

    @property
    def total_bytes(self) -> int:
        """All cached state in memory."""
        own = sum(chat.memory_bytes for chat in self.chats)
        return own + self.shared_bytes + self.unused_bytes

    @property
    def disk_bytes(self) -> int:
        """All cached state on disk, of all models."""
        own = sum(chat.disk_bytes for chat in self.chats)
        return own + self.shared_disk_bytes + self.unused_disk_bytes + self.other_disk_bytes
