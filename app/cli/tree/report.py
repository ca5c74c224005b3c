"""Text tables for the results of the chat-tree benchmark. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.cli.tree.measure import StepCost, total

HEADER = (
    f"{'step':<13} {'chat':<4} {'prompt':>7} {'cached':>7} {'redo':>6} {'replayed':>8}"
    f" {'fed':>6} {'ttft ms':>9} {'cold ms':>9} {'time':>6}"
)


def row(cost: StepCost) -> str:
    """Format the cost of a step as one line of the table. HEADER is the heading of its columns.

    If "time" is well above "fed", the engine fed tokens that it reported as cached.
    """
    return (
        f"{cost.step:<13} {cost.chat:<4} {_int(cost.prompt_tokens):>7}"
        f" {_int(cost.cached_tokens):>7} {_int(cost.redo):>6} {_int(cost.replayed):>8}"
        f" {_share(cost.fed_share):>6}"
        f" {cost.ttft_ms:>9.1f} {_float(cost.cold_ttft_ms):>9} {_share(cost.ttft_share):>6}"
    )


def total_row(costs: Sequence[StepCost]) -> str:
    """Format the totals of a run as the last line of the table."""
    all_of = total(costs)
    peak = "" if all_of.peak_bytes is None else f", peak memory {all_of.peak_bytes / 1e6:.0f} MB"
    return (
        f"{all_of.steps} steps: {all_of.prompt_tokens} prompt tokens, {_int(all_of.fed_tokens)}"
        f" fed, {_int(all_of.redo)} redo, {_int(all_of.replayed)} replayed{peak}"
    )


def comparison(runs: Mapping[str, Sequence[StepCost]]) -> str:
    """Format a table that compares engines: one column for each engine, one row for each step.

    A cell has three figures: redo, replayed, and time. Time is the time to first token, divided by
    the time to first token with nothing in the cache. Rows with totals follow the steps.
    """
    names = list(runs)
    width = max(22, *(len(name) for name in names))
    lines = [_columns("redo / replayed / time", names, width)]
    for costs in zip(*runs.values(), strict=True):
        cells = [f"{_int(c.redo)} / {_int(c.replayed)} / {_share(c.ttft_share)}" for c in costs]
        lines.append(_columns(costs[0].step, cells, width))
    totals = [total(costs) for costs in runs.values()]
    for title, cells in (
        ("prompt tokens", [_int(t.prompt_tokens) for t in totals]),
        ("fed", [_int(t.fed_tokens) for t in totals]),
        ("redo", [_int(t.redo) for t in totals]),
        ("replayed", [_int(t.replayed) for t in totals]),
        ("ttft / cold ttft", [_share(t.ttft_share) for t in totals]),
        ("worst hidden share", [_share(t.worst_hidden_share) for t in totals]),
        ("peak memory, MB", [_int(t.peak_bytes and t.peak_bytes // 10**6) for t in totals]),
    ):
        lines.append(_columns(title, cells, width))
    return "\n".join(lines)


def _columns(title: str, cells: Sequence[str], width: int) -> str:
    return f"{title:<22}" + "".join(f" {cell:>{width}}" for cell in cells)


def _int(value: int | None) -> str:
    return "-" if value is None else f"{value}"


def _float(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
