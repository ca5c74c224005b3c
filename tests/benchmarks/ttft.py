"""Time to first token of a continued conversation, compared with the bare mlx-lm model.

    python -m tests.benchmarks.ttft [--model DIR] [--reps 15] [--history 200 4000 16000]

For each history length, two measurements alternate. First the engine answers one more message. The
time includes queue, template, tokenising and restoring. Then the bare model reads the tokens that
the engine has fed. All earlier tokens are already in the bare model's own cache. Each row is one
JSON line with medians in milliseconds and the median ratio. In rows "hot" the engine continues a
live cache; in rows "tree" it restores the cache from the radix tree.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import mlx.core as mx

from app.cli.client import QueuedEngine, load_model
from engine.cache.trees import evaluate
from engine.config import EngineConfig
from engine.events import RequestFailed, RequestFinished, Submit
from engine.models.loader import LoadedModel, load_model as load_bare
from engine.questions import EvictWhat
from engine.types import ConversationId, Message, Request, RequestId, Role, SamplingParams
from engine.usage import Usage
from tests.fakes.tiny_model import Template, build_tiny

QUESTION = "Please write a short story about a small boat, and say it in other words. {}"
FILLER = "The quick brown fox jumps over the lazy dog, and the dog sleeps on. "


@dataclass
class TtftSample:
    """The times of one repetition."""

    bare_ms: float  # milliseconds of a forward pass of the bare model
    usage: Usage  # times inside the engine
    wall_ms: float  # milliseconds from the request until the engine has finished the reply


class TimedChat:
    """A conversation in the engine, and a cache of the bare model with the same tokens."""

    def __init__(self, client: QueuedEngine, bare: LoadedModel, name: str) -> None:
        self.client, self.bare, self.name = client, bare, name
        self.messages: list[Message] = []
        self.caches = bare.adapter.new_caches()
        self.held: tuple[int, ...] = ()  # token ids in `caches`

    def send(self, text: str, *, evict: bool) -> TtftSample:
        if evict:
            self.client.answer(self.client.evict(EvictWhat.HOT))
        self.messages.append(Message(role=Role.USER, content=text))
        request = Request(
            request_id=RequestId("r"),
            conversation_id=ConversationId(self.name),
            messages=tuple(self.messages),
            new_messages=frozenset({len(self.messages) - 1}),
            sampling=SamplingParams(temperature=0.0, top_p=1.0),
            max_tokens=2,
        )
        start = time.perf_counter()
        self.client.send(Submit(request, start))
        finished = self._wait()
        wall_ms = (time.perf_counter() - start) * 1e3
        self.messages.append(
            Message(
                role=Role.ASSISTANT,
                content=finished.content,
                reasoning=finished.reasoning,
                reply=finished.reply,
            )
        )
        return TtftSample(self._feed_bare(finished), finished.usage, wall_ms)

    def _wait(self) -> RequestFinished:
        while True:
            event = self.client.next_event()
            if isinstance(event, RequestFinished):
                return event
            assert not isinstance(event, RequestFailed), event

    def _feed_bare(self, finished: RequestFinished) -> float:
        """Feed the bare model the tokens that the engine has fed. Return the milliseconds.

        If the engine restored tokens that the bare model lacks, feed them before the measurement.
        """
        restored = finished.usage.plan.restored
        assert finished.prompt_ids[: len(self.held)] == self.held
        known = finished.prompt_ids[len(self.held) : restored]
        if known:
            evaluate(self.bare.adapter.forward(known, self.caches))
        fed = finished.prompt_ids[max(restored, len(self.held)) :]
        start = time.perf_counter()
        mx.argmax(self.bare.adapter.forward(fed, self.caches)).item()
        bare_ms = (time.perf_counter() - start) * 1e3
        self.held = finished.prompt_ids
        return bare_ms


def measure(
    client: QueuedEngine, bare: LoadedModel, history: int, reps: int, *, evict: bool
) -> dict[str, object]:
    samples: list[TtftSample] = []
    chat: TimedChat | None = None
    for rep in range(reps + 1):
        if chat is None or history < 1000:
            # A repetition makes a short history much longer, so each repetition gets a new
            # conversation.
            chat = TimedChat(client, bare, f"{history} {evict} {rep}")
            grow(chat, history)
        sample = chat.send(QUESTION.format(rep), evict=evict)
        if rep:
            samples.append(sample)
    ours = statistics.median(s.usage.ttft_ms for s in samples)
    theirs = statistics.median(s.bare_ms for s in samples)
    parts = {
        name: round(statistics.median(getattr(s.usage, name) for s in samples), 2)
        for name in ("queue_ms", "render_ms", "restore_ms", "prefill_ms")
    }
    plan = samples[-1].usage.plan
    return {
        "history": history,
        "from": "tree" if evict else "hot",
        "ttft_ms": round(ours, 2),
        "bare_ms": round(theirs, 2),
        "ratio": round(statistics.median(s.usage.ttft_ms / s.bare_ms for s in samples), 3),
        "fed": plan.prompt_tokens - plan.restored,
        **parts,
    }


def grow(chat: TimedChat, history: int) -> None:
    """Send messages until the conversation holds about `history` tokens."""
    per_message = 25 if history < 1000 else 500
    text = FILLER * max(1, per_message // 25)
    while len(chat.held) < history - per_message:
        chat.send(f"{chat.name} {len(chat.held)} {text}", evict=False)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--reps", type=int, default=15)
    parser.add_argument("--history", type=int, nargs="*", default=[200, 4000, 16000])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or build_tiny("qwen3_5", Path(folder) / "qwen3_5", Template.KEEPING)
        bare = load_bare(model, lambda _done, _total: None)
        with QueuedEngine(EngineConfig(use_openblas=False, idle_work=False)) as client:
            load_model(client, model, lambda _: None)
            for history in args.history:
                for evict in (False, True):
                    row = measure(client, bare, history, args.reps, evict=evict)
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
