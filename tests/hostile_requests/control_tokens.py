"""The control tokens of prompts, with hostile text in every field of every protocol."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.qwen import Qwen, qwen_tokenizer
from tests.fakes.served_model import ServedModel, served_model
from tests.hostile_requests.bodies import BODIES_BY_PATH, HOSTILE_TEXT, with_text

NUM_TOKENS = 8_000  # of the vocabulary
_PLAIN_TEXT = "word"


@dataclass(frozen=True, slots=True)
class Smuggled:
    """A field whose text changed the control tokens of a prompt."""

    path: str
    field: str
    plain: dict[int, int]  # number of control tokens by id
    hostile: dict[int, int]


def smuggled_tokens(model: Path) -> tuple[int, list[Smuggled]]:
    """Return the number of fields that were tried, and those whose text became control tokens."""
    tokenizer = qwen_tokenizer(Qwen.QWEN3_5, NUM_TOKENS)
    controls = frozenset(tokenizer.get_added_tokens_decoder())
    smuggled: list[Smuggled] = []
    num_tried = 0
    with served_model(model) as served:
        for path, body in BODIES_BY_PATH.items():
            for (field, plain), (_, hostile) in zip(
                with_text(body, _PLAIN_TEXT), with_text(body, HOSTILE_TEXT), strict=True
            ):
                num_tried += 1
                counted = _counts(served, path, hostile, controls)
                expected = _counts(served, path, plain, controls)
                # A refused text has no prompt.
                if counted is not None and expected is not None and counted != expected:
                    smuggled.append(Smuggled(path, field, expected, counted))
    return num_tried, smuggled


def _counts(
    served: ServedModel, path: str, body: dict[str, Any], controls: frozenset[int]
) -> dict[int, int] | None:
    """Return the control tokens in the prompt of a request. None: it is refused."""
    answer = served.post(path, **body)
    assert answer.status in (200, 400), answer
    if answer.status == 400:
        return None
    return dict(Counter(one for one in served.finished[-1].prompt_ids if one in controls))
