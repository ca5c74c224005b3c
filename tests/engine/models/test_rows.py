"""Rows of a batch give the same bits as rows fed alone, and can be handed back at any time."""

from __future__ import annotations

import mlx.core as mx
import pytest

from engine.cache.layout import Leaves
from engine.cache.trees import arrays_in, evaluate
from engine.models.adapter import ModelAdapter
from engine.models.loader import load_model
from engine.models.rows import MergedRows, RowByRow, RowGroup
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import CONFIGS, Template
from tests.fakes.ways import ways_of

# Number of tokens of each row. Two rows are equally long, and longer than any model's window.
LENGTHS = (5, 40, 17, 40)


@pytest.fixture(params=rest_in_soak(CONFIGS, "qwen3_5", "gemma3", "falcon_h1"))
def adapter(request: pytest.FixtureRequest, tiny_model: TinyModel) -> ModelAdapter:
    model = load_model(tiny_model(request.param, Template.KEEPING), lambda _done, _total: None)
    assert ways_of(model).can_merge
    return model.adapter


def rows_of(adapter: ModelAdapter, lengths: tuple[int, ...] = LENGTHS) -> list[list[object]]:
    rows: list[list[object]] = []
    for number, num_tokens in enumerate(lengths):
        rows.append(adapter.new_caches())
        evaluate(adapter.forward([(7 * i + number) % 200 for i in range(num_tokens)], rows[-1]))
    return rows


def tokens(step: int, num_rows: int) -> list[mx.array]:
    return [mx.array([(3 * step + row) % 200]) for row in range(num_rows)]


def contents(rows: list[list[object]]) -> list[mx.array]:
    """Return all arrays that the caches hold, without the spare room of their buffers."""
    arrays: list[mx.array] = []
    for row in rows:
        leaves = Leaves.of(row)
        for leaf in leaves.kv:
            arrays += [x[..., : leaf.offset, :] for x in arrays_in((leaf.keys, leaf.values))]
        arrays += arrays_in(leaves.states)
    return arrays


def assert_same(ours: list[mx.array], theirs: list[mx.array]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert mx.array_equal(one, other).item()


@pytest.mark.slow
def test_rows_of_a_batch_give_the_same_bits_as_rows_alone(adapter: ModelAdapter) -> None:
    together, apart = rows_of(adapter), rows_of(adapter)
    group = MergedRows(together)
    for step in range(10):
        if step in (3, 7):
            # Merge the rows again, as the engine does after it attaches or detaches a row.
            hand_back_all(group, len(together))
            group = MergedRows(together)
        token_ids = tokens(step, len(together))
        assert_same(group.forward(adapter, token_ids), RowByRow(apart).forward(adapter, token_ids))
    hand_back_all(group, len(together))

    assert_same(contents(together), contents(apart))


def hand_back_all(group: RowGroup, num_rows: int) -> None:
    for row in range(num_rows):
        group.hand_back(row, undoing=False)


@pytest.mark.parametrize(
    "name", rest_in_soak(["qwen3_5", "lfm2", "falcon_h1", "mamba2", "llama"], "falcon_h1", "mamba2")
)
@pytest.mark.parametrize("kind", [MergedRows, RowByRow])
def test_row_handed_back_with_undoing_loses_its_newest_token(
    tiny_model: TinyModel, name: str, kind: type[MergedRows | RowByRow]
) -> None:
    model = load_model(tiny_model(name, Template.KEEPING), lambda _done, _total: None)
    ours, wanted = rows_of(model.adapter), rows_of(model.adapter)
    group, other = kind(ours), RowByRow(wanted)
    for step in range(3):
        evaluate(group.forward(model.adapter, tokens(step, len(ours))))
        if step < 2:
            evaluate(other.forward(model.adapter, tokens(step, len(ours))))
    group.hand_back(1, undoing=True)
    evaluate(other.forward(model.adapter, tokens(2, len(ours))))
    other.hand_back(1, undoing=True)
    for row in (0, 2, 3):
        group.hand_back(row, undoing=False)

    assert model.can_undo
    assert_same(contents(ours), contents(wanted))


@pytest.mark.parametrize("kind", [MergedRows, RowByRow])
def test_failed_pass_leaves_all_rows_unchanged(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch, kind: type[MergedRows | RowByRow]
) -> None:
    adapter = load_model(
        tiny_model("falcon_h1", Template.KEEPING), lambda _done, _total: None
    ).adapter
    ours, wanted = rows_of(adapter), rows_of(adapter)
    group, run = kind(ours), ModelAdapter.run

    def failing(self: ModelAdapter, input_ids: mx.array, caches: list[object]) -> mx.array:
        run(self, input_ids, caches)
        raise RuntimeError("the last layer failed")

    with monkeypatch.context() as patch:
        patch.setattr(ModelAdapter, "run", failing)
        with pytest.raises(RuntimeError, match="the last layer"):
            group.forward(adapter, tokens(0, len(ours)))
    hand_back_all(group, len(ours))

    assert_same(contents(ours), contents(wanted))


def built_for_lengths(
    adapter: ModelAdapter, lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> int:
    """Return the number of arrays that one pass of a batch creates from Python numbers."""
    group, count = MergedRows(rows_of(adapter, lengths)), [0]
    made = mx.array

    def counted(*args: object, **options: object) -> mx.array:
        count[0] += 1
        return made(*args, **options)  # type: ignore[arg-type]

    token_ids = tokens(0, len(lengths))
    with monkeypatch.context() as patch:
        patch.setattr(mx, "array", counted)
        patch.setattr(mx, "arange", counted)
        group.forward(adapter, token_ids)
    return count[0]


@pytest.mark.slow
def test_rows_of_different_lengths_need_one_array_of_positions(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("llama", "qwen3_5"):
        adapter = load_model(tiny_model(name, Template.KEEPING), lambda _done, _total: None).adapter
        assert built_for_lengths(adapter, (9, 9, 9), monkeypatch) == 0
        assert built_for_lengths(adapter, (9, 5, 9), monkeypatch) == 1
