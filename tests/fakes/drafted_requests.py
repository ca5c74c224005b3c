"""Requests whose replies are compared with and without drafts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from engine.events import RequestFinished, Submit
from engine.types import MAX_DRAFTS, ConversationId, Request, RequestId, SamplingParams
from tests.fakes.asking import user
from tests.fakes.inline_engine import InlineClient

SAMPLINGS = (
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.3, seed=5, top_k=40),
    SamplingParams(
        temperature=0.7,
        seed=6,
        top_p=0.9,
        min_p=0.01,
        repetition_penalty=1.1,
        presence_penalty=0.2,
        xtc_probability=0.3,
    ),
)


def request_of(number: int, *, max_tokens: int = 28) -> Request:
    return Request(
        request_id=RequestId(f"r{number}"),
        conversation_id=ConversationId(f"{number}"),
        messages=(user(f"{number} " + "A list of boats. " * (1 + number)),),
        new_messages=frozenset({0}),
        sampling=SAMPLINGS[number % len(SAMPLINGS)],
        max_tokens=max_tokens,
        max_drafts=MAX_DRAFTS,
        record_logits=True,
    )


def answer(client: InlineClient, requests: Iterable[Request]) -> dict[str, RequestFinished]:
    for request in requests:
        client.send(Submit(request, time.perf_counter()))
    events = client.run_until_idle()
    return {e.request_id: e for e in events if isinstance(e, RequestFinished)}


def ids_of(finished: Mapping[str, RequestFinished]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(one.reply.token_ids) for name, one in finished.items()}
