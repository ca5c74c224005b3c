"""Answers of a random model in 200 schemas, and the time that a schema adds to a decode step.

    python -m tests.benchmarks.json_schemas FOLDER [--count 200] [--tokens 1000] [--seed 0]
    python -m tests.benchmarks.json_schemas --model DIR [--pairs 5]

FOLDER has JSON schemas, one in each file, for example data/Github_easy of guidance-ai/jsonschemabench.
`--count` of them are chosen at random and bounded: texts get a greatest length, lists a greatest number
of items, and objects no other properties than the named ones. So a model of random weights, which draws
almost any allowed token at temperature 1, comes to an end. Each finished answer is compared with the
schema as it was, by the package jsonschema. Prints one JSON line: `valid`, `invalid` (names, must be
none), `unfinished` (at the limit of tokens) and `refused` (by their reasons).

With --model, prints the time of a decode step within a schema as a ratio to that of a free answer,
the median of pairs. For a real model on Linux set LD_PRELOAD=libopenblas.so.0.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from jsonschema import ValidationError
from jsonschema.validators import validator_for

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.engine import prepare_libraries
from engine.events import RequestFailed, RequestFinished, Submit
from engine.types import (
    AnswerFormat,
    ConversationId,
    FinishReason,
    Message,
    Request,
    RequestId,
    Role,
    SamplingParams,
)
from tests.fakes.inline_engine import InlineClient
from tests.fakes.qwen import Qwen, build_qwen

_TEXT_LEN = 16
_NUM_ITEMS = 3
_AT_ONCE = 8  # requests that run at the same time
_FREE_TEXT = ("enum", "const", "pattern", "format", "maxLength")
_STEP_TOKENS = 200


def bounded(schema: object) -> object:
    """Return a schema whose values are values of the given one, and of limited length."""
    if isinstance(schema, list):
        return [bounded(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    result = {key: bounded(value) for key, value in cast("dict[str, object]", schema).items()}
    kind = result.get("type")
    if kind == "string" and not any(key in result for key in _FREE_TEXT):
        result["maxLength"] = max(_TEXT_LEN, cast("int", result.get("minLength", 0)))
    if kind == "array" and "maxItems" not in result:
        result["maxItems"] = max(_NUM_ITEMS, cast("int", result.get("minItems", 0)))
    if kind == "object" and "properties" in result:
        result.setdefault("additionalProperties", False)
    return result


def answer_schemas(folder: Path, count: int, num_tokens: int, seed: int) -> dict[str, Any]:
    """Let a random model answer in schemas of a folder. Return the counts."""
    files = sorted(folder.rglob("*.json"))
    chosen = random.Random(seed).sample(files, min(count, len(files)))
    schemas: dict[str, dict[str, Any]] = {
        file.stem: json.loads(file.read_text(encoding="utf-8")) for file in chosen
    }
    events = _answers(schemas, num_tokens)
    refused = Counter[str]()
    valid, unfinished, invalid = 0, 0, list[str]()
    for name, event in events.items():
        if isinstance(event, RequestFailed):
            refused[event.problem.cause[:80]] += 1
        elif event.reason is not FinishReason.STOP:
            unfinished += 1
        elif _is_valid(event.content, schemas[name]):
            valid += 1
        else:
            invalid.append(name)
    return {
        "schemas": len(schemas),
        "valid": valid,
        "invalid": invalid,
        "unfinished": unfinished,
        "refused": dict(refused.most_common()),
    }


def _is_valid(text: str, schema: Mapping[str, Any]) -> bool:
    try:
        validator_for(schema)(schema).validate(json.loads(text))
    except (ValidationError, ValueError) as error:
        print(error, file=sys.stderr)
        return False
    return True


def _answers(
    schemas: Mapping[str, Mapping[str, Any]], num_tokens: int
) -> dict[str, RequestFinished | RequestFailed]:
    with tempfile.TemporaryDirectory() as temporary:
        model = build_qwen(Qwen.QWEN3, Path(temporary) / "model", num_tokens=8_000)
        client = InlineClient(EngineConfig(max_running=_AT_ONCE, saves_battery=False))
        load_model(client, model, lambda _: None)
        for number, (name, schema) in enumerate(schemas.items()):
            wanted = AnswerFormat(schema=json.dumps(bounded(schema)))
            request = _request(name, wanted, num_tokens, seed=number)
            client.send(Submit(request, time.perf_counter()))
        return dict(_ends(client, len(schemas)))


def _ends(
    client: InlineClient, num_requests: int
) -> Iterator[tuple[str, RequestFinished | RequestFailed]]:
    """Yield the last event of each request."""
    for _ in range(num_requests):
        while not isinstance(event := client.next_event(), (RequestFinished, RequestFailed)):
            pass
        yield event.request_id, event


def _request(
    name: str, wanted: AnswerFormat | None, num_tokens: int, *, seed: int, temperature: float = 1.0
) -> Request:
    return Request(
        request_id=RequestId(name),
        conversation_id=ConversationId(name),
        messages=(Message(role=Role.USER, content=f"Write JSON of the schema {name}."),),
        new_messages=frozenset({0}),
        sampling=SamplingParams(temperature=temperature, top_p=1.0, seed=seed),
        max_tokens=num_tokens,
        thinking=False,
        answer_format=wanted,
    )


def time_steps(model: Path, num_pairs: int) -> dict[str, Any]:
    """Return the time of a decode step within a schema as a ratio to one of a free answer."""
    # A list that is longer than the answer, so that both answers have the same number of tokens.
    person = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    people = {"type": "array", "items": person, "minItems": _STEP_TOKENS}
    wanted = AnswerFormat(schema=json.dumps(people))
    client = InlineClient(EngineConfig(saves_battery=False))
    load_model(client, model, lambda _: None)
    times: dict[bool, list[float]] = {True: [], False: []}
    for number in range(num_pairs + 1):
        for is_formatted in (True, False):
            name = f"{number} {is_formatted}"
            request = _request(name, wanted if is_formatted else None, _STEP_TOKENS, seed=number)
            client.send(Submit(replace(request, max_drafts=0), time.perf_counter()))
            ((_, event),) = _ends(client, 1)
            assert isinstance(event, RequestFinished), event
            usage = event.usage
            if number and usage.output_tokens > 1:  # the first pair warms up
                step_ms = (usage.total_ms - usage.ttft_ms) / (usage.output_tokens - 1)
                times[is_formatted].append(step_ms)
    ratios = [a / b for a, b in zip(times[True], times[False], strict=True)]
    return {
        "model": model.name,
        "step_ms": round(statistics.median(times[False]), 2),
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    prepare_libraries(EngineConfig())
    if options.folder:
        result = answer_schemas(options.folder, options.count, options.tokens, options.seed)
        print(json.dumps(result))
    if options.model:
        print(json.dumps(time_steps(options.model, options.pairs)))


if __name__ == "__main__":
    main()
