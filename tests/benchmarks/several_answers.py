"""Several answers to one message: tokens fed, speed of decoding, and memory after one is kept.

    python -m tests.benchmarks.several_answers [--model DIR] [--reps 7]

fed      prompt tokens that the engine feeds for four answers to a new message, and for one
decode   tokens per second of four answers of one chat, divided by those of four chats that are answered
         at once. All prompts have been read before. The two are measured in turns. At least 0.95
memory   bytes of the cache after one of four answers is kept and the others are removed, and of an engine
         that wrote only this answer, which is at least as many. After the chat is forgotten, no byte is left

Prints one JSON line per figure. Without --model the model is a tiny random Qwen3.5.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.events import RequestFinished, Submit
from engine.types import (
    ConversationId,
    ForcedReply,
    Request,
    RequestId,
    SamplingParams,
    answer_id,
)
from tests.fakes.asking import cache_of, user
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template, build_tiny

NUM_ANSWERS = 4
CHAT = ConversationId("chat")
ANSWERS = [answer_id(CHAT, number) for number in range(1, NUM_ANSWERS + 1)]
CHATS = [ConversationId(f"chat {number}") for number in range(NUM_ANSWERS)]
PROMPT = "The harbour has nineteen boats, and each of them has a name and a colour. " * 30
REPLY = "One is red, one is blue, and one is as old as the harbour itself. " * 12


def requests_of(chats: Sequence[ConversationId], text: str, *, follow: bool) -> list[Request]:
    """Return a request for each chat. With follow=True, the others follow the first one."""
    return [
        Request(
            request_id=RequestId(f"{chat} {time.perf_counter_ns()}"),
            conversation_id=chat,
            messages=(user(text if follow else f"{chat}: {text}"),),
            new_messages=frozenset({0}),
            sampling=SamplingParams(temperature=0.8, seed=seed),
            max_tokens=4096,
            forced=ForcedReply(text=REPLY),
        )
        for seed, chat in enumerate(chats)
    ]


def run(
    client: InlineClient, requests: Sequence[Request], *, follow: bool
) -> list[RequestFinished]:
    """Submit requests together and return their ends, in the order of the requests."""
    first = requests[0]
    for request in requests:
        follows = first.request_id if follow and request is not first else None
        request = replace(request, follows=follows, shares_prompt=follow)
        client.send(Submit(request, time.perf_counter()))
    while client.core.step(wait=False):
        pass
    events = client.new_events()
    ended = {one.request_id: one for one in events if isinstance(one, RequestFinished)}
    return [ended[request.request_id] for request in requests]


def num_fed(answers: Sequence[RequestFinished]) -> int:
    return sum(one.usage.plan.read + one.usage.plan.replayed for one in answers)


def rate(client: InlineClient, chats: Sequence[ConversationId], *, follow: bool) -> float:
    """Return the tokens per second of answers whose prompts have been read."""
    requests = requests_of(chats, PROMPT, follow=follow)
    start = time.perf_counter()
    answers = run(client, requests, follow=follow)
    seconds = time.perf_counter() - start
    assert num_fed(answers) == 0
    return sum(one.usage.output_tokens for one in answers) / seconds


def measure_decoding(client: InlineClient, reps: int) -> dict[str, float]:
    for chats, follow in ((ANSWERS, True), (CHATS, False)):
        run(client, requests_of(chats, PROMPT, follow=follow), follow=follow)
    pairs = [
        (rate(client, ANSWERS, follow=True), rate(client, CHATS, follow=False)) for _ in range(reps)
    ]
    return {
        "of_one_chat": round(median(one for one, _ in pairs), 1),
        "of_four_chats": round(median(four for _, four in pairs), 1),
        "ratio": round(median(one / four for one, four in pairs), 3),
    }


def measure_memory(client: InlineClient, alone: InlineClient, number: int) -> dict[str, int]:
    """Keep the answer with a number, from 1, and return the bytes of both caches."""
    requests = requests_of(ANSWERS, PROMPT, follow=True)
    run(client, requests, follow=True)
    kept = requests[number - 1]
    run(alone, [replace(kept, request_id=RequestId(f"alone {number}"))], follow=False)
    for other in ANSWERS:
        if other != kept.conversation_id:
            client.answer(client.forget(other))
    cache_of(client).check_invariants()
    both = (
        cache_of(client).holdings.ledger().total_bytes,
        cache_of(alone).holdings.ledger().total_bytes,
    )
    for one in (client, alone):
        one.answer(one.forget(kept.conversation_id))
    left = cache_of(client).holdings.ledger().total_bytes
    return {"kept": number, "bytes": both[0], "bytes_alone": both[1], "left": left}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure several answers to one message.")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--reps", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or build_tiny("qwen3_5", Path(folder), Template.KEEPING)

        def opened() -> InlineClient:
            client = InlineClient(EngineConfig(use_openblas=False, idle_work=False))
            load_model(client, model, lambda _: None)
            return client

        several = num_fed(run(opened(), requests_of(ANSWERS, PROMPT, follow=True), follow=True))
        one = num_fed(run(opened(), requests_of(ANSWERS[:1], PROMPT, follow=True), follow=True))
        print(json.dumps({"row": "fed", "four_answers": several, "one_answer": one}), flush=True)
        decoding = measure_decoding(opened(), options.reps)
        print(json.dumps({"row": "decode", **decoding}), flush=True)
        for number in (1, 3):
            memory = measure_memory(opened(), opened(), number)
            print(json.dumps({"row": "memory", **memory}), flush=True)


if __name__ == "__main__":
    main()
