"""Previews of random edits: `python -m tests.benchmarks.previews [--model DIR] [--edits N]`.

Each edit of a chat is previewed, at times while the answer of another chat is written or begins, at times
replaced by another text, and then sent. Counted are: evictions by previews, requests that did not begin
within the step after a preview was interrupted, and answers that do not begin with their preview. The time
for a token of another answer is measured with and without a preview that waits for its end.
Without a model, four tiny models are asked.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles

from engine.commands import Asked
from engine.config import EngineConfig
from engine.events import (
    Answered,
    Event,
    LoadModel,
    PreviewProgress,
    PreviewStage,
    RequestFinished,
    RequestStarted,
    Submit,
    TextDelta,
)
from engine.questions import Preview
from engine.types import ConversationId, Message, Request, RequestId, Role, SamplingParams
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template, build_tiny

_TINY = (
    ("qwen3_5", Template.THINKING),
    ("lfm2", Template.KEEPING),
    ("llama", Template.KEEPING),
    ("gemma3", Template.KEEPING),
)
_WORDS = [
    "a",
    "boat",
    "is",
    "small",
    "and",
    "the",
    "sea",
    "goes",
    "up",
    "to",
    "its",
    "sail",
    "while",
    "people",
    "look",
    "at",
    "it",
]
_OTHER = ConversationId("other")
_MAX_TOKENS = 160


@dataclass
class _Result:
    """The counters of all edits of one model."""

    previews: int = 0
    sent_early: int = 0  # answers that began with a preview that was not complete
    evictions: int = 0  # evictions while previews were made
    late: int = 0  # requests that began later than one step after an interrupted preview
    interrupted: int = 0
    wrong: int = 0  # answers that do not begin with their preview
    read: list[int] = field(default_factory=list[int])  # tokens read by answers, with the preview
    again: list[int] = field(default_factory=list[int])  # tokens of their previews
    alone_ms: list[float] = field(default_factory=list[float])
    beside_ms: list[float] = field(default_factory=list[float])


class _Play:
    """Random edits of one chat, beside the answers of another."""

    def __init__(self, model: Path, seed: int) -> None:
        config = EngineConfig(use_openblas=False, cache_budget_bytes=1 << 28, saves_battery=False)
        self._client = InlineClient(config)
        self._client.send(LoadModel(str(model)))
        self._client.run_until_idle()
        self._random = random.Random(seed)
        self._messages: list[Message] = []
        self._num = 0
        self._events: list[Event] = []  # events of the newest preview
        self.result = _Result()

    def edit(self) -> None:
        """Preview one or more texts of an edited message. Then send the last one."""
        chat, result = self._random, self.result
        num_left = chat.choice((1, 1, 2, 3))
        while True:
            request = self._request(self._messages, ConversationId("edited"), _MAX_TOKENS)
            before = self._evictions()
            self._client.new_events()
            self._events.clear()
            asked = self._client.make_preview(request)
            self._run(chat.randrange(40))
            result.evictions += self._evictions() - before
            result.previews += 1
            if chat.random() < 0.3:
                self._interrupt()
            num_left -= 1
            if not num_left:
                break
        preview = self._newest(asked, is_complete=chat.random() < 0.6)
        self._client.withdraw(asked)
        self._send(request, preview)

    def measure_others(self) -> None:
        """Time the tokens of an answer with and without a preview that waits for it."""
        arms = [(self.result.alone_ms, False), (self.result.beside_ms, True)]
        self._random.shuffle(arms)
        for times, waits in arms:
            request = self._request([], _OTHER, 60)
            self._client.send(Submit(request, time.perf_counter()))
            if waits:
                edited = self._request(self._messages, ConversationId("edited"), _MAX_TOKENS)
                self._client.make_preview(edited)
            last = 0.0
            while True:
                now, event = self._client.next_timed()
                if isinstance(event, RequestFinished):
                    break
                if isinstance(event, TextDelta):
                    if last:
                        times.append((now - last) * 1e3)
                    last = now
            self._client.run_until_idle()

    def _interrupt(self) -> None:
        """Send a message in another chat. Count it if it does not begin in the next step."""
        self._events += self._client.new_events()
        request = self._request([], _OTHER, 4)
        self._client.send(Submit(request, time.perf_counter()))
        self._client.step()
        events = self._client.new_events()
        self._events += events
        self.result.interrupted += 1
        self.result.late += not any(isinstance(one, RequestStarted) for one in events)
        self._run(self._random.randrange(30))

    def _newest(self, asked: Asked[Preview], *, is_complete: bool) -> Preview:
        """Run the preview for some steps, or to its end. Return its newest text."""
        newest = Preview()
        before = self._evictions()
        while True:
            self._events += self._client.new_events()
            for event in self._events:
                match event:
                    case PreviewProgress(stage=PreviewStage.WRITING, preview=preview):
                        newest = preview
                    case Answered(question_id, Preview() as preview):
                        newest = preview if question_id == asked.question_id else newest
                    case _:
                        pass
            self._events.clear()
            has_some = newest.reply is not None and newest.reply.num_tokens > 5
            if (has_some and not is_complete) or not self._client.step():
                break
        self.result.evictions += self._evictions() - before
        self.result.sent_early += not is_complete
        return newest

    def _send(self, request: Request, preview: Preview) -> None:
        if preview.reply is None:
            self.result.wrong += 1
            return
        begun = Message(
            role=Role.ASSISTANT,
            content=preview.content,
            reasoning=preview.reasoning,
            reply=preview.reply,
        )
        num_messages = len(request.messages)
        sent = replace(
            request,
            messages=(*request.messages, begun),
            new_messages=frozenset({num_messages - 1, num_messages}),
            max_tokens=request.max_tokens - preview.reply.num_tokens,
        )
        self._client.send(Submit(sent, time.perf_counter()))
        finished = _finished(self._client.run_until_idle())
        num_tokens = preview.reply.num_tokens
        begins = finished.reply.token_ids[:num_tokens] == preview.reply.token_ids
        begins &= finished.content.startswith(preview.content)
        self.result.wrong += not begins
        self.result.read.append(finished.usage.plan.read + finished.usage.plan.replayed)
        self.result.again.append(num_tokens)
        answer = Message(
            role=Role.ASSISTANT,
            content=finished.content,
            reasoning=finished.reasoning,
            reply=finished.reply,
        )
        self._messages = [*request.messages, answer]
        if len(self._messages) > 6:
            self._messages = self._messages[: self._random.choice((0, 2, 4))]

    def _request(
        self, messages: list[Message], conversation_id: ConversationId, max_tokens: int
    ) -> Request:
        self._num += 1
        text = " ".join(self._random.choices(_WORDS, k=self._random.randrange(3, 60)))
        return Request(
            request_id=RequestId(str(self._num)),
            conversation_id=conversation_id,
            messages=(*messages, Message(role=Role.USER, content=text)),
            new_messages=frozenset({len(messages)}),
            sampling=SamplingParams(temperature=0.9, seed=self._num),
            max_tokens=max_tokens,
        )

    def _run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            if not self._client.step():
                return

    def _evictions(self) -> int:
        assert self._client.core.cache is not None
        return self._client.core.cache.holdings.counters.evictions


def _finished(events: list[Event]) -> RequestFinished:
    return next(event for event in reversed(events) if isinstance(event, RequestFinished))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--edits", type=int, default=200, help="number of edits, over all models")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = [options.model] if options.model else _build_tinies(Path(folder))
        for model in models:
            play = _Play(model, options.seed)
            for _ in range(options.edits // len(models)):
                play.edit()
                play.measure_others()
            _print(model.name, play.result)


def _print(name: str, result: _Result) -> None:
    # Other programs make a token slower, never faster.
    alone, beside = (quantiles(ms, n=10)[0] for ms in (result.alone_ms, result.beside_ms))
    print(
        f"{name}: {len(result.read)} edits sent, {result.previews} previews"
        f" ({result.sent_early} sent before their end): {result.evictions} evictions,"
        f" {result.late} of {result.interrupted} requests later than one step,"
        f" {result.wrong} answers that do not begin with their preview;"
        f" {median(result.read):.0f} tokens read to send, {median(result.again):.0f} of them of the"
        f" preview; a token of another answer takes {beside / alone:.3f} of {alone:.2f} ms",
        flush=True,
    )


def _build_tinies(folder: Path) -> list[Path]:
    return [build_tiny(name, folder / f"{name}-{template}", template) for name, template in _TINY]


if __name__ == "__main__":
    main()
