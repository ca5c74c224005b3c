"""Time to first token of a continued conversation, compared with the bare mlx-lm model.

    python -m tests.benchmarks.ttft [--model DIR] [--reps 15] [--history 200 4000 16000]

For each history length, two measurements alternate. The engine answers one more message; the time
includes queue, template, tokenising and restoring. Then the bare model feeds the same tokens that
the engine fed, with a cache of its own that already holds the tokens before them. "hot" continues a
live cache, "tree" restores the cache from the radix tree. Prints one JSON line per row: medians in
milliseconds, and the median ratio.
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

from app.cli.client import ThreadedClient, load_model
from engine.cache.trees import evaluate
from engine.config import EngineConfig
from engine.events import (
    Evict,
    EvictWhat,
    RequestFailed,
    RequestFinished,
    StatisticsReported,
    Submit,
)
from engine.models.loader import LoadedModel, load_model as load_bare
from engine.types import (
    ConversationId,
    Message,
    Request,
    RequestId,
    Role,
    SamplingParams,
    Usage,
)
from tests.fakes.tiny_model import Template, build_tiny

QUESTION = "Please write a short story about a small boat, and say it in other words. {}"
FILLER = "The quick brown fox jumps over the lazy dog, and the dog sleeps on. "


@dataclass
class TtftSample:
    """The times of one repetition."""

    bare_ms: float  # forward pass of the bare model
    usage: Usage  # times inside the engine
    wall_ms: float  # from the request until the reply of the engine is finished


class TimedChat:
    """A growing conversation in the engine, and the same tokens in a cache of the bare model."""

    def __init__(self, client: ThreadedClient, bare: LoadedModel, name: str) -> None:
        self.client, self.bare, self.name = client, bare, name
        self.messages: list[Message] = []
        self.caches = bare.adapter.new_caches()
        self.held: tuple[int, ...] = ()  # token ids in `caches`

    def send(self, text: str, *, evict: bool) -> TtftSample:
        if evict:
            self.client.send(Evict(EvictWhat.HOT))
            while not isinstance(self.client.next_event(), StatisticsReported):
                pass
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
        """Return the milliseconds of the bare model for the tokens that the engine fed.

        The tokens that the engine restored are fed first, outside the measured time.
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
    client: ThreadedClient, bare: LoadedModel, history: int, reps: int, *, evict: bool
) -> dict[str, object]:
    samples: list[TtftSample] = []
    chat: TimedChat | None = None
    for rep in range(reps + 1):
        if chat is None or history < 1000:
            # Repetitions would make a short history much longer, so each has a new conversation.
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
        with ThreadedClient(EngineConfig(use_openblas=False, idle_work=False)) as client:
            load_model(client, model, lambda _: None)
            for history in args.history:
                for evict in (False, True):
                    row = measure(client, bare, history, args.reps, evict=evict)
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
