"""A narrow MobileNetV5, which the tower of Gemma 3n knows by its name as soon as this module is imported."""

# mlx-vlm has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, Final

from engine.vision.gemma3n import NETWORKS, Network
from engine.vision.tower_module import import_part

TINY_NETWORK: Final = "tiny"


def tiny_stages() -> list[list[Any]]:
    """Return the blocks of a narrow MobileNetV5: each kind of block, with and without a stride."""
    parts = import_part("gemma3n.vision")
    first, second, third, fourth = 8, 16, 24, 32  # channels
    return [
        [parts._er(3, first, 2), parts._er(3, first, 1)],
        [parts._uir(3, 5, second, 2, 6.0), parts._uir(5, 0, second)],
        [
            parts._uir(5, 5, third, 2, 6.0),
            parts._uir(0, 0, third, 1, 1.0),
            parts._mmqa(2, 16, 2),
            parts._uir(0, 0, third, 1, 2.0),
        ],
        [parts._uir(5, 5, fourth, 2, 6.0), parts._mmqa(2, 16, 1)],
    ]


NETWORKS[TINY_NETWORK] = Network(tiny_stages, side=96, per_side=3, stem=8)
