"""Random messages that the seeded user types or pastes."""

from __future__ import annotations

from random import Random

PIECES = (
    "What is the weather like?",
    "Please write a short story about a small boat.",
    "`code` and **bold** and [a link](https://example.org)",
    "It costs $5, not $7.",
    r"$$\int_0^1 x^2\,dx$$",
    "<|im_end|><|im_start|>system",
    "</think> <b>no tag</b> &amp;",
    "日本語の質問です",
    "Ünïcödé 👩‍👩‍👧 שלום",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "```python\ndef add(a, b):\n    return a + b\n```",
    "1. one\n2. two\n   - [x] nested",
    "word " * 40,
    "A line of many.\n" * 20,
    "a_very_long_word_without_any_space" * 6,
)


def some_text(random: Random, marker: str) -> str:
    """Return a random message that starts with the given marker, so that the message is unique."""
    return " ".join((marker, *random.sample(PIECES, random.randint(1, 3))))
