"""The trial of one model type in two stages: every cut, compared with the whole model.

Both stages run in this process, one after the other. A prompt is fed in several passes, the last ones
of a single token. The type is exact if every cut that the trace allows gives the bits of the whole
model, and if at least one cut is allowed.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import mlx.core as mx

from engine.cache.trees import evaluate
from engine.models.adapter import ModelAdapter
from engine.models.partial import load_partly
from engine.pipeline.split import PartOfModel
from engine.pipeline.trace import UnsplittableError, trace_layers

SAME_BITS = "same bits"

_TOKEN_IDS = [(7 * i * i + 3 * i + 1) % 400 for i in range(80)]
_CUTS = (0, 40, 70, 71, 72)


def compare_two_stages(folder: Path) -> str:
    """Return SAME_BITS, or what is wrong with the model of a folder in two stages."""
    whole = ModelAdapter(load_partly(folder).model)
    caches = whole.new_caches()
    wanted: list[mx.array] = []
    for start, end in pairwise(_CUTS):
        wanted.append(whole.run(mx.array([_TOKEN_IDS[start:end]], mx.int32), caches))
        evaluate(wanted[-1])
    try:
        trace = trace_layers(load_partly(folder).model, whole.new_caches())
        cuts = [cut for cut in range(1, trace.num_layers) if cut not in trace.refusals]
        different = [cut for cut in cuts if not _is_exact(folder, cut, wanted)]
    except UnsplittableError as error:
        return f"refused: {error}"
    except Exception as error:  # noqa: BLE001 — a model may raise anything
        return f"refused: {type(error).__name__}"
    if not cuts:
        return f"refused: {next(iter(trace.refusals.values()), 'it has one layer')}"
    return f"**differs** at {different}" if different else SAME_BITS


def _is_exact(folder: Path, cut: int, wanted: list[mx.array]) -> bool:
    first, last = _part(folder, 0, cut), _part(folder, cut, None)
    caches = first.new_caches(), last.new_caches()
    for (start, end), logits in zip(pairwise(_CUTS), wanted, strict=True):
        ids = mx.array([_TOKEN_IDS[start:end]], mx.int32)
        _, sent = first.pass_through(ids, caches[0], (), start)
        evaluate(sent)
        ours, _ = last.pass_through(ids, caches[1], sent, start)
        if not mx.array_equal(ours, logits, equal_nan=True).item():
            return False
    return True


def _part(folder: Path, start: int, end: int | None) -> PartOfModel:
    model = load_partly(folder).model
    trace = trace_layers(model, ModelAdapter(model).new_caches())
    return PartOfModel(model, trace, start, trace.num_layers if end is None else end)
