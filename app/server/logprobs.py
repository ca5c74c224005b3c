"""The log-probabilities of an answer's tokens: how many a body asks for, and their forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile

from app.server.fields import Fields
from engine.types import TokenScore

MAX_LIKELIEST = 20  # as in OpenAI's API


def read_likeliest(fields: Fields) -> int | None:
    """Return the number of likeliest tokens that a body asks for; None: no log-probabilities."""
    likeliest = fields.integer("top_logprobs", 0, MAX_LIKELIEST)
    return (likeliest or 0) if fields.flag("logprobs") else None


def read_likeliest_number(fields: Fields) -> int | None:
    """Return the same for the older completions, whose field `logprobs` is the number."""
    return fields.integer("logprobs", 0, MAX_LIKELIEST)


def scores_within(scores: Sequence[TokenScore], num_chars: int) -> tuple[TokenScore, ...]:
    """Return the scores of the tokens that end within the first characters of the answer.

    The line breaks before an answer do not belong to its text.
    """
    shown = list(dropwhile(lambda score: not score.text.strip("\n"), scores))
    start = scores[len(scores) - len(shown) - 1].end if len(shown) < len(scores) else 0
    moved = (replace(score, end=score.end - start) for score in shown)
    return tuple(takewhile(lambda score: score.end <= num_chars, moved))


def token_list(scores: Sequence[TokenScore]) -> list[dict[str, object]]:
    """Return scores as a list of tokens: in chat completions, responses and Ollama's answers."""
    return [
        {
            **_token(score.text, score.logprob),
            "top_logprobs": [_token(text, logprob) for text, logprob in score.likeliest],
        }
        for score in scores
    ]


def _token(text: str, logprob: float) -> dict[str, object]:
    is_whole = "�" not in text
    return {"token": text, "logprob": logprob, "bytes": list(text.encode()) if is_whole else None}


def columns(scores: Sequence[TokenScore]) -> dict[str, object]:
    """Return scores as a list for each column: in the older completions."""
    return {
        "tokens": [score.text for score in scores],
        "token_logprobs": [score.logprob for score in scores],
        "top_logprobs": [dict(score.likeliest) for score in scores],
        "text_offset": [0, *(score.end for score in scores[:-1])],
    }
