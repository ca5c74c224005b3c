"""Pictures in chats of a model in several stages: the bits of one process, and what each stage holds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import pytest

from app.cli.client import ProblemError, load_model
from engine.catalog.model_config import SEEING_TYPES
from engine.config import EngineConfig
from engine.events import RequestFinished, UnloadModel
from engine.pipeline.exact import EXACT_TYPES
from engine.pipeline.follower import Follower
from engine.pipeline.messages import StageMessage
from engine.pipeline.plan import measure_model, needed_files
from engine.pipeline.run import load_follower
from engine.pipeline.split import PartOfModel
from engine.questions import Evict, EvictWhat
from engine.types import Message, Picture
from engine.vision import tower
from engine.vision.tower import EncodedPicture, TokenGrid
from engine.vision.tower_module import TowerModule, tower_weights
from tests.fakes.asking import cache_of, reply_of
from tests.fakes.inline_engine import InlineClient
from tests.fakes.seeing_configs import SEEING_NAMES
from tests.fakes.seeing_engine import asked, num_fed, seen, submit
from tests.fakes.staged_engine import StagedClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

Models = Callable[[str, Template], Path]
Bits = list[bytes]

# Number of layers of each rank, rank 0 first. In qwen3_vl, the first two layers add features.
SPLITS = [
    ("qwen3_5", (1, 1)),
    ("qwen3_5_moe", (1, 1)),
    ("qwen3_vl", (2, 1)),
    ("qwen3_vl", (1, 2)),
    ("qwen3_vl", (1, 1, 1)),
    ("qwen3_vl_moe", (1, 2)),
    ("gemma3", (2, 1)),
    ("gemma3", (1, 1, 1)),
    ("gemma4", (5, 1)),
    ("gemma4", (4, 1, 1)),
    ("mistral3", (1, 2)),
    ("mistral3", (1, 1, 1)),
    ("lfm2-vl", (1, 2)),
    ("lfm2-vl", (1, 1, 1)),
    ("qwen2_vl", (1, 2)),
    ("llama4", (2, 2)),
    ("llama4", (1, 2, 1)),
]
DIVIDED = [name for name in SEEING_NAMES if name in EXACT_TYPES]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feed the small pictures of these tests in several passes, as large ones are."""
    monkeypatch.setattr(tower, "_PART_LEN", 8)


@pytest.fixture
def config(tmp_path: Path) -> EngineConfig:
    return EngineConfig(
        use_openblas=False,
        idle_work=False,
        saves_battery=False,
        cache_budget_bytes=1 << 30,
        picture_folder=tmp_path / "pictures",
    )


def one_process(folder: Path, config: EngineConfig) -> InlineClient:
    # Passes over stages do not look ahead.
    client = InlineClient(replace(config, looks_ahead=False))
    load_model(client, folder, lambda _: None)
    return client


def visits(client: InlineClient, folder: Path, cat: Picture, dog: Picture) -> list[object]:
    """Come back to pictures in every way. Return what must not depend on the number of stages.

    Answers over stages are compared with runs without cached state too.
    """
    found: list[object] = []

    def ask(messages: Sequence[Message], chat: str = "A") -> Message:
        if isinstance(client, StagedClient):
            finished, _ = asked(client, messages, chat)
            client.require_equal_ledgers()
        else:
            submit(client, messages, chat)
            done = [
                event for event in client.run_until_idle() if isinstance(event, RequestFinished)
            ]
            (finished,) = done
        found.append((finished.usage.plan, finished.content))
        cache_of(client).check_invariants()
        return reply_of(finished)

    def evict(what: EvictWhat) -> None:
        client.ask(Evict(what))
        client.run_until_idle()

    first = seen("The quick brown fox", cat, dog)
    reply = ask([first])
    ask([first])  # regenerate
    ask([seen("A list of numbers", cat, dog)])  # edit the question
    ask([first, reply, seen("Could you say that in other words?")])
    ask([first, reply, seen("Of course", dog)])  # a branch
    ask([first], "B")
    ask([seen("The quick brown fox", cat, cat)], "B")
    for what in (EvictWhat.HOT, EvictWhat.SNAPSHOTS, EvictWhat.ALL):
        evict(what)
        ask([first, reply, seen("Thank you")])
    client.send(UnloadModel())
    client.run_until_idle()
    load_model(client, folder, lambda _: None)
    ask([first, reply, seen("Thank you")])
    found.append(together(client, cat, dog))
    return found


def together(client: InlineClient, cat: Picture, dog: Picture) -> list[str]:
    """Return the answers of chats that are answered together, with different shifts of positions."""
    questions = {"C": [cat], "D": [], "E": [dog, cat]}
    for chat, pictures in questions.items():
        submit(client, [seen(f"The quick brown fox of {chat}", *pictures)], chat)
    done = [event for event in client.run_until_idle() if isinstance(event, RequestFinished)]
    assert len(done) == len(questions)
    return sorted(one.content for one in done)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layers"), rest_in_soak(SPLITS, SPLITS[0], SPLITS[4], SPLITS[9]))
def test_pictures_over_stages_give_the_reports_and_bits_of_one_process(
    seeing_model: Models,
    config: EngineConfig,
    cat: Picture,
    dog: Picture,
    drawn_from: Bits,
    name: str,
    layers: tuple[int, ...],
) -> None:
    folder = seeing_model(name, Template.KEEPING)
    wanted = visits(one_process(folder, config), folder, cat, dog)
    wanted_bits = sorted(drawn_from)
    drawn_from.clear()

    client = StagedClient(folder, layers, config)

    assert visits(client, folder, cat, dog) == wanted
    assert sorted(drawn_from) == wanted_bits


def test_every_type_that_sees_and_can_be_divided_is_compared() -> None:
    assert set(DIVIDED) == {name for name, _ in SPLITS} == SEEING_TYPES.keys() & EXACT_TYPES


def test_picture_is_read_once_over_stages(
    seeing_model: Models, config: EngineConfig, cat: Picture
) -> None:
    client = StagedClient(seeing_model("mistral3", Template.KEEPING), (1, 2), config)
    first = seen("The quick brown fox", cat)

    finished, _ = asked(client, [first])
    again, _ = asked(client, [first])
    edited, _ = asked(client, [seen("A list of numbers", cat)])

    assert num_fed(finished) == finished.usage.plan.prompt_tokens
    assert num_fed(again) == 0
    assert 0 < num_fed(edited) < 24


Change = Callable[[pytest.MonkeyPatch], None]


def shift_of_rank_1(patch: pytest.MonkeyPatch) -> None:
    """Let the positions of one stage be too high by one after a picture."""
    run = Follower._run_pass  # pyright: ignore[reportPrivateUsage]

    def shifted(
        stage: Follower, target: Any, shifts: Sequence[int], message: StageMessage
    ) -> Iterable[mx.array]:
        return run(stage, target, [one + (one != 0) for one in shifts], message)

    patch.setattr(Follower, "_run_pass", shifted)


def changed_picture(change: Callable[[EncodedPicture], EncodedPicture | None], end: int) -> Change:
    """Return a fault: the stage that ends before layer `end` reads another picture."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        pass_through = PartOfModel.pass_through

        def changed(part: PartOfModel, *arguments: Any) -> Any:
            *others, picture = arguments
            if part.end == end and isinstance(picture, EncodedPicture):
                arguments = (*others, change(picture))
            return pass_through(part, *arguments)

        patch.setattr(PartOfModel, "pass_through", changed)

    return plant


def features_dropped(picture: EncodedPicture) -> EncodedPicture:
    return replace(picture, features=())


def turned(picture: EncodedPicture) -> EncodedPicture:
    rows, columns, start = picture.grid
    return replace(picture, grid=TokenGrid(columns, rows, start))


def without_control_tokens(picture: EncodedPicture) -> EncodedPicture:
    return replace(picture, control_ids=())


def backwards(picture: EncodedPicture) -> EncodedPicture:
    return replace(picture, embeddings=picture.embeddings[:, ::-1])


def as_text(_: EncodedPicture) -> None:
    return None


FAULTS: list[tuple[str, tuple[int, ...], Change]] = [
    ("qwen3_vl", (2, 1), shift_of_rank_1),
    ("qwen3_vl", (1, 1, 1), changed_picture(features_dropped, 1)),
    ("qwen3_vl", (1, 1, 1), changed_picture(features_dropped, 2)),
    ("qwen3_vl", (1, 1, 1), changed_picture(turned, 2)),
    ("qwen3_vl", (1, 1, 1), changed_picture(turned, 3)),
    ("qwen3_vl", (1, 2), changed_picture(backwards, 2)),
    ("mistral3", (1, 2), changed_picture(without_control_tokens, 2)),
    ("gemma3", (1, 1, 1), changed_picture(as_text, 2)),
    ("gemma3", (2, 1), changed_picture(as_text, 3)),
    ("gemma4", (4, 1, 1), changed_picture(backwards, 2)),
    ("gemma4", (4, 1, 1), changed_picture(backwards, 6)),
]


@pytest.mark.parametrize(("name", "layers", "plant"), FAULTS)
def test_fault_of_one_stage_changes_the_bits(
    seeing_model: Models,
    config: EngineConfig,
    cat: Picture,
    monkeypatch: pytest.MonkeyPatch,
    drawn_from: Bits,
    name: str,
    layers: tuple[int, ...],
    plant: Change,
) -> None:
    folder = seeing_model(name, Template.KEEPING)
    plain, faulty = (StagedClient(folder, layers, config) for _ in range(2))

    def bits(client: StagedClient) -> list[bytes]:
        drawn_from.clear()
        submit(client, [seen("The quick brown fox", cat)])
        client.run_until_idle()
        assert drawn_from
        return drawn_from[:1]

    wanted = bits(plain)
    plant(monkeypatch)

    assert bits(faulty) != wanted


def divided_files(folder: Path, out: Path) -> Path:
    """Copy a model folder whose weights are in one file into files for the tower, and for layers."""
    shutil.copytree(folder, out)
    whole = out / "model.safetensors"
    arrays = cast("dict[str, mx.array]", mx.load(str(whole)))
    towers = ("vision_tower.", "multi_modal_projector.", "embed_vision.")
    places: dict[str, str] = {}
    for name in arrays:
        _, found, rest = name.partition("layers.")
        place = rest.partition(".")[0] if found else "rest"
        if "embed_tokens" in name:
            place = "embedding"
        if name.startswith(towers):
            place = "tower"
        places[name] = f"model-{place}.safetensors"
    for file in set(places.values()):
        own = {name: array for name, array in arrays.items() if places[name] == file}
        mx.save_safetensors(str(out / file), own, {"format": "mlx"})  # pyright: ignore[reportUnknownMemberType]
    whole.unlink()
    (out / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return out


def without(folder: Path, *files: str) -> Path:
    partial = folder.parent / f"without {' '.join(files)}"
    shutil.copytree(folder, partial)
    for file in files:
        (partial / file).unlink()
    return partial


@pytest.fixture
def files(seeing_model: Models, tmp_path: Path) -> Path:
    """Return a folder of mistral3 with three layers in files of their own."""
    return divided_files(seeing_model("mistral3", Template.KEEPING), tmp_path / "model")


@pytest.mark.parametrize("name", rest_in_soak(DIVIDED, "mistral3"))
def test_only_rank_0_reads_the_tower_and_it_reads_no_embedding_of_tokens(
    seeing_model: Models,
    config: EngineConfig,
    cat: Picture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    folder = divided_files(seeing_model(name, Template.KEEPING), tmp_path / "model")
    num_layers = len(measure_model(folder).layers)
    layers = (num_layers - 1, 1)  # the last layers of gemma4 cannot be divided
    _, wanted = asked(one_process(folder, config), [seen("Thank you", cat)])
    for_follower = without(folder, "model-tower.safetensors")
    index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    tied = not any("lm_head" in one for one in index)  # the head is the embedding
    for_rank_0 = folder if tied else without(folder, "model-embedding.safetensors")

    def at(path: Path, *arguments: Any) -> Follower:
        assert path == for_rank_0
        return load_follower(for_follower, *arguments)

    monkeypatch.setattr("tests.fakes.staged_engine.load_follower", at)
    client = StagedClient(for_rank_0, layers, config)

    assert asked(client, [seen("Thank you", cat)])[1] == wanted
    assert client.core.model is not None
    assert client.core.model.facts.sees


def test_rank_0_without_the_weights_of_the_tower_is_refused(
    files: Path, config: EngineConfig
) -> None:
    folder = without(files, "model-tower.safetensors")

    with pytest.raises(ProblemError, match="lacks weights of its vision tower"):
        StagedClient(folder, (1, 2), config)


def test_files_of_the_tower_are_needed_by_rank_0_only(files: Path) -> None:
    assert "model-tower.safetensors" in needed_files(files, 1, 3)
    assert "model-tower.safetensors" not in needed_files(files, 0, 1)


def test_memory_of_rank_0_includes_the_tower(files: Path, config: EngineConfig) -> None:
    tower = sum(array.nbytes for array in tower_weights(files).values())
    blind = json.loads((files / "config.json").read_text())
    del blind["image_token_index"]
    without_eyes = without(files)
    (without_eyes / "config.json").write_text(json.dumps(blind))
    client = StagedClient(files, (1, 2), config)
    model = client.core.model
    assert model is not None
    sizes = measure_model(files)

    assert sizes.back_bytes - measure_model(without_eyes).back_bytes == tower > 0
    assert sizes.front_bytes == measure_model(without_eyes).front_bytes
    assert model.own_weight_bytes == sizes.layers[2].weight_bytes + sizes.back_bytes
    assert client.followers[0].memory.weight_bytes == sizes.front_bytes + sum(
        layer.weight_bytes for layer in sizes.layers[:2]
    )


def test_rows_are_not_merged_by_a_stage_whose_skipped_layers_have_other_caches(
    seeing_model: Models, config: EngineConfig
) -> None:
    client = StagedClient(seeing_model("gemma4", Template.KEEPING), (4, 1, 1), config)

    # Rank 1 has a layer with full attention. The mask of a window cannot be made for rows of other lengths.
    assert not client.followers[0].memory.can_merge
    assert client.followers[1].memory.can_merge


def test_tower_is_made_once(
    files: Path, config: EngineConfig, cat: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    call = TowerModule.__call__

    def noting(module: TowerModule) -> Any:
        made.append(module)
        return call(module)

    monkeypatch.setattr(TowerModule, "__call__", noting)

    asked(StagedClient(files, (1, 1, 1), config), [seen("Thank you", cat)])

    assert len(set(map(id, made))) == 1


def test_memory_for_a_picture_is_asked_of_rank_0_only(
    files: Path, config: EngineConfig, cat: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = StagedClient(files, (1, 1, 1), config)
    needs: list[int] = []

    def noting(memory: Any, _pass_len: int, _room: int, tower_bytes: int = 0) -> None:
        needs.append(tower_bytes)

    monkeypatch.setattr("engine.runner.request_memory.RequestMemory.check_fits", noting)
    asked(client, [seen("Thank you", cat)])

    assert needs[0] > 0
    assert needs[1:3] == [0, 0]
