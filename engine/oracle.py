"""The slow, obvious way to answer, and the comparison of a finished request with it.

Used by `rejoinder bench script --check` and the tests: no cache, no snapshots, no chunks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import mlx.core as mx

from engine.cache.trees import evaluate
from engine.chat.tokenizer import ChatTokenizer
from engine.models.filters import make_filter
from engine.models.loader import LoadedModel
from engine.sampling.draw import draw
from engine.types import CheckResult, Message, Role, SamplingParams

# Rounding alone stays below 5e-6 of the logits' standard deviation, a wrong state is above 2e-2.
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a request fed, saw and drew: rows[i] are the logits (V,) before output token i.

    There is one row more than output ids where an end token was drawn after them.
    """

    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    rows: tuple[mx.array, ...]
    sampling: SamplingParams
    is_forced: bool
    thinking: bool | None


def check(model: LoadedModel, record: Record, messages: Sequence[Message]) -> CheckResult:
    """Hold a record to the messages that a person sees and to a naive run of the bare model."""
    wrong_prompt = _prompt_fault(model, record, messages)
    largest = 0.0
    first: int | None = None
    for index, (ours, naive) in enumerate(zip(record.rows, naive_rows(model, record), strict=True)):
        difference = _number(mx.max(mx.abs(ours - naive)) / mx.std(naive))
        largest = max(largest, difference)
        agrees = difference <= TOLERANCE and _is_token_right(model, record, index, naive)
        if first is None and not agrees:
            first = index
    return CheckResult(
        prompt_equal=not wrong_prompt,
        equal=first is None,
        max_difference=largest,
        first_difference=first,
        detail=wrong_prompt,
    )


def failed_check(detail: str) -> CheckResult:
    """The result where nothing could be compared."""
    return CheckResult(
        prompt_equal=False,
        equal=False,
        max_difference=float("inf"),
        first_difference=0,
        detail=detail,
    )


def _is_token_right(model: LoadedModel, record: Record, index: int, naive: mx.array) -> bool:
    """Whether the token that was delivered is the one that the naive logits give."""
    if record.is_forced:
        return True
    logits_filter = make_filter(record.sampling, model.vocab_size)
    token_ids = [*record.prompt_ids, *record.output_ids[:index]]
    drawn = draw(
        logits_filter(token_ids, naive),
        temperature=record.sampling.temperature,
        seed=record.sampling.seed,
        index=index,
    ).item()
    if index < len(record.output_ids):
        return drawn == record.output_ids[index]
    return drawn in model.prompts.tokenizer.markers.eos_ids


def _number(scalar: mx.array) -> float:
    value = scalar.item()
    assert isinstance(value, float)
    return value


def naive_rows(model: LoadedModel, record: Record) -> list[mx.array]:
    """Logits before every output token: a fresh cache, the prompt in one go, then token by token."""
    caches = model.adapter.new_caches()
    rows = [model.adapter.forward(record.prompt_ids, caches)]
    evaluate(rows)
    for token_id in record.output_ids[: len(record.rows) - 1]:
        rows.append(model.adapter.forward([token_id], caches))
        evaluate(rows[-1])
    return rows[: len(record.rows)]


def _prompt_fault(model: LoadedModel, record: Record, messages: Sequence[Message]) -> str:
    """What is wrong with the prompt's ids, an empty string if nothing is."""
    tokenizer = model.prompts.tokenizer

    def render(shown: Sequence[Message]) -> str:
        return model.prompts.renderer.render(shown, thinking=record.thinking, reply_follows=True)

    text, decoded = render(messages), tokenizer.decode(record.prompt_ids)
    if decoded not in (text, unicodedata.normalize("NFC", text)):
        at = next((i for i, (a, b) in enumerate(zip(decoded, text, strict=False)) if a != b), -1)
        return f"the prompt reads {decoded[at:][:40]!r} where the messages read {text[at:][:40]!r}"
    if any(tokenizer.has_control(m.content) for m in messages if m.role is not Role.ASSISTANT):
        return _control_fault(tokenizer, record.prompt_ids, render(_neutral(messages)), messages)
    return _ids_fault(tokenizer, record.prompt_ids, messages)


def _neutral(messages: Sequence[Message]) -> list[Message]:
    """The same conversation about nothing: a letter in place of every text."""
    return [replace(m, content=m.content and "x", reasoning=m.reasoning and "x") for m in messages]


def _control_fault(
    tokenizer: ChatTokenizer, prompt_ids: Sequence[int], neutral: str, messages: Sequence[Message]
) -> str:
    """Control tokens come from the template and from replies that hold some, from nowhere else."""
    wanted = tokenizer.count_control(tokenizer.encode_template(neutral)) + sum(
        tokenizer.count_control(_answer_ids(tokenizer, message)[0]) for message in messages
    )
    found = tokenizer.count_control(prompt_ids)
    return "" if found == wanted else f"{found} control tokens where there should be {wanted}"


def _ids_fault(
    tokenizer: ChatTokenizer, prompt_ids: Sequence[int], messages: Sequence[Message]
) -> str:
    """Cut the stored replies out of the ids; what is left must be what the tokenizer gives."""
    position = 0
    for message in messages:
        spans = [
            (at, at + len(ids))
            for ids in _answer_ids(tokenizer, message)
            if (at := _find(prompt_ids, ids, position)) >= 0
        ]
        if not spans:
            return f"the ids of the reply {message.content[:40]!r} are not in the prompt"
        start, end = spans[0]
        if end > start and not _is_plain(tokenizer, prompt_ids[position:start]):
            return f"the text before the reply {message.content[:40]!r} is tokenised differently"
        position = end if end > start else position
    return "" if _is_plain(tokenizer, prompt_ids[position:]) else "the last message's ids differ"


def _is_plain(tokenizer: ChatTokenizer, token_ids: Sequence[int]) -> bool:
    return tokenizer.encode_template(tokenizer.decode(token_ids)) == tuple(token_ids)


def _answer_ids(tokenizer: ChatTokenizer, message: Message) -> list[tuple[int, ...]]:
    """What a prompt may hold of a reply's ids: all, or all but what a template may have trimmed."""
    if message.role is not Role.ASSISTANT or message.reply is None:
        return [()]
    token_ids = message.reply.token_ids[message.reply.answer_start :]

    def is_edge(token_id: int) -> bool:
        text = tokenizer.decode([token_id])
        return text != text.strip()

    start, end = 0, len(token_ids)
    while start < end and is_edge(token_ids[start]):
        start += 1
    while start < end and is_edge(token_ids[end - 1]):
        end -= 1
    return [token_ids, token_ids[start:end]]


def _find(token_ids: Sequence[int], wanted: tuple[int, ...], start: int) -> int:
    ends = range(start, len(token_ids) - len(wanted) + 1)
    return next((i for i in ends if tuple(token_ids[i : i + len(wanted)]) == wanted), -1)
