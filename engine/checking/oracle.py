"""The slow, obvious way to answer, and the comparison of a finished request with it.

`rejoinder bench script --check` and the tests use it. It has no cache, no snapshots, no chunks, and
draws without the engine's token sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx

from engine.cache.radix import TokenRun
from engine.cache.trees import evaluate
from engine.chat.template import Thoughts
from engine.checking.prompts import prompt_fault
from engine.checking.replay import replay
from engine.models.compare import relative_difference
from engine.models.filters import PENALTY_WINDOW, make_filter
from engine.models.loader import LoadedModel
from engine.sampling.draw import draw
from engine.types import CheckResult, Message, SamplingParams

# Rounding alone stays below 5e-6 of the logits' standard deviation, a wrong state is above 2e-2.
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The tokens that a request fed and drew, and the logits that it drew them from."""

    fed: TokenRun  # the tokens in its caches at the end, from token 0 on, restored ones included
    prompt_ids: tuple[int, ...]
    num_begun: int  # tokens at the prompt's end that are the earlier part of a continued reply
    output_ids: tuple[int, ...]
    rows: tuple[mx.array, ...]  # (V,) before each output token, and before the end token if drawn
    sampling: SamplingParams
    is_forced: bool
    thinking: bool | None
    keep_thinking: bool


def check(model: LoadedModel, record: Record, messages: Sequence[Message]) -> CheckResult:
    """Compare a record with the messages that the user sees and with a naive run of the bare model."""
    wrong_prompt = prompt_fault(
        model.prompts.template,
        model.prompts.tokenizer,
        record.prompt_ids,
        messages,
        Thoughts(record.thinking, record.keep_thinking),
    )
    largest = 0.0
    first: int | None = None
    for index, (ours, naive) in enumerate(zip(record.rows, naive_rows(model, record), strict=True)):
        difference = relative_difference(ours, naive)
        largest = max(largest, difference)
        agrees = difference <= TOLERANCE and _is_token_right(model, record, index, naive)
        if first is None and not agrees:
            first = index
    return CheckResult(
        prompt_equal=not wrong_prompt,
        equal=first is None,
        max_difference=largest,
        replay_difference=_replay_difference(model, record),
        first_difference=first,
        detail=wrong_prompt,
    )


def failed_check(detail: str) -> CheckResult:
    """Return the result of a check that could not compare."""
    return CheckResult(
        prompt_equal=False,
        equal=False,
        max_difference=float("inf"),
        replay_difference=float("inf"),
        first_difference=0,
        detail=detail,
    )


def _is_token_right(model: LoadedModel, record: Record, index: int, naive: mx.array) -> bool:
    """Return whether the delivered token is the one drawn from the naive logits."""
    if record.is_forced:
        return True
    logits_filter = make_filter(record.sampling, model.vocab_size, model.spared_ids)
    token_ids = [*record.prompt_ids, *record.output_ids[:index]]
    at = record.num_begun + index
    filtered = logits_filter(
        lambda: mx.array(token_ids[-PENALTY_WINDOW:], mx.int32), naive, index=at
    )
    sampling = record.sampling
    drawn = draw(filtered, temperature=sampling.temperature, seed=sampling.seed, index=at).item()
    if index < len(record.output_ids):
        return drawn == record.output_ids[index]
    return drawn in model.prompts.tokenizer.markers.eos_ids


def naive_rows(model: LoadedModel, record: Record) -> list[mx.array]:
    """Return the logits before every output token: on new caches, the prompt at once, then token by token."""
    caches = model.adapter.new_caches()
    rows = [model.adapter.forward(record.prompt_ids, caches)]
    evaluate(rows)
    for token_id in record.output_ids[: len(record.rows) - 1]:
        rows.append(model.adapter.forward([token_id], caches))
        evaluate(rows[-1])
    return rows[: len(record.rows)]


def _replay_difference(model: LoadedModel, record: Record) -> float:
    """Return the difference from the same passes on empty caches; 0 if every bit is the same."""
    largest = 0.0
    first = len(record.prompt_ids)
    for num_tokens, cold in replay(model.adapter, model.adapter.new_caches(), record.fed):
        if cold is not None and num_tokens >= first and num_tokens - first < len(record.rows):
            ours = record.rows[num_tokens - first]
            largest = max(largest, relative_difference(ours, cold))
    return largest
