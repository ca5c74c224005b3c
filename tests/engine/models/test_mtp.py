"""Heads are found in their published forms, draft what they should, and leave their model as it is."""

# mlx.utils is partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models.cache import KVCache, make_prompt_cache

from engine.cache.trees import arrays_in
from engine.models.adapter import ModelAdapter
from engine.models.loader import LoadedModel, load_model, namespace_of
from engine.models.mtp import HeadState, ModelWithHead, make_head, text_model_of
from engine.models.mtp_files import build_model
from engine.models.rows import MergedRows, RowByRow
from tests.fakes import heads
from tests.fakes.heads import Tensors
from tests.fakes.tables import rest_in_soak
from tests.fakes.ways import ways_of

IDS = tuple((7 * i * i + 3 * i + 1) % 400 for i in range(24))


@pytest.fixture(scope="module", params=rest_in_soak(heads.TYPES, "qwen3_5"))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny model without a head."""
    return heads.build(request.param, tmp_path_factory.mktemp("models") / "Tiny-4bit")


def side_file(model: Path, head: Tensors) -> None:
    heads.save(model / "mtp.safetensors", heads.prefixed(head, "mtp."))


def bare_side_file(model: Path, head: Tensors) -> None:
    heads.save(model / "mtp.safetensors", head)


def side_folder(model: Path, head: Tensors) -> None:
    heads.save(model / "mtp" / "weights.safetensors", head)


def embedded(model: Path, head: Tensors) -> None:
    heads.embed(model, heads.prefixed(head, "language_model.mtp."))


def shard_of_the_model(model: Path, head: Tensors) -> None:
    heads.save(model / "model-mtp.safetensors", heads.prefixed(head, "mtp."))


def bare_shard_of_the_model(model: Path, head: Tensors) -> None:
    heads.save(model / "model-mtp.safetensors", head)


def drafter(model: Path, head: Tensors) -> None:
    heads.save_drafter(model.parent / "Tiny-MTP-bf16", head)


def raw(model: Path, head: Tensors) -> None:
    side_file(model, heads.raw_norms(head))


def mixed(model: Path, head: Tensors) -> None:
    side_file(model, {**heads.raw_norms(head), "norm.weight": head["norm.weight"]})


FORMS = (
    side_file, bare_side_file, side_folder, embedded, shard_of_the_model, bare_shard_of_the_model,
    drafter, raw, mixed,
)  # fmt: skip


def parameters_of(model: Any) -> Tensors:
    return dict(tree_flatten(model.head.parameters()))


@pytest.mark.parametrize("form", FORMS)
def test_head_is_found_in_each_published_form(
    tmp_path: Path, folder: Path, form: Callable[[Path, Tensors], None]
) -> None:
    head = heads.random_head(folder)
    model = heads.copy_of(folder, tmp_path / "Tiny-4bit")
    form(model, head)
    built = build_model(model)

    assert isinstance(built.model, ModelWithHead), built.head_fault
    assert built.head_fault == ""
    found = parameters_of(built.model)
    assert found.keys() == head.keys()
    for name, x in head.items():
        assert mx.allclose(found[name], x, atol=1e-6).item(), name


def test_drafter_is_found_in_the_hugging_face_cache(tmp_path: Path, folder: Path) -> None:
    model = heads.copy_of(folder, tmp_path / "models--a--Tiny-8bit" / "snapshots" / "1")
    head = heads.random_head(folder)
    heads.save_drafter(tmp_path / "models--b--Tiny-MTP-bf16" / "snapshots" / "2", head)

    assert isinstance(build_model(model).model, ModelWithHead)


@pytest.mark.parametrize("name", ["Other-MTP-bf16", "Tiny-4", "Tin-MTP"])
def test_drafter_of_another_model_is_not_used(tmp_path: Path, folder: Path, name: str) -> None:
    model = heads.copy_of(folder, tmp_path / "Tiny-4bit")
    heads.save_drafter(tmp_path / name, heads.random_head(folder))

    assert not isinstance(build_model(model).model, ModelWithHead)


@pytest.mark.parametrize("form", [heads.separate_experts, heads.joined_experts])
def test_head_with_experts_is_found_in_each_published_form(
    tmp_path: Path, form: Callable[[Tensors], Tensors]
) -> None:
    model = heads.build("qwen3_5_moe", tmp_path / "model")
    head = heads.random_head(model)
    side_file(model, heads.raw_norms(form(head)))
    found = parameters_of(build_model(model).model)

    assert found.keys() == head.keys()
    assert all(mx.allclose(found[name], x, atol=1e-6).item() for name, x in head.items())


@pytest.mark.parametrize("mode", ["affine", "mxfp4"])
def test_quantised_head_is_loaded_as_it_is(tmp_path: Path, folder: Path, mode: str) -> None:
    model = heads.copy_of(folder, tmp_path / "Tiny-4bit")
    tensors = heads.quantised(heads.random_head(folder), mode=mode)
    side_file(model, tensors)
    built = build_model(model)

    assert isinstance(built.model, ModelWithHead), built.head_fault
    found = parameters_of(built.model)
    assert found.keys() == tensors.keys()
    assert found["fc.weight"].dtype == mx.uint32


def test_quantised_joined_experts_are_divided(tmp_path: Path) -> None:
    model = heads.build("qwen3_5_moe", tmp_path / "model")
    head = heads.random_head(model)
    joined = heads.joined_experts(head)
    start = "layers.0.mlp.experts."
    for part in ("gate_up_proj", "down_proj"):
        joined[f"{start}{part}.weight"] = joined.pop(start + part)
    side_file(model, heads.quantised(joined))
    wanted, found = heads.quantised(head), parameters_of(build_model(model).model)

    assert found.keys() == wanted.keys()
    assert all(mx.array_equal(found[name], x).item() for name, x in wanted.items() if x.ndim == 3)


def loaded(folder: Path) -> LoadedModel:
    return load_model(folder, lambda _done, _total: None)


def test_model_with_head_has_the_arguments_logits_and_caches_of_the_model(
    tmp_path: Path, folder: Path
) -> None:
    model = heads.copy_of(folder, tmp_path / "model")
    side_file(model, heads.random_head(folder))
    both: list[tuple[Any, ModelAdapter]] = []
    for place in (folder, model):
        built: Any = build_model(place).model
        both.append(
            (getattr(built, "model", built) if place is model else built, loaded(place).adapter)
        )
    (plain, without), (inner, with_head) = both
    assert with_head.has_head
    assert not without.has_head
    args, inner_args = (dataclasses.asdict(text_model_of(m).args) for m in (plain, inner))
    assert args == inner_args
    caches, others = without.new_caches(), with_head.new_caches()
    assert len(others) == len(caches) + 1
    for start, end in ((0, 9), (9, 10), (10, 16), (16, 24)):
        ids = mx.array([IDS[start:end]])
        assert mx.array_equal(without.run(ids, caches), with_head.run(ids, others)).item()
    assert all(
        mx.array_equal(a, b).item()
        for ours, theirs in zip(caches, others, strict=False)
        for a, b in zip(arrays_in(vars(ours)), arrays_in(vars(theirs)), strict=True)
    )


def usual_drafts(model: Any, ids: tuple[int, ...], newest: int, count: int) -> list[int]:
    """Return greedy drafts of a head that is computed as published: slot p has token p + 1."""
    text, head = text_model_of(model.model), model.head
    hidden = text.model(mx.array([ids]), make_prompt_cache(model.model))
    tokens, cache, found = [*ids[1:], newest], KVCache(), list[int]()
    for _ in range(count):
        joined = head.joined(text.model.embed_tokens(mx.array([tokens])), hidden)
        mask = "causal" if len(tokens) > 1 else None
        hidden = head.norm(head.layers[0](joined, mask, cache))[:, -1:]
        logits = (
            text.model.embed_tokens.as_linear(hidden)
            if text.args.tie_word_embeddings
            else text.lm_head(hidden)
        )
        draft = mx.argmax(logits[0, -1]).item()
        assert isinstance(draft, int)
        found.append(draft)
        tokens = [draft]
    return found


@pytest.mark.parametrize("cuts", [(24,), (1, 24), (6, 7, 20, 24)])
def test_drafts_are_those_of_the_published_head(
    tmp_path: Path, folder: Path, cuts: tuple[int, ...]
) -> None:
    model = heads.copy_of(folder, tmp_path / "model")
    side_file(model, heads.random_head(folder))
    adapter = loaded(model).adapter
    rows = [adapter.new_caches() for _ in range(2)]
    start = 0
    for end in cuts:
        group = (MergedRows if start else RowByRow)(rows)
        group.forward(adapter, [mx.array(IDS[start:end])] * 2)
        group.hand_back(0, undoing=False)
        group.hand_back(1, undoing=False)
        start = end
    group = RowByRow(rows)
    state = group.head_state(1)
    before = state.kv.offset
    found = adapter.drafts(5, state, 4, lambda logits, _: mx.argmax(logits))
    again = adapter.drafts(5, group.head_state(1), 4, lambda logits, _: mx.argmax(logits))

    assert [d.item() for d in found] == [d.item() for d in again]
    assert state.kv.offset == before == len(IDS)
    assert [d.item() for d in found] == usual_drafts(build_model(model).model, IDS, 5, 4)


def test_drafting_that_fails_leaves_the_state(tmp_path: Path) -> None:
    model = heads.build("qwen3_5", tmp_path / "model")
    side_file(model, heads.random_head(model))
    adapter = loaded(model).adapter
    caches: list[Any] = adapter.new_caches()
    adapter.forward(IDS, caches)
    kv, states = caches[-1].caches

    def fail(_logits: mx.array, drafts: Any) -> mx.array:
        if drafts:
            raise RuntimeError
        return mx.array(3)

    with pytest.raises(RuntimeError):
        adapter.drafts(5, HeadState(kv, states.cache[0]), 3, fail)
    assert kv.offset == len(IDS)


def cut_file(model: Path) -> None:
    path = model / "mtp.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def no_safetensors(model: Path) -> None:
    (model / "mtp.safetensors").write_bytes(b"\xff" * 64)


def tensor_missing(model: Path) -> None:
    head = heads.random_head(model)
    del head["fc.weight"]
    side_file(model, head)


def tensor_too_many(model: Path) -> None:
    side_file(model, {**heads.random_head(model), "layers.1.norm.weight": mx.ones((64,))})


def tensor_of_other_shape(model: Path) -> None:
    side_file(model, {**heads.random_head(model), "fc.weight": mx.ones((64, 64))})


def scales_of_other_shape(model: Path) -> None:
    head = heads.quantised(heads.random_head(model))
    side_file(model, {**head, "fc.scales": mx.ones((64, 3))})


def scales_without_columns(model: Path) -> None:
    head = heads.quantised(heads.random_head(model))
    side_file(model, {**head, "fc.scales": mx.ones((64, 0))})


def experts_missing(model: Path) -> None:
    head = heads.random_head(model)
    side_file(model, {**head, "layers.0.mlp.experts.7.gate_proj.weight": mx.ones((8, 8))})


def numbers_without_meaning(model: Path) -> None:
    side_file(model, {**heads.random_head(model), "fc.weight": mx.ones((64, 128), mx.int32)})


def packed_numbers_as_floats(model: Path) -> None:
    head = heads.quantised(heads.random_head(model))
    side_file(model, {**head, "fc.weight": head["fc.weight"].astype(mx.float32)})


def no_number(model: Path) -> None:
    head = heads.random_head(model)
    head["fc.weight"][0, 0] = float("nan")
    side_file(model, head)


@pytest.mark.parametrize(
    "break_head",
    [
        no_number,
        packed_numbers_as_floats,
        cut_file, no_safetensors, tensor_missing, tensor_too_many, tensor_of_other_shape,
        scales_of_other_shape, scales_without_columns, experts_missing, numbers_without_meaning,
    ],
)  # fmt: skip
def test_broken_head_is_left_out_with_a_sentence_and_the_model_runs(
    tmp_path: Path, break_head: Callable[[Path], None]
) -> None:
    model = heads.build("qwen3_5", tmp_path / "model")
    side_file(model, heads.random_head(model))
    break_head(model)
    found = loaded(model)

    assert not found.facts.has_head
    assert found.facts.head_fault.startswith("The prediction head in mtp.safetensors")
    assert found.facts.head_fault.endswith(".")
    assert ways_of(found).rewinding is not None
    assert found.adapter.forward(IDS, found.adapter.new_caches()).shape == (found.vocab_size,)


def test_cached_state_of_a_model_with_another_head_is_not_used(tmp_path: Path) -> None:
    model = heads.build("qwen3_5", tmp_path / "Tiny-4bit")
    names = [namespace_of(model, None)]
    heads.save_drafter(tmp_path / "Tiny-MTP", heads.random_head(model))
    names.append(namespace_of(model, None))
    side_file(model, heads.random_head(model))
    names.append(namespace_of(model, None))

    assert len(set(names)) == 3


def test_head_of_a_dense_layer_for_a_model_of_experts_is_possible(tmp_path: Path) -> None:
    model = heads.build("qwen3_5_moe", tmp_path / "model")
    built: Any = build_model(model).model
    text_model_of(built).args.intermediate_size = 96
    config = json.loads((model / "config.json").read_text())
    config["text_config"]["intermediate_size"] = 96
    (model / "config.json").write_text(json.dumps(config))
    head = make_head(built, num_experts=0)
    side_file(model, dict(tree_flatten(head.parameters())))

    assert loaded(model).facts.has_head
