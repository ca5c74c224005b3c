"""The cached state on disk of the loaded model: opened, limited, forgotten and closed here.

CacheSpace has one DiskSpace. It is open while a prefix cache exists. The tier itself, which saves
and restores, is in cache/disk. Engine thread only.
"""

from __future__ import annotations

import hashlib
import logging
import platform
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import mlx.core as mx

from engine.cache.disk.daily import DailyBytes
from engine.cache.disk.early import read_early
from engine.cache.disk.folder import (
    FolderInUseError,
    FolderLock,
    RecordFolder,
    daily_file_of,
    delete_all,
    stored_bytes,
)
from engine.cache.disk.tier import DiskTier
from engine.cache.disk.writer import DiskLimits
from engine.cache.layout import Layout
from engine.cache.prefix_cache import PrefixCache
from engine.cache.shares import Shares
from engine.cache_figures import CacheStatistics
from engine.config import EngineConfig
from engine.disk_deletion import Work, forget, with_lock
from engine.errors import Failure, attempt
from engine.types import ConversationId
from engine.wanted import DiskSettings

log = logging.getLogger(__name__)

# Default size of the folder: this many bytes, or this share of the space that is free without it.
_BUDGET_BYTES = 20 * 10**9
_BUDGET_SHARE = 0.1
# Sentences for the user: why the tier is off, or what was not deleted.
_IN_USE = "Another Rejoinder uses the cached state on disk."
_WAS_REPLACED = (
    "Off until you open Rejoinder again: the part of it that keeps state on disk stopped working."
)
_NOT_DELETED = "Cached state could not be deleted. Open Rejoinder again, then clear the cache."


def disk_namespace(model: str, config: EngineConfig) -> str:
    """Return a hash of all that decides the bits of cached state.

    model: the result of models.loader.namespace_of: weights, quantisation, K/V bits and device.
    """
    parts = [
        model,
        *(f"{name} {version(name)}" for name in ("mlx", "mlx-lm")),
        str(mx.device_info().get("device_name", "")),
        platform.machine(),
        f"OpenBLAS: {config.use_openblas}",
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


class DiskSpace:
    """The part of the prefix cache that is on disk, and the lock of its folder.

    Without it, the cache works as before. So no method raises an error of the folder.
    """

    def __init__(self, config: EngineConfig, settings: DiskSettings | None) -> None:
        """Create a closed space. `configure` changes the settings later."""
        self._config = config
        self._settings = settings
        self.tier: DiskTier | None = None  # None while the space is closed or cannot be used
        self._problem: str | None = None  # the newest problem while the tier is off
        self._lock: FolderLock | None = None
        self._open: Callable[[], None] | None = None  # opens the tier of the cache in use again
        # Size of the folder of all models, measured while there is no tier. None: to be measured
        self._closed_bytes: int | None = None
        # Arguments of the last read_early()
        self._early: tuple[str, ConversationId | None] | None = None

    @property
    def _root(self) -> Path | None:
        """The folder of all models. None if nothing is kept on disk."""
        return None if self._settings is None else Path(self._settings.folder)

    def read_early(self, namespace: str, conversation_id: ConversationId | None) -> None:
        """Begin to read the state of a conversation on another thread, before the tier is opened.

        Args:
            namespace: the result of models.loader.namespace_of for the model that is being loaded.
            conversation_id: the conversation whose requests come next. The same one is read once.
        """
        root, settings, before = self._root, self._settings, self._early
        self._early = namespace, conversation_id
        if root is None or settings is None or not settings.enabled or self.tier is not None:
            return
        if conversation_id is None or self._early == before:
            return
        folder = root / disk_namespace(namespace, self._config)
        threading.Thread(
            target=attempt,
            args=("reading cached state early", partial(read_early, folder, conversation_id)),
            name="early state",
            daemon=True,
        ).start()

    def open(
        self,
        cache: PrefixCache,
        layout: Layout,
        new_caches: Callable[[], list[object]],
        namespace: str,
    ) -> None:
        """Open the tier of a cache, if a folder is configured and the tier is not open yet.

        Args:
            cache: the prefix cache of the loaded model.
            layout: the bytes per token and per snapshot of the model.
            new_caches: function that returns empty caches of the model.
            namespace: the result of models.loader.namespace_of for the model.
        """
        self._open = partial(self.open, cache, layout, new_caches, namespace)
        self._closed_bytes = self._early = None
        root, settings = self._root, self._settings
        if root is None or settings is None or not settings.enabled or self.tier is not None:
            return
        self._problem = None
        try:
            self._lock = FolderLock(root)
            folder = RecordFolder(root, disk_namespace(namespace, self._config))
            limits = _limits(settings, self._config, folder)
            rest_s = self._config.disk_rest_s
            self.tier = DiskTier(folder, cache, layout, new_caches, limits, rest_s)
        except FolderInUseError as error:
            self._problem = _WAS_REPLACED if error.is_own else _IN_USE
            log.warning("the cached state on disk is off: %s", self._problem)
        except OSError as error:
            self._problem = f"Cached state cannot be kept on disk: {error.strerror}."
            log.warning("the cached state on disk cannot be used", exc_info=True)
        if self.tier is None:
            self._release()

    def close(self, *, writes: bool = True, until: float | None = None) -> None:
        """Close the folder. First write what is not on disk yet, within the configured time.

        until: time.monotonic() at which the writing ends, if this is sooner.
        """
        if self.tier is not None:
            seconds = self._config.disk_close_s if writes else 0.0
            if until is not None:
                seconds = min(seconds, until - time.monotonic())
            attempt("writing cached state", partial(self.tier.close, seconds))
        self._open = self._closed_bytes = None
        self.tier = None
        self._release()

    def configure(self, settings: DiskSettings | None) -> None:
        """Change folder and budget. The tier of the cache in use is closed, and opened again."""
        open_again = self._open
        self.close(writes=settings is not None and settings.enabled)
        self._settings = settings
        if open_again is not None:
            open_again()

    def clear(self) -> None:
        """Delete the records of all models."""
        root, open_again = self._root, self._open
        self.close(writes=False)
        if root is not None and root.is_dir():
            self._delete(root, delete_all)
        if open_again is not None:
            open_again()

    def forget(self, conversation_id: ConversationId) -> None:
        """Delete the records of a conversation, for all models."""
        root = self._root
        if root is None or not root.is_dir():
            return
        used = None
        if self.tier is not None:
            used = self.tier.namespace
            self.tier.forget(conversation_id)
        self._delete(root, forget(conversation_id, used=used))

    @property
    def users(self) -> set[ConversationId]:
        """The conversations that have state of the loaded model on disk."""
        return set() if self.tier is None else self.tier.users

    def mark_faulty(self, token_ids: Sequence[int], num_tokens: int) -> None:
        """Delete the state of token_ids after num_tokens, because it was wrong."""
        if self.tier is not None:
            self.tier.remove_after(token_ids, num_tokens)

    def shares(self) -> Shares:
        """Return the bytes on disk of each conversation, for the loaded model."""
        return Shares() if self.tier is None else self.tier.shares()

    @property
    def other_bytes(self) -> int:
        """Size of the cached state of all other models: of all models while there is no tier."""
        return self._measured() if self.tier is None else self.tier.statistics().other_bytes

    def with_figures(self, statistics: CacheStatistics) -> CacheStatistics:
        """Return the statistics of the cache with the figures of its part on disk."""
        if self.tier is None:
            return self._with_closed(statistics)
        found = self.tier.statistics()
        return replace(
            statistics,
            disk_bytes=found.nbytes + found.other_bytes,
            disk_model_bytes=found.nbytes,
            disk_records=found.num_records,
            disk_conversations=found.num_conversations,
            disk_written_bytes=found.written_bytes,
            disk_written_today_bytes=found.written_today_bytes,
            disk_budget_bytes=self.tier.limits.budget_bytes,
            disk_damaged=found.damaged,
            disk_problem=found.problem,
        )

    def _with_closed(self, statistics: CacheStatistics) -> CacheStatistics:
        """Return the statistics with the figures of the folder, which no tier uses."""
        statistics = replace(statistics, disk_problem=self._problem, disk_bytes=self._measured())
        root, settings = self._root, self._settings
        if root is None or settings is None or not root.is_dir():
            return statistics
        budget = 0
        if settings.enabled:
            find = partial(_budget, settings, root, statistics.disk_bytes)
            found = attempt("measuring the space for cached state", find)
            budget = 0 if isinstance(found, Failure) else found
        written = DailyBytes(daily_file_of(root), time.time).nbytes
        return replace(statistics, disk_budget_bytes=budget, disk_written_today_bytes=written)

    def _measured(self) -> int:
        """Return the size of the folder of all models. It is measured once until it may change."""
        if self._closed_bytes is None:
            root, found = self._root, 0
            if root is not None and root.is_dir():
                measured = attempt("measuring cached state", partial(stored_bytes, root))
                found = 0 if isinstance(measured, Failure) else measured
            self._closed_bytes = found
        return self._closed_bytes

    def _delete(self, root: Path, work: Work) -> None:
        """Delete files in the folder of all models, and note if that failed."""
        self._closed_bytes = None
        delete = partial(work, root) if self._lock is not None else partial(with_lock, root, work)
        if isinstance(attempt("deleting cached state", delete), Failure):
            self._problem = _NOT_DELETED

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
        self._lock = None


def _limits(settings: DiskSettings, config: EngineConfig, folder: RecordFolder) -> DiskLimits:
    """Return how much the tier may keep and write.

    Raises:
        OSError: the free space of the disk is unknown.
    """
    budget = _budget(settings, folder.path, folder.index.nbytes + folder.other_bytes())
    return DiskLimits(budget_bytes=budget, daily_bytes=config.disk_daily_bytes)


def _budget(settings: DiskSettings, folder: Path, used: int) -> int:
    """Return the highest size of all cached state on disk.

    Args:
        settings: the settings of the folder.
        folder: a folder on the same disk.
        used: the size now.

    Raises:
        OSError: the free space of the disk is unknown.
    """
    if settings.budget_bytes is not None:
        return settings.budget_bytes
    free = shutil.disk_usage(folder).free
    return min(_BUDGET_BYTES, int((free + used) * _BUDGET_SHARE))
