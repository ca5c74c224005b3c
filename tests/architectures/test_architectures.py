"""The table in README.md has every model type of mlx-lm, and a new trial gives the same verdict."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.pipeline.exact import EXACT_TYPES
from tests.architectures.__main__ import in_process
from tests.architectures.configs.every import CONFIGS
from tests.architectures.modules import model_modules
from tests.architectures.outcome import TrialOutcome, Verdict
from tests.architectures.stages import SAME_BITS, compare_two_stages
from tests.architectures.table import ArchitectureRow, read_rows, render
from tests.architectures.trial import run_trial
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template, build_tiny

ROWS = list(read_rows(Path(__file__).with_name("README.md").read_text(encoding="utf-8")))


def one_of_each_kind() -> Iterator[str]:
    """Yield one exact type for each set of cache classes: the first in the table."""
    seen: set[frozenset[str]] = set()
    for row in ROWS:
        if row.verdict is Verdict.EXACT and row.caches not in seen:
            seen.add(row.caches)
            yield row.name


def test_table_lists_all_types_of_the_installed_mlx_lm() -> None:
    assert [row.name for row in ROWS] == model_modules()


def test_every_type_has_a_tiny_configuration() -> None:
    assert sorted(CONFIGS) == model_modules()


def test_at_least_95_percent_of_runnable_types_are_exact() -> None:
    verdicts = [row.verdict for row in ROWS if row.verdict is not Verdict.NOT_RUN]

    assert verdicts.count(Verdict.EXACT) >= 0.95 * len(verdicts)


def test_exact_types_of_the_pipeline_are_those_of_the_table() -> None:
    assert {row.name for row in ROWS if row.two_stages == SAME_BITS} == EXACT_TYPES


@pytest.mark.parametrize("name", [*one_of_each_kind(), "olmo_hybrid", "gemma4", "gemma3n"])
def test_type_over_two_stages_gives_the_result_of_the_table(name: str, tmp_path: Path) -> None:
    (wanted,) = (row.two_stages for row in ROWS if row.name == name)

    assert (
        compare_two_stages(build_tiny(name, tmp_path / name, Template.KEEPING, CONFIGS)) == wanted
    )


# In `make test` the oracle tests play the same script on K/V and windows, and on states and K/V
# (tests/oracle/test_promise.py).
@pytest.mark.soak
@pytest.mark.parametrize("name", list(one_of_each_kind()))
def test_first_type_of_each_cache_kind_is_exact(name: str, tmp_path: Path) -> None:
    outcome = run_trial(name, tmp_path)

    assert outcome.verdict is Verdict.EXACT, outcome.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kv_bits"),
    rest_in_soak([("llama", 4), ("llama", 8), ("qwen3_5", 4), ("qwen3_5", 8)], ("qwen3_5", 4)),
)
def test_type_with_quantised_kv_is_exact(name: str, kv_bits: int, tmp_path: Path) -> None:
    outcome = run_trial(name, tmp_path, kv_bits=kv_bits)

    assert outcome.verdict is Verdict.EXACT, outcome.reason
    assert outcome.num_quantised == outcome.num_kv


def test_module_that_raises_system_exit_gets_verdict_not_run(tmp_path: Path) -> None:
    outcome = run_trial("olmo", tmp_path)

    assert outcome.verdict is Verdict.NOT_RUN
    assert "SystemExit" in outcome.reason


def test_failed_process_gives_an_outcome_with_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    assert in_process("llama") == [
        TrialOutcome(name="llama", reason="its process ended with status 1")
    ]


def test_rendered_table_is_read_back_unchanged() -> None:
    caches = ("KVCache", "CacheList(ArraysCache, KVCache)", "KVCache")
    exact = TrialOutcome(
        name="a",
        verdict=Verdict.EXACT,
        caches=caches,
        difference=1e-6,
        two_stages=SAME_BITS,
    )
    wrong = TrialOutcome(name="b", caches=("Window",), reason="step 2: 1 | 2", cut_difference=0.5)
    quantised = TrialOutcome(name="a", kv_bits=8, num_kv=2, num_quantised=1)
    not_run = TrialOutcome(name="c", verdict=Verdict.NOT_RUN, reason="no")

    assert list(read_rows(render([exact, quantised, wrong, not_run]))) == [
        ArchitectureRow("a", frozenset(caches), Verdict.EXACT, SAME_BITS),
        ArchitectureRow("b", frozenset({"Window"}), Verdict.NOT_EXACT, ""),
        ArchitectureRow("c", frozenset(), Verdict.NOT_RUN, ""),
    ]
    assert TrialOutcome.from_json(wrong.as_json()) == wrong
