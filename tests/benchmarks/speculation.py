"""Speed of replies with speculative decoding, divided by the speed without.

    python -m tests.benchmarks.speculation [--model DIR] [--kinds KIND ...] [--prompts 8]
        [--tokens 120] [--temperatures 0 0.7] [--rows 1] [--edited] [--mt-bench FILE]

Prints the duration of a pass by its number of tokens, and then one line per kind of prompt and
temperature:

speed      tokens per second with automatic speculation, divided by the tokens per second without.
           The two runs of each prompt alternate. Both look ahead
median     the median of this ratio over the prompts, which other programs disturb less
pass       tokens per pass
accepted   share of the drafts that the model confirmed
edited     with --edited, the same as `speed` for the prompt with a word added at its end, after the
           reply to the original prompt. The earlier reply gives drafts
others     replies with other tokens than without speculation

--rows N answers N prompts at the same time. --mt-bench FILE adds the two-turn questions of MT-Bench
(question.jsonl of https://github.com/lm-sys/FastChat, Apache-2.0) as the kind "mt-bench". Without --model the model is a tiny random Qwen3.5. For
a real model on Linux set LD_PRELOAD=libopenblas.so.0.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from pathlib import Path
from statistics import median

import mlx.core as mx

from app.cli.client import load_model
from engine.cache.trees import evaluate
from engine.config import EngineConfig
from engine.events import RequestFinished, Submit
from engine.speculation.pace import MAX_PASS_LEN
from engine.types import ConversationId, Message, Request, RequestId, SamplingParams
from tests.benchmarks.speculation_prompts import Prompt, mt_bench, prompts
from tests.fakes.asking import reply_of, user
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template, build_tiny

CONTEXT = 256  # tokens before the passes whose durations are printed
REPEATS = 5


class Bench:
    """An engine with a loaded model."""

    def __init__(self, folder: Path) -> None:
        self.client = InlineClient(EngineConfig(idle_work=False))
        load_model(self.client, folder, lambda _: None)

    def ask(
        self,
        name: str,
        chats: Sequence[Sequence[Message]],
        temperature: float,
        num_tokens: int,
        drafts: int | None,
    ) -> list[RequestFinished]:
        """Answer the last messages of some conversations at the same time.

        A second call with the same name asks the same conversations. `drafts` is
        Request.max_drafts.
        """
        for row, messages in enumerate(chats):
            request = Request(
                request_id=RequestId(f"r{row}"),
                conversation_id=ConversationId(f"{name} {row}"),
                messages=tuple(messages),
                new_messages=frozenset({len(messages) - 1}),
                sampling=SamplingParams(
                    temperature=temperature, top_p=0.95, seed=len(messages[-1].content)
                ),
                max_tokens=num_tokens,
                max_drafts=drafts,
            )
            self.client.send(Submit(request, time.perf_counter()))
        events = self.client.run_until_idle()
        finished = [event for event in events if isinstance(event, RequestFinished)]
        return sorted(finished, key=lambda one: one.request_id)

    def pass_durations(self) -> list[float]:
        """Return the shortest duration in ms of passes of 1, 2, ... tokens."""
        assert self.client.core.model is not None
        adapter = self.client.core.model.adapter
        durations: list[float] = []
        for pass_len in range(1, MAX_PASS_LEN + 1):
            caches = adapter.new_caches()
            evaluate(adapter.forward([7] * CONTEXT, caches))
            taken: list[float] = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                evaluate(adapter.run(mx.array([[7] * pass_len]), caches))
                taken.append(time.perf_counter() - start)
            durations.append(min(taken) * 1e3)
        return durations


@dataclass(slots=True)
class Totals:
    """Sums over the replies of one kind of prompt."""

    seconds: dict[tuple[bool, bool], float]  # by: is speculating, is the edited prompt
    ratios: list[float]  # seconds without speculation, divided by those with it, by batch
    passes: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    others: int = 0  # replies with other tokens than without speculation

    def speed(self, *, is_edited: bool) -> float:
        return self.seconds[False, is_edited] / self.seconds[True, is_edited]

    def add(self, plain: RequestFinished, fast: RequestFinished) -> None:
        self.passes += fast.usage.passes
        self.tokens += fast.usage.output_tokens
        self.drafted += fast.usage.drafted_tokens
        self.accepted += fast.usage.accepted_tokens
        self.others += fast.reply.token_ids != plain.reply.token_ids


def seconds_of(replies: Iterable[RequestFinished]) -> float:
    """Return the decoding time of replies that were written together."""
    rates = [(one.usage.output_tokens - 1, one.usage.decode_tok_s) for one in replies]
    return max((count / rate for count, rate in rates if rate), default=0.0)


def compare(
    bench: Bench,
    prompts: Sequence[Prompt],
    num_rows: int,
    temperature: float,
    num_tokens: int,
    *,
    edits: bool,
) -> Totals:
    """Answer prompts with and without speculation, `num_rows` at the same time.

    If `edits`, also answer each prompt again with a word added to its last turn.
    """
    totals = Totals({(a, b): 0.0 for a in (False, True) for b in (False, True)}, [])
    for number, start in enumerate(range(0, len(prompts), num_rows)):
        batch = prompts[start : start + num_rows]
        runs: dict[bool, list[list[RequestFinished]]] = {}
        for speculates in (False, True) if number % 2 else (True, False):
            name = f"{prompts[0]} {temperature} {number} {speculates}"
            ask = partial(
                bench.ask,
                name,
                temperature=temperature,
                num_tokens=num_tokens,
                drafts=None if speculates else 0,
            )
            chats: list[list[Message]] = [[] for _ in batch]
            runs[speculates] = [answer(ask, chats, turns) for turns in zip(*batch, strict=True)]
            totals.seconds[speculates, False] += sum(map(seconds_of, runs[speculates]))
            if edits:
                edited = [[*chat[:-2], user(f"{chat[-2].content} Please.")] for chat in chats]
                totals.seconds[speculates, True] += seconds_of(ask(edited))
        plain, fast = (sum(map(seconds_of, runs[speculates])) for speculates in (False, True))
        totals.ratios.append(plain / fast)
        for one, other in zip(chain(*runs[False]), chain(*runs[True]), strict=True):
            totals.add(one, other)
    return totals


def answer(
    ask: Callable[[list[list[Message]]], list[RequestFinished]],
    chats: list[list[Message]],
    turns: Sequence[str],
) -> list[RequestFinished]:
    """Add a user's turn to each conversation, and the replies. Return the replies."""
    for chat, text in zip(chats, turns, strict=True):
        chat.append(user(text))
    replies = ask(chats)
    for chat, reply in zip(chats, replies, strict=True):
        chat.append(reply_of(reply))
    return replies


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--kinds", nargs="*", choices=[*prompts(), "mt-bench"])
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=120)
    parser.add_argument("--temperatures", type=float, nargs="*", default=[0.0, 0.7])
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--edited", action="store_true")
    parser.add_argument("--mt-bench", type=Path)
    args = parser.parse_args()
    known: dict[str, list[Prompt]] = {
        kind: [(text,) for text in texts] for kind, texts in prompts().items()
    }
    if args.mt_bench:
        known["mt-bench"] = mt_bench(args.mt_bench)
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or build_tiny("qwen3_5", Path(folder) / "tiny", Template.KEEPING)
        bench = Bench(model)
        durations = bench.pass_durations()
        print("ms a pass:", "  ".join(f"{n + 1}: {ms:.1f}" for n, ms in enumerate(durations)))
        kinds: list[str] = args.kinds or list(known)
        temperatures: list[float] = args.temperatures
        for kind, temperature in product(kinds, temperatures):
            chosen = known[kind][: args.prompts]
            totals = compare(bench, chosen, args.rows, temperature, args.tokens, edits=args.edited)
            edited = f"  edited {totals.speed(is_edited=True):5.2f}" if args.edited else ""
            print(
                f"{kind:24} T {temperature:3}  {len(chosen):3} prompts"
                f"  speed {totals.speed(is_edited=False):5.2f}"
                f"  median {median(totals.ratios):5.2f}"
                f"  pass {totals.tokens / totals.passes:5.2f}"
                f"  accepted {totals.accepted / max(1, totals.drafted):5.2f}"
                f"{edited}  others {totals.others}",
                flush=True,
            )


if __name__ == "__main__":
    main()
