"""Weights in float32, for devices that are slow in half precision."""

# mlx.nn, mlx.utils and mlx-lm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_map
from mlx_lm.utils import dequantize_model


def as_float32(model: nn.Module) -> nn.Module:
    """Convert the weights of a model to float32, including quantised weights. Lazy.

    MLX's CPU backend is unusably slow in half precision.
    """
    model = dequantize_model(model)
    widened = tree_map(
        lambda x: x.astype(mx.float32) if mx.issubdtype(x.dtype, mx.floating) else x,
        model.parameters(),
    )
    model.update(widened)
    return model
