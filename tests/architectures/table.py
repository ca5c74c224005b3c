"""The table of all model types in README.md: rendered from outcomes, and parsed into rows.

All functions are pure. `python -m tests.architectures` writes the file, tests read it.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from tests.architectures.outcome import TrialOutcome, Verdict
from tests.architectures.stages import SAME_BITS

_HEADER = """\
# Every model type of mlx-lm

Written by `python -m tests.architectures` with {versions} on {system}, CPU device, reference BLAS.

Each type is built tiny and random from mlx-lm's own class and goes through the engine with the
script of `trial.py`: two chats, sampled and forced replies, switch, edit, regenerate, stop, branch
hop; the live caches, the states and everything evicted; the model reloaded.

**exact**: at every step every logit row had the same bits as the same passes on empty caches, and
lay within 1e-4 of the logits' standard deviation of reading the whole prompt in one go; and a
zeroed state, a state one token ahead, another chat's state and a message left out were reported.
"""
_COLUMNS = """\
| type | caches | verdict | to one go | K/V bytes a token | bytes a point | over two stages | remarks |
|---|---|---|---|---|---|---|---|
"""
_COLUMNS_TEXT = """
*to one go*: the largest difference to reading the prompt in one go, relative to the logits' standard
deviation; *same bits* where there was none. *bytes a point*: the largest state kept beside the K/V. *over two
stages*: the model divided by layers (`stages.py`); *same bits* at every cut that its trace allows. Other
types are refused on several Macs: `engine/pipeline/exact.py` lists those that are not.
"""
_KV_HEADER = """
## Quantised K/V

The same with `--kv-bits`: K/V caches that the type's attention can use quantised are, the others stay
as they are. *to unquantised*: the last logits of 80 tokens, relative to their standard deviation.

| type | caches quantised | 8 bits | bytes a token | to unquantised | 4 bits | bytes a token | to unquantised |
|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class ArchitectureRow:
    """The columns of a table row that tests need."""

    name: str  # name of the module in mlx_lm.models
    caches: frozenset[str]  # names of the cache classes
    verdict: Verdict
    two_stages: str  # result of the trial in two stages


def render(outcomes: Sequence[TrialOutcome]) -> str:
    plain = [outcome for outcome in outcomes if outcome.kv_bits is None]
    packages = ("mlx", "mlx-lm", "transformers")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return "".join(
        [
            _HEADER.format(versions=versions, system=f"{platform.system()} {platform.machine()}"),
            _totals(plain),
            "\n",
            _COLUMNS,
            *(_line(outcome) for outcome in plain),
            _COLUMNS_TEXT,
            *_quantised(outcomes),
        ]
    )


def read_rows(text: str) -> Iterator[ArchitectureRow]:
    """Yield the rows of the first table, which is the one without quantised K/V."""
    for line in text.partition("## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 8 and cells[0].startswith("`"):
            caches = frozenset(cache.partition(" x")[0] for cache in cells[1].split("; ") if cache)
            yield ArchitectureRow(
                cells[0].strip("`"), caches, Verdict(cells[2].strip("*")), cells[6]
            )


def _totals(plain: Sequence[TrialOutcome]) -> str:
    by_verdict = Counter(outcome.verdict for outcome in plain)
    run = by_verdict[Verdict.EXACT] + by_verdict[Verdict.NOT_EXACT]
    exact = [outcome for outcome in plain if outcome.verdict is Verdict.EXACT]
    return f"""
- types: {len(plain)}, of which mlx-lm itself runs {run} here
- exact: {len(exact)} of {run} ({len(exact) / max(1, run):.1%}), {sum(not o.difference for o in exact)} with the same bits as in one go
- not exact: {_names(o for o in plain if o.verdict is Verdict.NOT_EXACT)}
- not run by mlx-lm itself here: {_names(o for o in plain if o.verdict is Verdict.NOT_RUN)}
- held to the same passes alone, for in mlx-lm itself they depend on how a prompt is cut: {_names(o for o in plain if o.depends_on_cuts)}
- same bits over two stages: {sum(o.two_stages == SAME_BITS for o in plain)}
- whole cache opaque, copied at every point though the type attends: {_names(o for o in plain if o.is_opaque)}
- CPU time: {sum(outcome.cpu_s for outcome in plain):,.0f} s
"""


def _names(outcomes: Iterable[TrialOutcome]) -> str:
    return ", ".join(f"`{outcome.name}`" for outcome in outcomes) or "none"


def _line(outcome: TrialOutcome) -> str:
    verdict = f"**{outcome.verdict}**" if outcome.verdict is Verdict.NOT_EXACT else outcome.verdict
    if not outcome.caches:  # the trial ended before any cache was made
        return f"| `{outcome.name}` | | {verdict} | | | | | {_cell(outcome.reason)} |\n"
    difference = f"{outcome.difference:.0e}" if outcome.difference else "same bits"
    return (
        f"| `{outcome.name}` | {_caches(outcome)} | {verdict} | {difference} |"
        f" {outcome.kv_bytes_per_token:,} | {outcome.point_bytes:,} | {_cell(outcome.two_stages)} | {_cell(_remarks(outcome))} |\n"
    )


def _caches(outcome: TrialOutcome) -> str:
    return "; ".join(f"{name} x{count}" for name, count in Counter(outcome.caches).items())


def _remarks(outcome: TrialOutcome) -> str:
    remarks = [outcome.reason] if outcome.reason else []
    if outcome.is_opaque:
        remarks.append("opaque")
    if outcome.depends_on_cuts:
        remarks.append(f"mlx-lm's own results differ by {outcome.cut_difference:.0e} with the cuts")
    return "; ".join(remarks)


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")


def _quantised(outcomes: Sequence[TrialOutcome]) -> Iterator[str]:
    by_name: dict[str, list[TrialOutcome]] = {}
    for outcome in outcomes:
        if outcome.kv_bits is not None:
            by_name.setdefault(outcome.name, []).append(outcome)
    yield _KV_HEADER
    for name, found in by_name.items():
        if any(outcome.num_quantised or outcome.reason for outcome in found):
            counts = f"{found[0].num_quantised} of {found[0].num_kv}"
            yield f"| `{name}` | {counts} | {' | '.join(_quantised_cells(o) for o in found)} |\n"
    unquantised = [found[0] for found in by_name.values() if not found[0].num_quantised]
    yield f"\nAs they are in every layer: {_names(unquantised)}.\n"


def _quantised_cells(outcome: TrialOutcome) -> str:
    verdict = outcome.verdict if not outcome.reason else f"**{_cell(outcome.reason)}**"
    return f"{verdict} | {outcome.kv_bytes_per_token:,} | {outcome.kv_difference:.0e}"
