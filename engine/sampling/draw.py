"""Draw a token from filtered logits, reproducibly.

Each draw has its own random key, computed from the request's seed and the index of the output
token. There is no process-wide random state. So a reply does not depend on other chats or on
earlier work.
"""

from __future__ import annotations

import mlx.core as mx

# Increment of the generator splitmix64: 2**64 divided by the golden ratio.
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def draw(logits: mx.array, *, temperature: float, seed: int, index: int) -> mx.array:
    """Draw one token id and return it as a lazy scalar.

    Args:
        logits: filtered logits of shape (V,).
        temperature: at 0 or below, return the id with the largest logit.
        seed: the request's seed.
        index: index of the drawn token in the reply.
    """
    if temperature <= 0.0:
        return mx.argmax(logits)
    key = mx.random.key(mix(seed, index))
    return mx.random.categorical(logits * (1.0 / temperature), key=key)


def chance(seed: int, index: int) -> float:
    """Return a pseudo-random number in [0, 1) for an output token.

    The number is independent of the random key that `draw` uses for the same token.
    """
    return (mix(mix(seed, index), index) >> 11) / (1 << 53)


def mix(seed: int, index: int) -> int:
    """Combine two numbers into a 64-bit key.

    Use the last step of the generator splitmix64 (Steele et al. 2014).
    """
    z = (seed + (index + 1) * _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
