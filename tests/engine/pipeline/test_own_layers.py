"""A stage reads and holds the weights of its own layers only, and refuses to run without them."""

from __future__ import annotations

import copy
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import pytest

from engine.config import EngineConfig
from engine.errors import ModelFolderError
from engine.models.abilities import Abilities, AbilityRecords, FasterWays
from engine.models.opening import StageMemory
from engine.pipeline.plan import measure_model, needed_files
from engine.pipeline.run import layers_of_rank, load_follower
from tests.fakes.staged_engine import StagedClient
from tests.fakes.tiny_model import CONFIGS, Template, build_tiny

CONFIG = EngineConfig(use_openblas=False, idle_work=False)


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """Return a folder of a MoE model with one weight file per layer, and one for all other weights.

    The model has four layers."""
    config = copy.deepcopy(CONFIGS["qwen3_5_moe"])
    config["text_config"]["num_hidden_layers"] = 4
    folder = build_tiny("wide", tmp_path / "model", Template.KEEPING, {"wide": config})
    whole = folder / "model.safetensors"
    tensors = cast("dict[str, mx.array]", mx.load(str(whole)))
    places: dict[str, str] = {}
    for name in tensors:
        _, found, rest = name.partition("layers.")
        places[name] = f"model-{rest.partition('.')[0] if found else 'rest'}.safetensors"
    for file in set(places.values()):
        own = {name: x for name, x in tensors.items() if places[name] == file}
        mx.save_safetensors(str(folder / file), own, {"format": "mlx"})  # pyright: ignore[reportUnknownMemberType] — untyped result
    whole.unlink()
    index: dict[str, Any] = {"weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def without(folder: Path, kept: list[str]) -> Path:
    """Return a copy of a folder that lacks all weight files but the kept ones."""
    partial = folder.parent / f"copy-{len(list(folder.parent.iterdir()))}"
    shutil.copytree(folder, partial)
    for file in partial.glob("*.safetensors"):
        if file.name not in kept:
            file.unlink()
    return partial


def load(folder: Path, rank: int = 1) -> Any:
    return load_follower(folder, (2, 2), rank, CONFIG, lambda _done, _total: None)


def test_stage_runs_without_the_files_of_other_layers(sharded: Path) -> None:
    start, end = layers_of_rank((2, 2), 1)
    files = needed_files(sharded, start, end)

    follower = load(without(sharded, files))

    assert files == ["model-0.safetensors", "model-1.safetensors", "model-rest.safetensors"]
    assert follower.memory == load(sharded).memory


def test_stage_without_an_own_weight_file_is_refused(sharded: Path) -> None:
    folder = without(sharded, ["model-0.safetensors", "model-rest.safetensors"])

    with pytest.raises(ModelFolderError, match=r"lacks \d+ of the weights of layers 1 to 2"):
        load(folder)


def test_weight_bytes_of_stages_are_those_of_their_layers(sharded: Path) -> None:
    sizes = measure_model(sharded)
    before = mx.get_active_memory()

    follower = load(sharded)

    own = sizes.front_bytes + sum(layer.weight_bytes for layer in sizes.layers[:2])
    assert follower.memory.weight_bytes == own
    assert mx.get_active_memory() - before <= 1.02 * own


def test_bytes_read_from_disk_grow_by_the_bytes_of_each_own_layer(sharded: Path) -> None:
    counts = Path("/proc/self/io")
    if not counts.exists():
        pytest.skip("only Linux counts the bytes that a process reads")

    def num_read(layers: tuple[int, int]) -> int:
        before = int(counts.read_text().split()[1])
        load_follower(sharded, layers, 1, CONFIG, lambda _done, _total: None)
        return int(counts.read_text().split()[1]) - before

    num_read((2, 2))  # imports modules
    tensors = cast("dict[str, mx.array]", mx.load(str(sharded / "model-1.safetensors")))
    own = sum(tensor.nbytes for tensor in tensors.values())

    assert num_read((2, 2)) - num_read((3, 1)) == pytest.approx(own, rel=0.02)


def test_merging_of_rows_is_tested_once_and_recorded(
    sharded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AbilityRecords, "_known", {})
    folder = tmp_path / "abilities"
    config = replace(CONFIG, abilities_folder=folder)

    def memory() -> StageMemory:
        return load_follower(sharded, (2, 2), 1, config, lambda _done, _total: None).memory

    tested = memory()
    (file,) = folder.iterdir()
    other_result = Abilities(tested.layout, ways=FasterWays(can_merge=False))
    AbilityRecords(folder).keep(file.stem, other_result)

    assert tested.can_merge
    assert not memory().can_merge


def test_progress_ends_with_the_bytes_of_the_own_weights(sharded: Path) -> None:
    seen: list[tuple[int, int]] = []

    follower = load_follower(
        sharded, (2, 2), 1, CONFIG, lambda done, total: seen.append((done, total))
    )

    total = follower.memory.weight_bytes
    assert seen[0] == (0, total)
    assert seen[-1] == (total, total)


def test_model_facts_of_rank_0_count_the_weights_of_all_stages(sharded: Path) -> None:
    client = StagedClient(sharded, (2, 2), CONFIG)

    assert client.core.model is not None
    sizes = measure_model(sharded)
    total = sum(layer.weight_bytes for layer in sizes.layers)
    assert client.core.model.facts.weight_bytes == total + sizes.front_bytes + sizes.back_bytes
