"""Chats with pictures, beside the same chats with text of the same length.

    python -m tests.benchmarks.pictures [--tokens 1200] [--rounds 9]

The model is a small random Qwen3.5 with a vision tower. Prints one JSON line for each figure:

    second    time to the first token of the second question, picture / text, medians and their ratio
    questions tokens fed for 20 questions about one picture: the first, then the most of the others
    beside    tokens per second of another answer while a prompt is read, picture / text
    memory    process memory after 100 pictures, and after 1,000, in MB
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.events import RequestFinished, RequestStarted, Submit, TextDelta
from engine.types import (
    ConversationId,
    ForcedReply,
    Message,
    Picture,
    Request,
    RequestId,
    Role,
    SamplingParams,
)
from tests.fakes.asking import reply_of
from tests.fakes.inline_engine import InlineClient
from tests.fakes.seeing_model import build_seeing, write_picture

SIDE = 32  # pixels of a token
# Large enough that a chunk of text takes longer than a prompt may take between two steps of an answer.
SIZES = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 6}
LONG_ANSWER = ForcedReply(text="A list of numbers: " + "0 1 2 3 4 5 6 7 8 9 " * 4000)


def request_of(
    chat: str,
    messages: Sequence[Message],
    *,
    max_tokens: int = 2,
    forced: ForcedReply | None = None,
) -> Request:
    return Request(
        request_id=RequestId(chat),
        conversation_id=ConversationId(chat),
        messages=tuple(messages),
        new_messages=frozenset({len(messages) - 1}),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=max_tokens,
        forced=forced,
    )


def user(text: str, *pictures: Picture) -> Message:
    return Message(role=Role.USER, content=text, pictures=pictures)


def asked(client: InlineClient, chat: str, messages: Sequence[Message]) -> RequestFinished:
    client.send(Submit(request_of(chat, messages), time.perf_counter()))
    while True:
        event = client.next_event()
        if isinstance(event, RequestFinished):
            return event


def num_fed(finished: RequestFinished) -> int:
    return finished.usage.plan.prompt_tokens - finished.usage.plan.restored


def text_of(client: InlineClient, num_tokens: int) -> str:
    """Return a text whose prompt has about this many tokens."""
    sample = "The quick brown fox jumps over the lazy dog. "
    counted = asked(client, "count", [user(sample * 20)]).usage.plan.prompt_tokens
    return sample * max(1, 20 * num_tokens // counted)


def second_question(client: InlineClient, first: dict[str, Message], rounds: int) -> None:
    times: dict[str, list[float]] = {kind: [] for kind in first}
    fed: dict[str, int] = {}
    for number in range(rounds):
        for kind, message in first.items():
            chat = f"{kind} {number}"
            answer = asked(client, chat, [message])
            question = user(f"And the other one, number {number}?")
            finished = asked(client, chat, [message, reply_of(answer), question])
            times[kind].append(finished.usage.ttft_ms)
            fed[kind] = num_fed(finished)
    medians = {kind: statistics.median(values) for kind, values in times.items()}
    ratio = medians["picture"] / medians["text"]
    print(json.dumps({"second": medians, "fed": fed, "ratio": round(ratio, 3)}), flush=True)


def questions(client: InlineClient, picture: Picture) -> None:
    fed = [
        num_fed(asked(client, f"question {number}", [user(f"Question {number}", picture)]))
        for number in range(20)
    ]
    print(json.dumps({"questions": {"first": fed[0], "most_after": max(fed[1:])}}), flush=True)


def beside(client: InlineClient, first: dict[str, Message], rounds: int) -> None:
    """Measure another answer while a prompt is read."""
    answering = request_of("other", [user("Numbers")], max_tokens=60_000, forced=LONG_ANSWER)
    client.send(Submit(answering, time.perf_counter()))
    rates: dict[str, list[float]] = {kind: [] for kind in first}
    for number in range(rounds):
        for kind, message in first.items():
            # Other text before it, so that nothing is restored.
            system = Message(role=Role.SYSTEM, content=f"{kind} {number}")
            request = request_of("reader", [system, message], max_tokens=1)
            client.send(Submit(request, time.perf_counter()))
            rates[kind].append(_rate_until_read(client))
    client.cancel(RequestId("other"))
    medians = {kind: statistics.median(values) for kind, values in rates.items()}
    ratio = medians["picture"] / medians["text"]
    print(json.dumps({"beside": medians, "ratio": round(ratio, 3)}), flush=True)


def _rate_until_read(client: InlineClient) -> float:
    begun, count = 0.0, 0
    while True:
        match client.next_event():
            case RequestStarted(request_id="reader"):
                begun, count = time.perf_counter(), 0
            case TextDelta(request_id="other"):
                count += 1
            case RequestFinished(request_id="reader"):
                return count / (time.perf_counter() - begun)
            case _:
                pass


def memory(client: InlineClient, folder: Path) -> None:
    process = psutil.Process()
    found: dict[int, float] = {}
    for number in range(1, 1001):
        picture = write_picture(folder, 128, 96, seed=number)
        asked(client, "many", [user("One of many", picture)])
        if number in (100, 1000):
            found[number] = round(process.memory_info().rss / 1e6, 1)
    print(json.dumps({"memory": found}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--tokens", type=int, default=1200)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        config = EngineConfig(
            use_openblas=False,
            idle_work=False,
            cache_budget_bytes=256 << 20,
            picture_folder=root / "pictures",
        )
        client = InlineClient(config)
        load_model(client, build_seeing(root / "model", sizes=SIZES), lambda _: None)
        columns = 40
        size = (columns * SIDE, max(1, args.tokens // columns) * SIDE)
        picture = write_picture(root / "pictures", *size)
        first = {
            "picture": user("What is this?", picture),
            "text": user(text_of(client, args.tokens)),
        }
        second_question(client, first, args.rounds)
        questions(client, write_picture(root / "pictures", *size, seed=3))
        beside(client, first, max(2, args.rounds // 2))
        memory(client, root / "pictures")


if __name__ == "__main__":
    main()
