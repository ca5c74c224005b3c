"""Pictures in chats of a tiny model that sees: read once, and exact after every way back to them."""

from __future__ import annotations

import gc
import json
import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import mlx.core as mx
import pytest
from mlx import nn

from app.cli.client import load_model
from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import evaluate
from engine.chat.pictures import PictureTokens
from engine.events import (
    Cancel,
    PrefillProgress,
    ReadAhead,
    RequestFailed,
    RequestFinished,
    Shutdown,
    UnloadModel,
)
from engine.memory import MemoryWatch
from engine.problem import ProblemKind
from engine.questions import Evict, EvictWhat
from engine.runner import computation, prefill
from engine.types import ConversationId, FinishReason, Message, Picture, RequestId
from engine.vision import qwen
from engine.vision.qwen import QwenTower
from engine.vision.seeing import Vision
from tests.fakes.asking import reply_of
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.planted_drafts import PlantedDrafts, plant
from tests.fakes.seeing_configs import SEEING_NAMES
from tests.fakes.seeing_engine import OpenSeeing, asked, num_fed, seen, submit, verified
from tests.fakes.seeing_model import write_picture
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

T = TypeVar("T")

KINDS = [(name, template) for name in SEEING_NAMES for template in Template]


@pytest.mark.parametrize(("name", "template"), rest_in_soak(KINDS, KINDS[0], KINDS[-1]))
def test_picture_is_read_once_whatever_is_asked_about_it(
    open_seeing: OpenSeeing, cat: Picture, dog: Picture, name: str, template: Template
) -> None:
    client = open_seeing(name, template)
    (cat_len,) = client.answer(client.count_pictures(((cat.width, cat.height),))).num_tokens
    first = seen("The quick brown fox", cat, dog)

    finished, cold = asked(client, [first])
    assert num_fed(finished) == finished.usage.plan.prompt_tokens > cat_len + 10

    again, same = asked(client, [first])  # regenerate
    assert num_fed(again) <= 1
    assert same == cold

    edited, _ = asked(client, [seen("A list of numbers", cat, dog)])
    assert num_fed(edited) < 24

    history = [first, reply_of(finished), seen("Could you say that in other words?")]
    followed, _ = asked(client, history)
    assert num_fed(followed) < 40

    second_only, _ = asked(client, [seen("The quick brown fox", cat, cat)])
    assert cat_len <= num_fed(second_only) < cat_len + 32

    other_chat, _ = asked(client, [first], chat="B")
    assert num_fed(other_chat) <= 1


@pytest.mark.parametrize("name", rest_in_soak(SEEING_NAMES, "qwen3_5", "lfm2-vl"))
def test_two_pictures_that_differ_in_one_pixel_are_two_pictures(
    open_seeing: OpenSeeing, cat: Picture, tmp_path: Path, name: str
) -> None:
    client = open_seeing(name)
    other = write_picture(tmp_path / "pictures", 192, 128, pixel=1)

    asked(client, [seen("What is the weather like?", cat)])
    finished, _ = asked(client, [seen("What is the weather like?", other)])

    assert num_fed(finished) > 24


def test_other_settings_of_the_image_processor_make_other_ids(
    seeing_model: Callable[[str, Template], Path], cat: Picture, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(seeing_model("qwen3_5", Template.KEEPING), folder)
    config = json.loads((folder / "config.json").read_text())
    settings = folder / "preprocessor_config.json"

    before = Vision(nn.Module(), folder, config, PictureTokens(""), None).ids(cat)
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"image_mean": [0.4] * 3}))
    after = Vision(nn.Module(), folder, config, PictureTokens(""), None).ids(cat)

    assert len(before) == len(after)
    assert not set(before) & set(after)


def test_remembered_pictures_take_little_memory(
    seeing_model: Callable[[str, Template], Path],
) -> None:
    folder = seeing_model("qwen3_5", Template.KEEPING)
    vision = Vision(
        nn.Module(),
        folder,
        json.loads((folder / "config.json").read_text()),
        PictureTokens(""),
        None,
    )
    vision.ids(Picture(digest="", width=2048, height=2048))
    tracemalloc.start()
    try:
        for number in range(20):
            vision.ids(Picture(digest=f"{number}", width=2048, height=2048))
        assert tracemalloc.get_traced_memory()[0] < 20 * 2000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", rest_in_soak(SEEING_NAMES, "qwen3_5", "lfm2-vl"))
def test_picture_comes_back_from_disk_after_a_restart(
    open_seeing: OpenSeeing, cat: Picture, tmp_path: Path, name: str
) -> None:
    options = {"disk_folder": tmp_path / "state", "idle_work": True}
    client = open_seeing(name, **options)
    first = seen("The quick brown fox", cat)
    finished, cold = asked(client, [first])
    client.send(Shutdown())
    client.core.run()

    client = open_seeing(name, **options)
    again, same = asked(client, [first])
    assert num_fed(again) <= 16
    edited, _ = asked(client, [seen("Thank you", cat)])
    assert num_fed(edited) < 24
    followed, _ = asked(client, [first, reply_of(finished), seen("Thank you")])

    assert same == cold
    assert num_fed(followed) < 40
    client.send(Shutdown())
    client.core.run()


@pytest.mark.parametrize("name", rest_in_soak(SEEING_NAMES, "qwen3_5", "lfm2-vl"))
def test_picture_is_read_again_after_its_state_is_evicted(
    open_seeing: OpenSeeing, cat: Picture, name: str
) -> None:
    client = open_seeing(name)
    first = seen("The quick brown fox", cat)
    _, cold = asked(client, [first])

    client.answer(client.ask(Evict(EvictWhat.ALL)))
    finished, same = asked(client, [first])

    assert num_fed(finished) == finished.usage.plan.prompt_tokens
    assert same == cold


def test_drafts_of_an_answer_about_a_picture(
    open_seeing: OpenSeeing, cat: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafter = PlantedDrafts(right=0.7)
    plant(monkeypatch, drafter)
    messages = [seen("A list of numbers", cat)]
    plain, _ = verified(open_seeing(idle_work=True), messages, max_drafts=4)
    drafter.is_learning = False
    client = open_seeing(idle_work=True)
    client.run_until_idle()  # finds out that passes can be rewound

    finished, result = verified(client, messages, max_drafts=4)

    assert finished.usage.drafted_tokens > finished.usage.accepted_tokens > 0
    assert finished.content == plain.content
    assert result.equal
    assert result.replay_difference == 0


def test_picture_of_a_draft_is_read_before_it_is_sent(
    open_seeing: OpenSeeing, cat: Picture
) -> None:
    client = open_seeing(idle_work=True)
    draft = seen("", cat)
    client.send(ReadAhead(conversation_id=ConversationId("A"), messages=(draft,), is_draft=True))
    client.run_until_idle()

    finished, _ = asked(client, [seen("Thank you", cat)])

    assert num_fed(finished) < 24


def test_request_ends_the_reading_of_a_draft_within_a_picture(
    open_seeing: OpenSeeing, cat: Picture, dog: Picture
) -> None:
    _, cold = asked(open_seeing(), [seen("Thank you", cat, dog)])
    client = open_seeing(idle_work=True)
    draft = seen("", cat, dog)
    for num_steps in range(1, 12, 2):
        chat = f"chat {num_steps}"
        client.answer(client.ask(Evict(EvictWhat.ALL)))
        task = ReadAhead(conversation_id=ConversationId(chat), messages=(draft,), is_draft=True)
        client.send(task)
        for _ in range(num_steps):
            client.step()

        _, found = asked(client, [seen("Thank you", cat, dog)], chat)

        assert found == cold


def test_stop_ends_the_only_request_within_a_picture(
    open_seeing: OpenSeeing, cat: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill, "_PICTURE_STEP_S", 0.0)  # each step computes one part
    client = open_seeing()
    submit(client, [seen("Thank you", cat)])
    parts: list[object] = []

    def counted(part: object) -> None:
        parts.append(part)
        evaluate(part)

    monkeypatch.setattr(computation, "evaluate", counted)
    while len(parts) < 4:
        client.step()

    client.send(Cancel(RequestId("r")))
    events = client.run_until_idle()

    (finished,) = (e for e in events if isinstance(e, RequestFinished))
    assert finished.reason is FinishReason.CANCELLED
    assert all(e.done < 24 for e in events if isinstance(e, PrefillProgress))


def test_pictures_and_text_are_answered_together(
    open_seeing: OpenSeeing, cat: Picture, dog: Picture
) -> None:
    client = open_seeing()
    chats = {
        "A": seen("The quick brown fox", cat),
        "B": seen("A list of numbers: 0 1 2 3"),
        "C": seen("Of course", dog, cat),
    }
    alone = {chat: asked(open_seeing(), [message])[0].content for chat, message in chats.items()}

    for chat, message in chats.items():
        submit(client, [message], chat)
    done = [e for e in client.run_until_idle() if isinstance(e, RequestFinished)]

    assert sorted(one.content for one in done) == sorted(alone.values())


def failure(client: InlineClient, message: Message) -> RequestFailed:
    submit(client, [message])
    (failed,) = (e for e in client.run_until_idle() if isinstance(e, RequestFailed))
    return failed


def test_missing_or_changed_file_is_refused_with_a_sentence(
    open_seeing: OpenSeeing, cat: Picture, dog: Picture, tmp_path: Path
) -> None:
    client = open_seeing()
    path = tmp_path / "pictures" / f"{cat.digest}.png"
    (tmp_path / "pictures" / f"{dog.digest}.png").rename(path)

    wrong = failure(client, seen("The quick", cat)).problem
    path.write_bytes(b"no picture")
    damaged = failure(client, seen("The quick", cat)).problem
    path.unlink()
    missing = failure(client, seen("The quick", cat)).problem

    assert {wrong.kind, damaged.kind, missing.kind} == {ProblemKind.PICTURE}
    assert wrong.cause == damaged.cause == "The file of a picture is damaged."
    assert missing.cause == "The file of a picture is missing."
    asked(client, [seen("The quick")])


def test_files_of_pictures_are_read_in_the_newest_folder(
    open_seeing: OpenSeeing,
    seeing_model: Callable[[str, Template], Path],
    cat: Picture,
    tmp_path: Path,
) -> None:
    client = open_seeing()
    folder = str((tmp_path / "pictures").rename(tmp_path / "moved"))
    client.want(lambda wanted: replace(wanted, picture_folder=folder))
    asked(client, [seen("The quick", cat)])

    load_model(client, seeing_model("gemma3", Template.KEEPING), lambda _: None)
    asked(client, [seen("The quick", cat)])


def test_model_without_a_tower_refuses_pictures(open_tiny: OpenTiny, cat: Picture) -> None:
    client = open_tiny()

    problem = failure(client, seen("The quick", cat)).problem

    assert problem.cause == "This model can’t see pictures."
    assert problem.kind is ProblemKind.PICTURE


@pytest.mark.parametrize(("name", "wanted"), [("qwen3_5", (24, 10)), ("lfm2-vl", (37, 4))])
def test_tokens_of_pictures_are_counted_without_reading_them(
    open_seeing: OpenSeeing, cat: Picture, name: str, wanted: tuple[int, int]
) -> None:
    client = open_seeing(name)

    counted = client.answer(client.count_pictures(((192, 128), (64, 160))))
    without, _ = asked(client, [seen("The quick")])
    finished, _ = asked(client, [seen("The quick", cat)])

    # A token stands before the picture and one after it.
    added = finished.usage.plan.prompt_tokens - without.usage.plan.prompt_tokens
    assert counted.num_tokens == wanted
    assert added == wanted[0] + 2


def test_unload_frees_the_model_and_its_tower_at_once(
    open_seeing: OpenSeeing, cat: Picture
) -> None:
    asked(open_seeing(), [seen("Thank you", cat)])  # makes what lasts
    gc.collect()
    gc.disable()  # as in the window, which collects garbage later
    try:
        before = mx.get_active_memory()
        client = open_seeing()
        asked(client, [seen("Thank you", cat)])
        client.send(UnloadModel())
        client.run_until_idle()
        assert mx.get_active_memory() - before < 4096
    finally:
        gc.enable()


def test_tower_is_dropped_when_memory_is_short_but_not_while_a_picture_is_read(
    open_seeing: OpenSeeing, cat: Picture, dog: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets = [1 << 30]
    made: list[object] = []
    encoded: list[object] = []

    def adjust(_: MemoryWatch, cache: PrefixCache, before_change: Callable[[], object]) -> None:
        before_change()
        cache.set_budget(budgets[-1])

    def shrink() -> None:
        budgets.append(budgets[-1] - 4096)

    monkeypatch.setattr(MemoryWatch, "adjust_budget", adjust)
    monkeypatch.setattr(prefill, "_PICTURE_STEP_S", 0.0)  # each step computes one part
    monkeypatch.setattr(qwen, "make_qwen_tower", noting(qwen.make_qwen_tower, made))
    monkeypatch.setattr(QwenTower, "encode", noting(QwenTower.encode, encoded))
    client = open_seeing(cache_budget_bytes=None)

    submit(client, [seen("Thank you", cat)])
    while client.step():
        shrink()
    assert len(made) == len(encoded) == 1

    budgets.append(1 << 30)  # the budget grows
    submit(client, [seen("Thank you", dog)])
    client.run_until_idle()
    assert len(made) == 2  # dropped after the first answer

    budgets.append(1 << 31)
    submit(client, [seen("Thank you", cat, cat)])
    client.run_until_idle()
    assert len(made) == 2


def noting(function: Callable[..., T], calls: list[object]) -> Callable[..., T]:
    def call(*args: object) -> T:
        calls.append(args)
        return function(*args)

    return call
