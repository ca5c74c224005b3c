"""The engine's statistics as one line of text. No Qt, no I/O."""

from __future__ import annotations

from app.viewmodels import figures
from app.words import state as words
from engine.cache_figures import CacheReport


def statistics_line(report: CacheReport) -> str:
    """Format the statistics of the cache and the process's memory, and the state of invariants."""
    cache = report.statistics
    return words.statistics(
        size=figures.file_size(cache.total_bytes),
        budget=figures.file_size(cache.budget_bytes),
        freed=figures.file_size(report.freed_bytes),
        process=figures.file_size(report.process_bytes),
        is_broken=report.broken is not None,
        nodes=cache.num_nodes,
        snapshots=cache.num_snapshots,
        live_caches=cache.num_hot,
        matches=cache.matches,
        evictions=cache.evictions,
        faults=cache.restore_faults + cache.audit_faults,
        audits=cache.audits,
    )
