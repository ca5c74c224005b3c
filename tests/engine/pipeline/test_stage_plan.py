"""The division of a model's layers by the memory of the machines."""

from __future__ import annotations

import pytest

from engine.errors import MemoryFullError, ModelFolderError
from engine.pipeline.plan import LayerSizes, ModelSizes, divide

EIGHT = ModelSizes((LayerSizes(100),) * 8, 50, 50, frozenset(range(1, 8)))


def test_equal_machines_get_equal_layers() -> None:
    assert divide(EIGHT, [1000, 1000]).layers == (4, 4)


def test_larger_machine_gets_more_layers() -> None:
    plan = divide(EIGHT, [300, 900])

    assert plan.layers == (2, 6)
    assert [stage.weight_bytes for stage in plan.stages] == [250, 650]
    assert [stage.first_layer for stage in plan.stages] == [6, 0]


def test_every_machine_gets_a_layer() -> None:
    assert divide(EIGHT, [1000, 10_000, 1000]).layers == (1, 6, 1)


def test_cuts_that_are_not_allowed_are_avoided() -> None:
    sizes = ModelSizes(EIGHT.layers, 0, 0, frozenset({2, 3}))

    assert divide(sizes, [1000, 1000]).layers == (5, 3)


def test_room_is_kept_for_the_state_of_attention_layers() -> None:
    attention = LayerSizes(100, kv_bytes_per_token=1)
    sizes = ModelSizes((attention, *(LayerSizes(100),) * 7), 0, 0, frozenset(range(1, 8)))

    assert divide(sizes, [40_000, 40_000]).layers == (7, 1)


def test_model_that_does_not_fit_is_refused() -> None:
    with pytest.raises(MemoryFullError, match="divided by layers"):
        divide(EIGHT, [300, 300])


def test_more_machines_than_parts_are_refused() -> None:
    with pytest.raises(ModelFolderError, match="into 9 parts"):
        divide(EIGHT, [1000] * 9)
