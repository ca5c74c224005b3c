"""A model in several stages gives the reports, the bits and the ledger of one process."""

from __future__ import annotations

import json
import logging
import random
import time
from pathlib import Path
from typing import Any

import pytest

from app.cli.client import load_model
from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from engine.config import EngineConfig
from engine.errors import ModelFolderError
from engine.events import Cancel, RequestFinished, Submit
from engine.models.abilities import AbilityRecords
from engine.pipeline.messages import Op
from engine.questions import Evict, EvictWhat, Forget
from engine.types import ConversationId, Request, RequestId, SamplingParams
from tests.architectures.configs.every import CONFIGS as EVERY_CONFIG
from tests.fakes.asking import ask, cache_of, reply_of, user
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.staged_engine import StagedClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template, build_tiny
from tests.oracle.scripts import promise_script
from tests.oracle.stage_commands import CONFIG, SPLITS, StageCommands

Bits = list[bytes]


def script(*, thinking: bool) -> list[dict[str, Any]]:
    """Return the promise script of two chats, then evictions of every kind and a reload."""

    def send(chat: str, text: str) -> dict[str, Any]:
        return {"op": "send", "chat": chat, "text": text, "max_tokens": 4}

    promise = promise_script(chats=2, turns=1, seed=5, reasoning=thinking, max_tokens=4)
    return [
        *promise,
        {"op": "evict", "what": "hot"},
        send("A", "Back again? " * 5),
        {"op": "evict", "what": "snapshots"},
        send("B", "And here?"),
        {"op": "evict", "what": "all"},
        send("A", "Once more."),
        {"op": "reload"},
        send("B", "Still there?"),
    ]


def played(
    client: InlineClient, folder: Path, steps: list[dict[str, Any]], *, check: bool
) -> list[object]:
    """Play a script. Return what must not depend on the number of stages."""
    player = ScriptPlayer(client, folder, check=check)
    found: list[object] = []
    for step in steps:
        for report in player.play(parse_step(json.dumps(step))):
            assert report.holds
            counts = (report.prompt_tokens, report.restored, report.read, report.replayed)
            found.append((counts, report.redo, report.output_tokens, report.text))
        cache_of(client).check_invariants()
    return found


def plain(folder: Path) -> InlineClient:
    client = InlineClient(CONFIG)
    load_model(client, folder, lambda _: None)
    return client


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_soak(SPLITS, "lfm2"))
def test_script_over_stages_gives_the_reports_and_bits_of_one_process(
    tiny_model: TinyModel, drawn_from: Bits, name: str
) -> None:
    template = Template.THINKING if name == "qwen3_5" else Template.KEEPING
    folder = tiny_model(name, template)
    steps = script(thinking=template is Template.THINKING)
    wanted = played(plain(folder), folder, steps, check=False)
    wanted_bits = drawn_from.copy()
    drawn_from.clear()

    client = StagedClient(folder, SPLITS[name], CONFIG)

    assert played(client, folder, steps, check=True) == wanted
    assert drawn_from == wanted_bits
    client.require_equal_ledgers()


def request(number: int) -> Request:
    """Return a request for a chat of its own. Prompts have different lengths."""
    return Request(
        request_id=RequestId(f"r{number}"),
        conversation_id=ConversationId(f"{number}"),
        messages=(user(f"{number} " + "a list of small boats " * (1 + number)),),
        new_messages=frozenset({0}),
        sampling=SamplingParams(temperature=0.8, seed=number),
        max_tokens=4 + 2 * number,
    )


def answers(client: InlineClient, numbers: range, *, together: bool) -> list[tuple[int, ...]]:
    finished: dict[str, tuple[int, ...]] = {}
    for number in numbers:
        client.send(Submit(request(number), time.perf_counter()))
        if not together or number == numbers[-1]:
            for event in client.run_until_idle():
                if isinstance(event, RequestFinished):
                    assert event.reply is not None
                    finished[event.request_id] = event.reply.token_ids
    return [finished[f"r{number}"] for number in numbers]


@pytest.mark.parametrize("name", rest_in_soak(["qwen3_5_moe", "lfm2", "gemma3"], "lfm2", "gemma3"))
def test_four_answers_at_once_over_stages_equal_answers_alone_in_one_process(
    tiny_model: TinyModel, name: str
) -> None:
    folder = tiny_model(name, Template.KEEPING)
    wanted = answers(plain(folder), range(4), together=False)

    client = StagedClient(folder, SPLITS[name], CONFIG)

    assert answers(client, range(4), together=True) == wanted
    client.require_equal_ledgers()


def random_actions(client: StagedClient, num_actions: int, seed: int) -> None:
    """Ask, edit, side requests, forget and evict at random. Compare the ledgers after each."""
    rng = random.Random(seed)
    threads: dict[str, list[Any]] = {chat: [] for chat in "ABCD"}
    for _ in range(num_actions):
        chat = rng.choice("ABCD")
        match rng.randrange(8):
            case 0:
                client.ask(Evict(rng.choice(list(EvictWhat))))
                client.run_until_idle()
            case 1:
                client.ask(Forget(ConversationId(chat)))
                client.run_until_idle()
                threads[chat] = []
            case 2:
                threads[chat] = threads[chat][: 2 * rng.randrange(len(threads[chat]) // 2 + 1)]
            case 3:
                ask(client, user("A title, please."), chat=chat, side=True)
            case 4:
                cache_of(client).set_budget(rng.randrange(100_000, 4_000_000))
            case _:
                messages = [*threads[chat][-8:], user("word " * rng.randrange(1, 40))]
                threads[chat] = [*messages, reply_of(ask(client, *messages, chat=chat))]
        client.require_equal_ledgers()
        cache_of(client).check_invariants()


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_soak(["qwen3_5_moe", "gemma3"], "qwen3_5_moe"))
def test_bytes_held_by_followers_equal_the_ledger_after_random_actions(
    tiny_model: TinyModel, name: str
) -> None:
    client = StagedClient(tiny_model(name, Template.KEEPING), SPLITS[name], CONFIG)

    random_actions(client, 30, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", rest_in_soak(["qwen3_5_moe", "gemma3", "deep_llama"], "gemma3", "deep_llama")
)
def test_bytes_held_by_followers_equal_the_ledger_after_random_commands(
    tiny_model: TinyModel, name: str
) -> None:
    client = StagedClient(tiny_model(name, Template.KEEPING), SPLITS[name], CONFIG)

    StageCommands(client, seed=3).play(40)


def test_followers_hold_nothing_after_a_load_whose_log_records_are_kept(
    tiny_model: TinyModel, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(AbilityRecords, "_known", {})  # test the model again

    # The caches of gemma3 cannot be merged. The error is logged.
    client = StagedClient(tiny_model("gemma3", Template.KEEPING), SPLITS["gemma3"], CONFIG)

    assert "cannot be merged" in caplog.text
    assert client.num_held() == [0]


@pytest.mark.slow
def test_followers_hold_no_more_objects_after_many_turns(tiny_model: TinyModel) -> None:
    client = StagedClient(tiny_model("qwen3_5_moe", Template.KEEPING), (1, 1), CONFIG)
    at_start = client.num_held()

    for number in range(8):
        ask(client, user(f"{number} words"), chat=f"{number % 3}")
    client.ask(Evict(EvictWhat.ALL))
    client.run_until_idle()

    assert client.num_held() == at_start


@pytest.mark.slow
def test_small_budget_of_a_follower_evicts_until_its_stage_fits(tiny_model: TinyModel) -> None:
    folder = tiny_model("qwen3_5_moe", Template.KEEPING)
    client = StagedClient(folder, (1, 1), EngineConfig(**TIGHT))

    for number in range(12):
        ask(client, user(f"{number} " + "a list of small boats " * 6), chat=f"{number}")

    statistics = cache_of(client).statistics()
    assert statistics.evictions > 0
    held = client.opener.relay.ask(Op.COUNT)[1]["held"]
    assert 0 < held <= TIGHT["cache_budget_bytes"]
    client.require_equal_ledgers()


TIGHT: dict[str, Any] = {
    "use_openblas": False,
    "idle_work": False,
    "cell_len": 16,
    "stride_len": 32,
    "cache_budget_bytes": 600_000,
}


def test_other_model_than_that_of_the_stages_is_refused(tiny_model: TinyModel) -> None:
    client = StagedClient(tiny_model("llama", Template.KEEPING), (1, 1), CONFIG)

    with pytest.raises(Exception, match="Start them again"):
        load_model(client, tiny_model("lfm2", Template.KEEPING), lambda _: None)


def test_type_that_is_not_exact_over_stages_is_refused_with_a_sentence(tmp_path: Path) -> None:
    folder = build_tiny("gemma3n", tmp_path / "model", Template.KEEPING, EVERY_CONFIG)

    with pytest.raises(ModelFolderError, match="not exact when it is divided"):
        StagedClient(folder, (1, 1), CONFIG)


def long_request(text: str) -> Request:
    return Request(
        request_id=RequestId("long"),
        conversation_id=ConversationId("A"),
        messages=(user(text),),
        new_messages=frozenset({0}),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=6,
    )


def test_next_chunk_of_a_prompt_is_sent_before_the_present_one_is_computed(
    tiny_model: TinyModel,
) -> None:
    client = StagedClient(tiny_model("qwen3_5_moe", Template.KEEPING), (1, 1), CONFIG)

    client.send(Submit(long_request("a list of small boats " * 20), time.perf_counter()))
    on_the_way: list[int] = []
    while client.step():
        on_the_way.append(client.opener.relay.num_unanswered)

    assert max(on_the_way) == 1
    assert client.opener.relay.num_unanswered == 0


@pytest.mark.parametrize("num_steps", rest_in_soak([2, 3, 4], 3))
def test_answer_after_a_stop_during_prefill_equals_that_of_one_process(
    tiny_model: TinyModel, num_steps: int
) -> None:
    folder = tiny_model("qwen3_5_moe", Template.KEEPING)
    text = "a list of small boats " * 20
    wanted = ask(plain(folder), user(text)).reply
    client = StagedClient(folder, (1, 1), CONFIG)

    client.send(Submit(long_request(text), time.perf_counter()))
    for _ in range(num_steps):
        client.step()
    client.send(Cancel(RequestId("long")))
    client.run_until_idle()
    client.require_equal_ledgers()
    finished = ask(client, user(text))

    assert finished.reply == wanted
    assert finished.usage.plan.restored > 0
    client.require_equal_ledgers()
