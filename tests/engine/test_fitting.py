"""The predicted memory of a model equals what loading measures, and hostile files do no harm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.catalog.card import ModelSource
from engine.catalog.fit import CHAT_LEN, Device, FitVerdict, ModelMemory, judge
from engine.catalog.inspect import read_card
from engine.config import EngineConfig
from engine.errors import ModelFolderError, UntrustedCodeError
from engine.fitting import FitMeter
from tests.architectures.configs.every import CONFIGS
from tests.architectures.fit import difference
from tests.fakes.tiny_model import Template, build_tiny

GB = 10**9
CONFIG = {**CONFIGS["llama"], "vocab_size": 425}
MEMORY = ModelMemory(
    weight_bytes=5 * GB, read_bytes=5 * GB, kv_bytes_per_token=100_000, snapshot_bytes=50_000_000
)


@pytest.fixture(scope="module")
def meter() -> Iterator[FitMeter]:
    meter = FitMeter(EngineConfig())
    yield meter
    meter.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["llama", "qwen3_5_moe", "gemma3", "mamba2", "falcon_h1", "llama4", "deepseek_v41"]
)
def test_prediction_equals_what_loading_measures(name: str, meter: FitMeter, tmp_path: Path):
    build_tiny(name, tmp_path / name, Template.KEEPING, CONFIGS)

    assert difference(tmp_path / name, meter) == ""


def test_fit_of_a_folder_with_a_problem_raises_the_problem(meter: FitMeter, tmp_path: Path):
    with pytest.raises(ModelFolderError, match="no folder"):
        meter.fit_folder(read_card(tmp_path / "none", ModelSource.FOLDER))


@pytest.mark.parametrize(
    "config",
    [
        "",
        "[]",
        '{"model_type": "llama"}',
        '{"model_type": "../llama"}',
        json.dumps({**CONFIG, "hidden_size": "x"}),
        json.dumps({**CONFIG, "num_hidden_layers": 10**7}),
        json.dumps({**CONFIG, "num_hidden_layers": [1] * 9}),
        json.dumps({**CONFIG, "quantization": {"bits": -1, "group_size": 0}}),
        json.dumps({**CONFIG, "quantization": {"bits": "a", "group_size": {}}}),
    ],
)
def test_fit_of_a_broken_configuration_raises_a_sentence(config: str, meter: FitMeter):
    with pytest.raises(ModelFolderError, match=r"^\S.*\.$") as caught:
        meter.fit_config(config, GB)
    assert "Error" not in str(caught.value.problem)


def test_fit_of_a_configuration_with_code_is_refused(meter: FitMeter):
    config = json.dumps({**CONFIG, "model_file": "model.py"})

    with pytest.raises(UntrustedCodeError):
        meter.fit_config(config, GB)


def test_a_huge_configuration_is_too_large_and_takes_no_memory(meter: FitMeter):
    config = json.dumps({**CONFIG, "intermediate_size": 2**30})

    assert meter.fit_config(config, GB).verdict is FitVerdict.TOO_LARGE


@pytest.mark.slow
def test_meter_measures_again_after_close(meter: FitMeter):
    config = json.dumps(CONFIG)
    before = meter.fit_config(config, 0)
    meter.close()

    assert meter.fit_config(config, 0) == before


@pytest.mark.parametrize(
    ("gigabytes", "verdict", "num_chats"),
    [
        (6, FitVerdict.TOO_LARGE, 0),
        (7, FitVerdict.TIGHT, 0),
        (16, FitVerdict.FITS, 8),
    ],
)
def test_verdict_follows_the_memory(gigabytes: int, verdict: FitVerdict, num_chats: int):
    # A chat takes 9,000 x 100 kB for K/V and 0.1 GB for two states: 1 GB.
    device = Device(memory_bytes=gigabytes * GB, chip="")
    fit = judge(MEMORY, device, EngineConfig())

    assert MEMORY.chat_bytes(CHAT_LEN) == GB
    assert (fit.verdict, fit.num_chats) == (verdict, num_chats)


def test_fit_counts_the_memory_of_a_longer_chat():
    fit = judge(MEMORY, Device(memory_bytes=16 * GB, chip=""), EngineConfig())

    # Weights and one pass leave 10.4 GB. A token takes 9/8 x 100 kB.
    assert fit.can_hold(90_000)
    assert not fit.can_hold(95_000)


def test_speed_is_estimated_for_known_chips_only():
    def rate(chip: str) -> float | None:
        return judge(MEMORY, Device(memory_bytes=16 * GB, chip=chip), EngineConfig()).tokens_per_s

    slow, fast = rate("Apple M2"), rate("Apple M2 Max")
    assert slow is not None
    assert fast == pytest.approx(4 * slow)
    assert 5 < slow < 15
    assert rate("Apple Z9") is None
    assert rate("") is None
