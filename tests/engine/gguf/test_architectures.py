"""For each architecture: mlx-lm's model, written as GGUF and imported, gives the same logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model  # pyright: ignore[reportUnknownVariableType]
from numpy.typing import NDArray

from engine.gguf.architectures import ARCHITECTURES
from engine.gguf.importer import import_once
from tests.fakes.gguf_models import CONFIGS, TinyModel, tiny_gguf

PROMPT = [5, 17, 60, 61, 62, 200, 41, 9, 100, 150, 33, 12, 12, 77, 250, 3]


def imported(tiny: TinyModel, place: Path) -> Any:
    """Import the model's GGUF file and return the model that mlx-lm loads, in float32."""
    source = place / f"{tiny.architecture}.gguf"
    source.write_bytes(tiny.to_bytes())
    import_once(source, place / "model", lambda _: None)
    model: Any = load_model(place / "model")[0]
    model.set_dtype(mx.float32)
    return model


def logits(model: Any) -> NDArray[np.float32]:
    """Return the logits of all positions of PROMPT, with the caches of mlx-lm in two steps."""
    cache = make_prompt_cache(model)
    steps = [model(mx.array([part]), cache=cache) for part in (PROMPT[:10], PROMPT[10:])]
    return np.array(mx.concatenate(steps, axis=1).astype(mx.float32))[0]


def test_configurations_cover_all_architectures():
    assert CONFIGS.keys() == ARCHITECTURES.keys()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_imported_model_gives_the_logits_of_the_written_one(tmp_path: Path, architecture: str):
    tiny = tiny_gguf(architecture)
    expected = logits(tiny.model())

    difference = np.abs(logits(imported(tiny, tmp_path)) - expected).max()

    assert expected.std() > 0.1
    assert difference < 1e-4 * expected.std()
