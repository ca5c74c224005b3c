"""The oracle: a slow and simple computation of an answer, which checks the engine's answers.

The engine answers with cached state, snapshots, chunks and batches. The oracle uses none of these,
only the loaded model, its filters and its function `draw`. It makes a naive run: it starts with
empty caches and feeds the whole prompt to the model in one pass, then one output token per pass.
`check` makes three comparisons for a finished request:

- It compares the logits and tokens with those of the naive run.
- It compares the prompt with the messages (prompts.py).
- It compares the logits with those of a replay of the engine's own passes (replay.py).

`rejoinder bench script --check` and the tests send a Verify command. Records.verify (records.py)
then calls `check` on the request's LogitsRecord. `check` changes no state of the engine. It only
measures and compares: the sender of the command judges the CheckResult. Use on the engine thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx

from engine.cache.radix import TokenRun
from engine.cache.trees import evaluate
from engine.chat.template import TemplateOptions
from engine.checking.prompts import cut_replies, prompt_fault
from engine.checking.replay import replay
from engine.models.compare import relative_difference
from engine.models.filters import PENALTY_WINDOW, make_filter
from engine.models.loader import LoadedModel
from engine.picture_ids import without_pictures
from engine.questions import CheckResult
from engine.sampling.draw import draw
from engine.types import Message, SamplingParams

# Largest difference between two rows of logits that counts as equal, relative to the logits'
# standard deviation. Measured: rounding alone stays below 5e-6, a wrong state is above 2e-2.
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class LogitsRecord:
    """The tokens that a finished request fed and drew, and the logits of each draw.

    Records.keep (records.py) creates it when a request with record_logits ends. It is kept until
    its Verify command arrives, the model is unloaded or 64 newer records are made. It is large:
    `rows` has one number per token of the vocabulary for each output token.
    """

    # All tokens that are in the request's caches when it ends, and the passes that fed them.
    fed: TokenRun
    prompt_ids: tuple[int, ...]
    # If the request continued a reply: number of tokens of the earlier part, at the end of the
    # prompt. Otherwise 0.
    num_begun: int
    output_ids: tuple[int, ...]
    # For each output token, the logits (V,) that it was drawn from. If the model drew an end token,
    # the last row has the logits of this draw.
    rows: tuple[mx.array, ...]
    sampling: SamplingParams
    # False if the tokens do not depend on the logits alone: the request gave the reply's text
    # (Request.forced), or it kept the answer to a format.
    is_sampled: bool
    thinking: bool | None
    keep_thinking: bool
    tools: str


def check(model: LoadedModel, record: LogitsRecord, messages: Sequence[Message]) -> CheckResult:
    """Compare a finished request with its messages, a naive run and a replay of its passes.

    Args:
        model: the model that answered the request.
        record: the request's tokens and logits.
        messages: the messages from which the prompt was built, as the user sees them.
    """
    template, tokenizer = model.prompts.template, model.prompts.tokenizer
    options = TemplateOptions(record.thinking, record.keep_thinking, record.tools)
    wrong_prompt = prompt_fault(
        template, tokenizer, record.prompt_ids, messages, options, model.prompts.pictures
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
        logits_hash=_hash(record.rows),
        template_cut=cut_replies(template, tokenizer, messages, options),
        detail=wrong_prompt,
    )


def _hash(rows: Sequence[mx.array]) -> str:
    """Return a hash of the bits of logits, each row of shape (V,)."""
    digest = hashlib.sha256()
    for row in rows:
        bits = mx.contiguous(row).view(mx.uint8)
        digest.update(memoryview(bits))  # pyright: ignore[reportArgumentType] — arrays are buffers
    return digest.hexdigest()[:32]


def failed_check(detail: str) -> CheckResult:
    """Return the result of a check that could not be carried out for the reason `detail`.

    Records.verify calls this if there is no record or no model, or if `check` raised an error.
    """
    return CheckResult(
        prompt_equal=False,
        equal=False,
        max_difference=float("inf"),
        replay_difference=float("inf"),
        first_difference=0,
        detail=detail,
    )


def _is_token_right(model: LoadedModel, record: LogitsRecord, index: int, naive: mx.array) -> bool:
    """Return whether the naive logits give the same token that the request delivered.

    Args:
        model: the model that answered the request.
        record: the request's tokens and logits.
        index: index of the token in record.rows.
        naive: logits (V,) of the naive run for this token.
    """
    if not record.is_sampled:
        return True
    logits_filter = make_filter(record.sampling, model.vocab_size, model.spared_ids)
    before = (*record.prompt_ids, *record.output_ids[:index])[-PENALTY_WINDOW:]
    at = record.num_begun + index
    filtered = logits_filter(lambda: mx.array(without_pictures(before), mx.int32), naive, index=at)
    sampling = record.sampling
    drawn = draw(filtered, temperature=sampling.temperature, seed=sampling.seed, index=at).item()
    if index < len(record.output_ids):
        return drawn == record.output_ids[index]
    return drawn in model.prompts.tokenizer.markers.eos_ids


def naive_rows(model: LoadedModel, record: LogitsRecord) -> list[mx.array]:
    """Run the model without cached state. Return the logits (V,) of each output token.

    The run starts with empty caches. It feeds the prompt in one pass, then each output token in a
    separate pass.
    """
    caches = model.adapter.new_caches()
    rows = [model.adapter.forward(record.prompt_ids, caches)]
    evaluate(rows)
    # The last row needs no further pass: feed only the output tokens before its draw.
    for token_id in record.output_ids[: len(record.rows) - 1]:
        rows.append(model.adapter.forward([token_id], caches))
        evaluate(rows[-1])
    return rows[: len(record.rows)]


def _replay_difference(model: LoadedModel, record: LogitsRecord) -> float:
    """Repeat a request's passes on empty caches and compare the logits with the recorded logits.

    Return the largest difference. It is 0 if every bit is equal.
    """
    largest = 0.0
    first = len(record.prompt_ids)
    passes = replay(model.adapter, model.ways.rewinding, model.adapter.new_caches(), record.fed)
    for num_tokens, logits in passes:
        # record.rows[i] was drawn from the logits after first + i tokens. Ignore logits inside the
        # prompt, and logits that no token was drawn from.
        for index in range(logits.shape[0]):
            drawn = num_tokens - logits.shape[0] + index + 1 - first
            if 0 <= drawn < len(record.rows):
                difference = relative_difference(record.rows[drawn], logits[index])
                largest = max(largest, difference)
    return largest
