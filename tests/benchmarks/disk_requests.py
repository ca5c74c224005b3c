"""Requests of a model whose state is kept on disk: `python -m tests.benchmarks.disk_requests --model DIR [FIGURE ...]`.

    --model DIR   a real model, for example SmolLM2
    FIGURE        on_off    decode and prefill rates with the disk tier / without it, in turn
                  slow      time to first token after a restart, for disks of several speeds: as
                            planned / the better one of reading the disk and feeding all tokens
                  restart   time to first token of the next turn after a restart / on an empty
                            cache, with a history of 4,000 tokens; the same hot; seconds of closing
                  written   bytes written / bytes of the K/V and snapshots that are kept, over
                            50 chats of 20 turns of a tiny model with wide layers
                  long_chat gigabytes that Qwen3.5-9B would write in a chat of 40 turns of 300 tokens:
                            without a pause, and with a pause after each turn

One line of JSON for each figure.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from app.cli.client import load_model
from engine.cache.disk import reader
from engine.cache.disk.rates import Rates
from engine.cache.disk.record import Record, RecordKind, read_header
from engine.cache.disk.tier import DiskTier
from engine.config import EngineConfig
from engine.events import RequestFinished, Shutdown, Submit
from engine.questions import Evict, EvictWhat
from engine.types import ConversationId, Message, Request, RequestId, SamplingParams
from engine.usage import Usage
from tests.fakes.asking import cache_of, reply_of, user
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import CONFIGS, Template, build_tiny

TEXT = "The boat left the harbour in the morning, and the wind was from the west. "
READS = 12  # repetitions of TEXT in the prompt of `on_off`
HISTORY = 12  # repetitions of TEXT in the history of `slow`
LONG_HISTORY = 230  # repetitions of TEXT in the history of `restart`: 4,000 tokens
REQUESTS = 3  # of each kind
MEGABYTES_S = (1, 2, 4, 16)  # speeds of the disks of `slow`
CHATS, TURNS = 50, 20
LONG_TURNS, LONG_REPLY = 40, 150
# Bytes of a snapshot and of one token's K/V of Qwen3.5-9B: 24 recurrent layers of 32 heads of 128 x
# 128 float32 and their convolutions, 8 attention layers of 4 heads of 256 in 16 bits.
LARGE_STATE, LARGE_KV = 24 * (32 * 128 * 128 * 4 + 3 * 8192 * 2), 8 * 2 * 4 * 256 * 2


def opened(model: Path, **options: object) -> InlineClient:
    config = EngineConfig(idle_work=False, saves_battery=False, disk_rest_s=0.0)
    config = replace(config, **options)
    client = InlineClient(config)
    load_model(client, model, lambda _: None)
    return client


def closed(client: InlineClient) -> None:
    client.send(Shutdown())
    client.core.run()


def answered(
    client: InlineClient, chat: str, messages: Sequence[Message], max_tokens: int
) -> RequestFinished:
    request = Request(
        request_id=RequestId("r"),
        conversation_id=ConversationId(chat),
        messages=tuple(messages),
        new_messages=frozenset({len(messages) - 1}),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=max_tokens,
    )
    client.send(Submit(request, time.perf_counter()))
    while True:
        client.core.step(wait=False)
        for event in client.new_events():
            if isinstance(event, RequestFinished):
                return event


def compare_on_and_off(model: Path, folder: Path, pairs: int) -> dict[str, object]:
    """Ask new chats in turn, with the tier and without it. The state of one answer is still being
    written while the next one begins."""
    clients = {"on": opened(model, disk_folder=folder), "off": opened(model)}
    ratios: dict[str, list[float]] = {"decode": [], "prefill": []}
    for number in range(pairs + 1):
        rates: dict[str, Usage] = {}
        for name in sorted(clients, reverse=number % 2 == 1):
            question = user(f"{number}: {TEXT * READS} Tell me more.")
            # An answer before the measured one leaves state to write.
            answered(clients[name], f"{number}", [question], 4)
            for _ in range(3):
                clients[name].core.step(wait=False)
            rates[name] = answered(
                clients[name], f"x{number}", [user(f"x{question.content}")], 48
            ).usage
        if number:  # the first pair warms up
            ratios["decode"].append(rates["on"].decode_tok_s / rates["off"].decode_tok_s)
            ratios["prefill"].append(_prefill(rates["on"]) / _prefill(rates["off"]))
    written = clients["on"].core.disk.statistics().written_bytes if clients["on"].core.disk else 0
    for client in clients.values():
        closed(client)
    return {
        **{name: round(statistics.median(values), 3) for name, values in ratios.items()},
        "pairs": pairs,
        "written_megabytes": round(written / 1e6),
    }


def _prefill(usage: Usage) -> float:
    return usage.plan.read / (usage.ttft_ms - usage.restore_ms)


def compare_slow_disks(model: Path, folder: Path) -> dict[str, object]:
    """Restart on disks of several speeds, and compare the plan with both choices."""
    messages = [user(TEXT * HISTORY)]
    client = opened(model, disk_folder=folder)
    messages += [reply_of(answered(client, "A", messages, 8)), user("And then?")]
    closed(client)
    ratios: dict[str, float] = {}
    for megabytes_s in MEGABYTES_S:
        client = opened(model, disk_folder=folder)
        tier = client.core.disk
        assert tier is not None

        with _disk_of(megabytes_s * 1e6):
            ask = partial(_first_token_ms, client, tier, messages)
            disk, feeding = Rates(token_s=1.0), Rates(byte_s=1.0)
            for rates in (disk, feeding) * REQUESTS:
                ask(rates)  # learns the rate
            learned = Rates(byte_s=disk.byte_s, token_s=feeding.token_s)
            # In turn, because the speed of the machine changes.
            times = [(ask(disk), ask(feeding), ask(learned)) for _ in range(REQUESTS)]
        from_disk, fed, planned = (statistics.median(column) for column in zip(*times, strict=True))
        ratios[f"{megabytes_s} MB/s"] = round(planned / min(from_disk, fed), 3)
        closed(client)
    return {"planned / better": ratios}


def _first_token_ms(
    client: InlineClient, tier: DiskTier, messages: Sequence[Message], rates: Rates
) -> float:
    """Return the time to first token after a restart, planned with the given rates."""
    client.ask(Evict(EvictWhat.ALL))
    client.run_until_idle()
    tier.rates = rates
    return answered(client, "A", messages, 1).usage.ttft_ms


@contextmanager
def _disk_of(bytes_s: float) -> Generator[None]:
    """Slow the reading of records down."""
    read: Callable[[Path, str], Record] = reader.read_record
    pause, lock = threading.Event(), threading.Lock()

    def slowed(path: Path, namespace: str) -> Record:
        with lock:
            pause.wait(path.stat().st_size / bytes_s)
        return read(path, namespace)

    reader.read_record = slowed
    try:
        yield
    finally:
        reader.read_record = read


def compare_restart(model: Path, folder: Path) -> dict[str, object]:
    """Ask the next turn of a long chat on an empty cache, in its live cache, and after a restart."""
    long = user(TEXT * LONG_HISTORY)
    client = opened(model, disk_folder=folder)
    messages = [long, reply_of(answered(client, "A", [long], 8))]
    start = time.perf_counter()
    closed(client)
    closing_s = time.perf_counter() - start
    times: dict[str, list[float]] = {"cold": [], "hot": [], "disk": []}
    ratios: list[float] = []
    restored = 0
    for number in range(REQUESTS):
        question = [*messages, user(f"And then, {number}?")]
        client = opened(model)
        cold = answered(client, "A", question, 8)
        hot = answered(client, "A", [*question, reply_of(cold), user("And then?")], 1)
        closed(client)
        client = opened(model, disk_folder=folder)
        disk = answered(client, "A", question, 1)
        closed(client)
        restored = disk.usage.plan.restored_disk
        for name, finished in (("cold", cold), ("hot", hot), ("disk", disk)):
            times[name].append(finished.usage.ttft_ms)
        ratios.append(disk.usage.ttft_ms / cold.usage.ttft_ms)
    return {
        "ratio": round(statistics.median(ratios), 4),
        "restored_disk": restored,
        **{f"{name}_ms": round(statistics.median(values), 1) for name, values in times.items()},
        "closing_s": round(closing_s, 2),
    }


def count_written(folder: Path) -> dict[str, object]:
    """Play many chats, and compare what was written with what the cache holds at the end."""
    wide = copy.deepcopy(CONFIGS["qwen3_5"])
    wide["text_config"] |= {"num_hidden_layers": 4, "head_dim": 256, "linear_value_head_dim": 256}
    model = build_tiny("wide", folder / "model", Template.KEEPING, {"wide": wide})
    client = opened(model, disk_folder=folder / "state", cache_budget_bytes=1 << 34)
    chats: list[list[Message]] = [[] for _ in range(CHATS)]
    for turn in range(TURNS):
        for number, messages in enumerate(chats):
            messages.append(user(f"{turn}: what does boat {number} carry?"))
            messages.append(reply_of(answered(client, str(number), messages, 12)))
            while client.core.step(wait=False):
                pass  # idle work: state is written
    tier = client.core.disk
    assert tier is not None
    written = tier.statistics().written_bytes
    nodes = list(cache_of(client).holdings.tree.nodes())
    per_token = cache_of(client).holdings.kv_bytes_per_token
    tokens = sum(len(node.token_ids) for node in nodes)
    snapshots = sum(node.snapshot.nbytes for node in nodes if node.snapshot)
    closed(client)
    return {
        "chats": CHATS,
        "turns": TURNS,
        "written_megabytes": round(written / 1e6, 1),
        "kept_megabytes": round((tokens * per_token + snapshots) / 1e6, 1),
        "ratio": round(written / (tokens * per_token + snapshots), 3),
    }


def count_long_chat(model: Path, folder: Path, rest_s: float) -> dict[str, object]:
    """Play a long chat, and count what is written of each kind.

    model: has the ratio of snapshot to K/V bytes of LARGE_STATE and LARGE_KV.
    """
    client = opened(model, disk_folder=folder, disk_rest_s=rest_s)
    messages: list[Message] = []
    for turn in range(LONG_TURNS):
        messages.append(user(f"Part {turn}. {TEXT * 2}"))
        messages.append(reply_of(answered(client, "A", messages, LONG_REPLY)))
        while client.core.step(wait=False):
            pass  # idle work: state is written
    closed(client)
    headers = [read_header(path, path.parent.name) for path in folder.glob("*/*.safetensors")]
    states = sum(header.key.kind is RecordKind.STATE for header in headers)
    tokens = sum(len(header.key.run.token_ids) for header in headers)
    nbytes = states * LARGE_STATE + tokens * LARGE_KV
    return {"tokens": tokens, "states": states, "gigabytes": round(nbytes / 1e9, 2)}


def compare_pauses(folder: Path) -> dict[str, object]:
    model = build_like_9b(folder / "model")
    return {
        "no_pause": count_long_chat(model, folder / "no_pause", EngineConfig().disk_rest_s),
        "pauses": count_long_chat(model, folder / "pauses", 0.0),
    }


def build_like_9b(folder: Path) -> Path:
    """Build a tiny model whose snapshot has as many bytes as the K/V of 1,600 tokens."""
    config = copy.deepcopy(CONFIGS["qwen3_5"])
    config["text_config"] |= {"linear_value_head_dim": 128, "linear_key_head_dim": 128}
    return build_tiny("like_9b", folder, Template.KEEPING, {"like_9b": config})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument(
        "figures", nargs="*", default=["on_off", "slow", "restart", "written", "long_chat"]
    )
    args = parser.parse_args()
    figures: dict[str, Callable[[Path], dict[str, object]]] = {
        "on_off": lambda folder: compare_on_and_off(args.model, folder, args.pairs),
        "slow": lambda folder: compare_slow_disks(args.model, folder),
        "restart": lambda folder: compare_restart(args.model, folder),
        "written": count_written,
        "long_chat": compare_pauses,
    }
    for name in args.figures:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({"figure": name, **figures[name](Path(folder))}), flush=True)


if __name__ == "__main__":
    main()
