"""Writing of all resume points of one conversation, before its state is dropped from memory.

The queue (queue.py) writes only the points that are worth it. A user who moves a chat to disk
expects all. Each call is one step of the engine thread and hands at most one record to the writing
thread.
"""

from __future__ import annotations

from weakref import ReferenceType, ref

from engine.cache.disk.saving import PointSaver
from engine.cache.disk.writer import RecordWriter
from engine.cache.hot import KvNode
from engine.cache.prefix_cache import PrefixCache
from engine.types import ConversationId

# Seconds that a step waits for the writing thread, if there is nothing else to do.
_WAIT_S = 0.02


class ChatMove:
    """The resume points of one conversation on their way to the disk."""

    def __init__(
        self,
        conversation_id: ConversationId,
        cache: PrefixCache,
        saver: PointSaver,
        writer: RecordWriter,
    ) -> None:
        self._conversation_id = conversation_id
        self._cache = cache
        self._saver = saver
        self._writer = writer
        self.is_whole = True  # False once a point was found that could not be written
        self._collect()

    def step(self) -> bool:
        """Write or check one point. Return False when all points are checked."""
        if self._cache.holdings.counters.publications != self._seen:
            self._collect()  # a request has added points
        self._writer.collect()
        if self._writer.is_behind:
            self._writer.wait(_WAIT_S)
        elif self._unwritten:
            node = self._unwritten[-1]()
            if node is None or node.is_removed:
                self._unwritten.pop()
            elif self._writer.problem is not None or not self._saver.save_next(node):
                self._unchecked.append(self._unwritten.pop())
        elif self._writer.is_busy:
            self._writer.wait(_WAIT_S)
        elif self._unchecked:
            # After all writes: a record whose file failed is no longer in the index.
            node = self._unchecked.pop()()
            if node is not None and not node.is_removed:
                self.is_whole &= self._saver.is_saved(node)
        else:
            return False
        return True

    def _collect(self) -> None:
        holdings = self._cache.holdings
        self._seen = holdings.counters.publications
        # The last one is the deepest, and the first one to be written: its path has the others.
        self._unwritten: list[ReferenceType[KvNode]] = [
            ref(node)
            for node in holdings.tree.nodes()
            if self._conversation_id in node.users and holdings.is_resume_point(node)
        ]
        self._unchecked: list[ReferenceType[KvNode]] = []
