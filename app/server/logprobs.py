"""The log-probabilities of an answer's tokens: how many a body asks for, and their forms."""

from __future__ import annotations

from collections.abc import Sequence

from app.server.fields import Fields
from engine.types import TokenScore

MAX_LIKELIEST = 20  # as in OpenAI's API


def read_likeliest(fields: Fields) -> int | None:
    """Return the number of the likeliest tokens that a body asks for; None: no log-probabilities."""
    likeliest = fields.integer("top_logprobs", 0, MAX_LIKELIEST)
    return (likeliest or 0) if fields.flag("logprobs") else None


def read_likeliest_number(fields: Fields) -> int | None:
    """Return the same for the older completions, whose field `logprobs` is the number."""
    return fields.integer("logprobs", 0, MAX_LIKELIEST)


def scores_within(scores: Sequence[TokenScore], num_chars: int) -> tuple[TokenScore, ...]:
    """Return the scores of the tokens that end within the first characters of the answer."""
    num_kept, length = 0, 0
    for score in scores:
        length += len(score.text)
        if length > num_chars:
            break
        num_kept += 1
    return tuple(scores[:num_kept])


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
    offsets: list[int] = []
    length = 0
    for score in scores:
        offsets.append(length)
        length += len(score.text)
    return {
        "tokens": [score.text for score in scores],
        "token_logprobs": [score.logprob for score in scores],
        "top_logprobs": [dict(score.likeliest) for score in scores],
        "text_offset": offsets,
    }
