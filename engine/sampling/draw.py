"""Drawing a token from filtered logits, reproducibly.

Every draw has its own key made of (seed, index of the output token): no process-wide random state,
so a reply depends neither on other chats nor on what ran before.
"""

from __future__ import annotations

import mlx.core as mx

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def draw(logits: mx.array, *, temperature: float, seed: int, index: int) -> mx.array:
    """One token id as a lazy scalar. logits has shape (V,); temperature 0 (or less) takes the largest."""
    if temperature <= 0.0:
        return mx.argmax(logits)
    key = mx.random.key(mix(seed, index))
    return mx.random.categorical(logits * (1.0 / temperature), key=key)


def chance(seed: int, index: int) -> float:
    """A number in [0, 1) for a decision at an output token, apart from which token is drawn there."""
    return (mix(mix(seed, index), index) >> 11) / (1 << 53)


def mix(seed: int, index: int) -> int:
    """A 64-bit key from two numbers (the finaliser of splitmix64, Steele et al. 2014)."""
    z = (seed + (index + 1) * _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
