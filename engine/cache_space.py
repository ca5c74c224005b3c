"""The prefix cache of the loaded model: created, limited, forgotten and dropped here.

The engine loop (core.py) has one CacheSpace. The part of the cache that is on disk (disk_space.py)
is opened and closed together with it. Engine thread only.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import assert_never

from engine.cache.disk.tier import DiskTier
from engine.cache.prefix_cache import ANOTHER_TOKEN, PrefixCache
from engine.cache.shares import Shares, shares_in_memory
from engine.cache_figures import NOTHING_CACHED, CacheReport, HeldChat, HeldChats
from engine.config import EngineConfig
from engine.disk_space import DiskSpace
from engine.errors import Failure, attempt
from engine.events import Answered
from engine.idle import Idler
from engine.memory import MemoryWatch, cache_budget, freed_bytes, process_bytes, release_freed
from engine.models.loader import LoadedModel
from engine.moving import Mover
from engine.questions import (
    CacheQuestion,
    ClearDisk,
    Evict,
    EvictWhat,
    Forget,
    ForgetUnknown,
    MoveToDisk,
    QuestionId,
    ReportCache,
    ReportChats,
)
from engine.runner.history import History
from engine.types import ConversationId, chat_of
from engine.vision.seeing import Vision
from engine.wanted import Wanted

# Highest number of conversations that one ForgetUnknown question forgets: each takes a few
# milliseconds of the engine thread.
MOST_FORGOTTEN = 20

log = logging.getLogger(__name__)


class CacheSpace:
    """The prefix cache, its budget of memory, and its part on disk.

    A LoadModel command for the same model keeps the cache and the state of all conversations. A
    LoadModel command for another model drops the cache, and so does UnloadModel.
    """

    def __init__(self, config: EngineConfig, history: History, idler: Idler) -> None:
        """Create a space without a cache.

        Args:
            config: the settings of the engine.
            history: the earlier prompts of the conversations.
            idler: the idle work. A job in progress holds cached state.
        """
        self._config = config
        self._history = history
        self._idler = idler
        self.cache: PrefixCache | None = None
        # The check of the machine's memory. There is none before the first cache, or if the config
        # sets a fixed budget.
        self._watch: MemoryWatch | None = None
        # Weights of the loaded model in this process; None while there is none
        self._weight_bytes: int | None = None
        self._vision: Vision | None = None  # of the loaded model
        self._model_bytes = 0  # weights of the loaded model on all stages
        self._wanted = Wanted.of(config)
        self._disk_space = DiskSpace(config, self._wanted.disk)
        self._mover = Mover(self._drop_moved)
        # Fingerprint of the model that the cache belongs to, or that the last cache belonged to if
        # there is no cache now. Another model needs a new cache.
        self._namespace = ""

    @property
    def disk(self) -> DiskTier | None:
        """The cached state on disk. None if no folder is configured, or if it cannot be used."""
        return self._disk_space.tier

    @property
    def work_in_s(self) -> float:
        """Seconds until there may be work without a command; infinite if a command must come.

        The system reports no change of memory, battery or heat by an event, so these are looked for
        every memory_check_s while something depends on them.
        """
        times = [math.inf]
        if self.disk is not None:
            # State that is due now waits for the end of battery power or of heat.
            is_due = self.disk.has_work
            times.append(self._config.memory_check_s if is_due else self.disk.work_in_s)
        if self.cache is not None and self._watch is not None and self._watch.must_look(self.cache):
            times.append(self._config.memory_check_s)
        return min(times)

    # Creation and end

    def keep_for(self, namespace: str) -> None:
        """Keep the cache for the model with a fingerprint, or drop the cache of another model."""
        if namespace != self._namespace:
            self.drop()
        self._namespace = namespace

    def read_early(self, conversation_id: ConversationId | None) -> None:
        """Begin to read the state of a conversation from disk while its model is being loaded."""
        if self.cache is None:
            self._disk_space.read_early(self._namespace, conversation_id)

    def open(self, model: LoadedModel) -> PrefixCache:
        """Return the cache of a loaded model. It is created only if none was kept."""
        self._weight_bytes, self._model_bytes = model.own_weight_bytes, model.facts.weight_bytes
        self._vision = model.vision
        if self.cache is None:
            self.cache = self._make_cache(model)
        if not model.others:
            self._disk_space.open(
                self.cache, model.layout, model.adapter.new_caches, self._namespace
            )
        self._fit_budget()  # a kept cache has the budget of its own load
        return self.cache

    def rest(self) -> None:
        """Keep the cache as it is while no model is loaded."""
        self._weight_bytes, self._model_bytes, self._vision = None, 0, None

    def drop(self, *, write_until: float | None = None) -> None:
        """Evict all cached state and drop the cache. A call without a cache is harmless.

        No request may run. evict_all would spare the state of a running request.

        write_until: time.monotonic() until which state is written to disk. None: for the configured
            time.
        """
        self._disk_space.close(until=write_until)
        if self.cache is not None:
            self._idler.clear()
            # Tree nodes and their parents reference each other. Without evict_all their arrays
            # would stay in memory until the next garbage collection.
            self.cache.evict_all()
        self.cache = None
        self._history.forget_model()
        release_freed()

    def _make_cache(self, model: LoadedModel) -> PrefixCache:
        """Create an empty prefix cache for a model. Pin the pinned conversations in it."""
        budget = cache_budget(self._config, model.own_weight_bytes)
        if self._config.cache_budget_bytes is None:
            self._watch = MemoryWatch(self._config, budget)
        cache = PrefixCache(
            model.layout,
            budget_bytes=budget,
            max_hot=self._config.max_hot,
            on_fault=self._mark_faulted,
            far_budgets=[stage.budget_bytes for stage in model.others],
        )
        for conversation_id in self._wanted.pinned:
            cache.pin(conversation_id, pinned=True)
        return cache

    def _mark_faulted(self, token_ids: Sequence[int], num_tokens: int) -> None:
        """Record that the state of token_ids after num_tokens was wrong. Remove it from disk."""
        self._history.mark_faulted(token_ids, num_tokens)
        self._disk_space.mark_faulty(token_ids, num_tokens)

    # Settings and commands

    def want(self, wanted: Wanted) -> None:
        """Act on the differences to the settings before: pins, memory and disk."""
        before, self._wanted = self._wanted, wanted
        if self.cache is not None:
            for conversation_id in wanted.pinned ^ before.pinned:
                self.cache.pin(conversation_id, pinned=conversation_id in wanted.pinned)
        if wanted.most_cached_bytes != before.most_cached_bytes:
            self._config = replace(self._config, most_budget_bytes=wanted.most_cached_bytes)
            self._fit_budget()
        if wanted.disk != before.disk:
            self._disk_space.configure(wanted.disk)

    def answer(self, question: CacheQuestion) -> CacheReport | HeldChats:
        """Do what a question says. Return the figures after it."""
        match question:
            case ReportChats():
                return self._report_chats()
            case ReportCache():
                pass
            case Forget():
                self._forget(question)
            case ForgetUnknown():
                self._forget_unknown(question)
            case ClearDisk():
                self._clear_disk()
            case Evict(what):
                self._evict(what)
            case _:
                assert_never(question)
        return self._report(
            checks_invariants=isinstance(question, ReportCache) and question.checks_invariants
        )

    def _evict(self, what: EvictWhat) -> None:
        # An idle job in progress holds a lease, and leased state is not evicted.
        self._idler.pause()
        if self.cache is not None:
            _evict_part(self.cache, what)

    def _forget(self, question: Forget) -> None:
        """Drop the state of a conversation. It stays pinned: that is a setting."""
        self._idler.drop_work_of(question.conversation_id)
        if question.heir is not None:
            self._history.hand_over(question.conversation_id, question.heir)
            if self.cache is not None:
                self.cache.hand_over(question.conversation_id, question.heir)
        self._history.forget(question.conversation_id)
        if question.on_disk:
            self._disk_space.forget(question.conversation_id)
        if self.cache is not None:
            self.cache.forget(question.conversation_id)
            # Forgotten arrays stay in MLX's buffer cache. Return them to the machine.
            release_freed()

    def _clear_disk(self) -> None:
        """Delete the state on disk of all conversations. State in memory stays."""
        self._disk_space.clear()
        self._history.clear_stored(self._in_memory)

    def _in_memory(self, conversation_id: ConversationId, token_ids: Sequence[int]) -> int:
        """Return the number of leading tokens that can be restored from memory."""
        cache = self.cache
        return (
            0
            if cache is None
            else cache.match(conversation_id, (*token_ids, ANOTHER_TOKEN)).restored
        )

    def _forget_unknown(self, question: ForgetUnknown) -> None:
        """Forget conversations on disk that are not known."""
        others = self._disk_space.users - question.known
        unknown = [one for one in sorted(others) if not one.startswith(question.known_prefixes)]
        for conversation_id in unknown[:MOST_FORGOTTEN]:
            log.info("conversation %s is forgotten: it was removed", conversation_id)
            self._forget(Forget(conversation_id))

    def _report(self, *, checks_invariants: bool) -> CacheReport:
        statistics, checked = NOTHING_CACHED, None
        if self.cache is not None:
            statistics = self.cache.statistics()
            if checks_invariants:
                checked = attempt("a check of the cache", self.cache.check_invariants)
        return CacheReport(
            self._disk_space.with_figures(statistics),
            checked.problem if isinstance(checked, Failure) else None,
            freed_bytes=freed_bytes(),
            process_bytes=process_bytes(),
        )

    # Moves from memory to disk

    @property
    def is_moving(self) -> bool:
        """True if a question of the class MoveToDisk is not answered yet."""
        return self._mover.is_busy

    def move(self, question_id: QuestionId, question: MoveToDisk) -> None:
        """Queue a move to the disk. An idle job in progress holds state that may have to go."""
        self._idler.pause()
        self._mover.add(question_id, question)

    def step_move(self) -> Answered | None:
        """Do one step of the moves. Return an answer if a question is done."""
        done = self._mover.step(self.disk)
        return None if done is None else Answered(done, self._report_chats())

    def _drop_moved(self, conversation_id: ConversationId) -> None:
        """Drop the state of a conversation that is on disk, and what would be read ahead of it."""
        self._idler.drop_read_ahead(conversation_id)
        if self.cache is not None:
            self.cache.forget(conversation_id)
            release_freed()

    def _report_chats(self) -> HeldChats:
        cache = self.cache
        memory = Shares() if cache is None else shares_in_memory(cache.holdings)
        disk = self._disk_space.shares()
        leases = () if cache is None else cache.holdings.leases
        in_use = {chat_of(lease.hot.conversation_id) for lease in leases if not lease.side}
        pinned = self._wanted.pinned
        # Several answers that are being written in a chat have ids of their own.
        ids: dict[ConversationId, list[ConversationId]] = {}
        for one in memory.users | disk.users:
            ids.setdefault(chat_of(one), []).append(one)
        return HeldChats(
            chats=tuple(
                HeldChat(
                    conversation_id=one,
                    memory_bytes=sum(memory.own.get(id_, 0) for id_ in parts),
                    memory_tokens=max(memory.num_tokens.get(id_, 0) for id_ in parts),
                    disk_bytes=sum(disk.own.get(id_, 0) for id_ in parts),
                    disk_tokens=max(disk.num_tokens.get(id_, 0) for id_ in parts),
                    last_tokens=self._history.last_len(one),
                    is_pinned=one in pinned,
                    is_in_use=one in in_use,
                )
                for one, parts in ids.items()
            ),
            shared_bytes=memory.shared,
            unused_bytes=memory.unused,
            shared_disk_bytes=disk.shared,
            unused_disk_bytes=disk.unused,
            other_disk_bytes=self._disk_space.other_bytes,
            is_disk_open=self.disk is not None,
            model_bytes=self._model_bytes,
            budget_bytes=0 if cache is None else cache.budget_bytes,
            freed_bytes=freed_bytes(),
            process_bytes=process_bytes(),
        )

    # Budget of memory

    def check_memory(self, *, is_reading: bool) -> None:
        """Adapt an automatic budget to the machine's available memory, if a check is due.

        The caches of an idle job count towards the budget. The job is paused before the budget
        changes, so that nothing is evicted in favour of it. If the budget becomes smaller, the
        vision tower is dropped too.

        is_reading: True while a prompt is read. The tower stays then: it may be computing a
            picture.
        """
        if self.cache is None or self._watch is None:
            return
        before = self.cache.budget_bytes
        adjust = partial(self._watch.adjust_budget, self.cache, self._idler.pause)
        attempt("a change of the budget", adjust)
        if self.cache.budget_bytes < before and self._vision is not None and not is_reading:
            self._vision.release()
            release_freed()

    def _fit_budget(self) -> None:
        """Give the cache of the loaded model the automatic budget of the present limit."""
        if self.cache is not None and self._watch is not None and self._weight_bytes is not None:
            full = cache_budget(self._config, self._weight_bytes)
            self._watch.set_full(full, self.cache, self._idler.pause)


def _evict_part(cache: PrefixCache, what: EvictWhat) -> None:
    match what:
        case EvictWhat.HOT:
            cache.eviction.evict_hot()
        case EvictWhat.SNAPSHOTS:
            cache.eviction.evict_snapshots()
        case EvictWhat.ALL:
            cache.evict_all()
        case _:
            assert_never(what)
