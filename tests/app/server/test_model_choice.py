"""Requests that name another model than the loaded one, over HTTP, with a real engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Barrier
from typing import Any

import pytest

from app.server.model_choice import Choice, OfferedModels
from app.server.served_models import ServedModels
from app.words import server as words
from engine.catalog import scan
from engine.catalog.card import ModelCard, ModelSource
from engine.events import ModelFacts
from engine.problem import Problem
from engine.types import ForcedReply
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.fake_engine import FACTS
from tests.fakes.rig import card
from tests.fakes.served_model import KEY, ServedModel, served_model
from tests.fakes.tiny_model import Template

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 1}


@pytest.fixture(scope="module")
def cards(tiny_model: TinyModel) -> tuple[ModelCard, ...]:
    folders = [tiny_model(name, Template.KEEPING) for name in ("qwen3_5", "llama")]
    return scan.scan([scan.Root(folder, ModelSource.FOLDER) for folder in folders])


@pytest.fixture
def served(cards: tuple[ModelCard, ...]) -> Iterator[ServedModel]:
    """Return a server whose requests choose between two models. The first one is loaded."""
    with served_model(cards[0].path, cards=cards) as served:
        yield served


def listed(served: ServedModel) -> list[str]:
    return [model["id"] for model in served.get("/v1/models").body["data"]]


def test_without_the_setting_the_name_in_a_request_changes_nothing(
    cards: tuple[ModelCard, ...],
) -> None:
    with served_model(cards[0].path) as served:
        assert listed(served) == [cards[0].name]
        answer = served.post(CHAT, model=cards[1].name, **HELLO)

        assert (answer.status, answer.body["model"]) == (200, cards[0].name)
        assert not served.chosen


def test_all_models_are_listed_and_the_loaded_one_first(
    served: ServedModel, cards: tuple[ModelCard, ...]
) -> None:
    names = [cards[0].name, cards[1].name]
    assert listed(served) == names
    served.post(CHAT, model=names[1], **HELLO)

    assert listed(served) == names[::-1]
    tags = served.get("/api/tags").body["models"]
    assert [model["name"] for model in tags] == names[::-1]
    assert [model["name"] for model in served.get("/api/ps").body["models"]] == [names[1]]
    assert served.get(f"/v1/models/{names[0]}").status == 200
    family = served.post("/api/show", model=names[0]).body["model_info"]["general.architecture"]
    assert family == cards[0].model_type


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, HELLO),
        ("/v1/completions", {"prompt": "Hi.", "max_tokens": 1}),
        ("/v1/messages", HELLO),
        ("/v1/messages/count_tokens", HELLO),
        ("/v1/responses", {"input": "Hi.", "max_output_tokens": 1}),
        ("/api/chat", {**HELLO, "stream": False}),
        ("/api/generate", {"prompt": ""}),  # Ollama's way to load a model
    ],
)
def test_named_model_is_loaded_and_answers(
    served: ServedModel, cards: tuple[ModelCard, ...], path: str, body: dict[str, Any]
) -> None:
    answer = served.post(path, model=cards[1].name, **body)

    assert answer.status == 200
    assert answer.body.get("model", cards[1].name) == cards[1].name
    assert listed(served)[0] == cards[1].name
    assert served.chosen == [cards[1].path]


def test_other_names_are_answered_by_the_loaded_model(
    served: ServedModel, cards: tuple[ModelCard, ...]
) -> None:
    path = str(cards[1].path)
    for name in ("gpt-5", "", cards[0].name, path, f"{cards[1].name} ", f"../{cards[1].name}"):
        assert served.post(CHAT, model=name, **HELLO).body["model"] == cards[0].name
    assert not served.chosen


def test_running_answer_keeps_its_model(served: ServedModel, cards: tuple[ModelCard, ...]) -> None:
    served.replies.append(ForcedReply(text="word " * 5000))
    connection = served.connect()
    try:
        first = json.dumps({**HELLO, "max_tokens": 20_000, "stream": True})
        connection.request("POST", CHAT, first, {"authorization": f"Bearer {KEY}"})
        connection.getresponse().readline()
        answer = served.post(CHAT, model=cards[1].name, **HELLO)
    finally:
        connection.close()

    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    sentence = words.not_loaded_now(cards[1].title, cards[0].title)
    assert answer.body["error"]["message"] == sentence
    assert not served.chosen


def test_refused_choice_ends_the_wait_of_all_requests(
    served: ServedModel, cards: tuple[ModelCard, ...]
) -> None:
    served.refuses_choice = True
    answer = served.post(CHAT, model=cards[1].title, **HELLO)

    assert answer.status == 503
    assert cards[0].title in answer.body["error"]["message"]
    assert served.post(CHAT, **HELLO).body["model"] == cards[0].name


def test_clients_that_name_models_in_turn_load_each_only_once(
    served: ServedModel, cards: tuple[ModelCard, ...]
) -> None:
    """Each request is answered by the model that it names, or refused. None loads twice."""
    count, begin = 8, Barrier(8)

    def ask(index: int) -> tuple[str, int, str]:
        name = cards[index % 2].name
        begin.wait()
        answer = served.post(CHAT, model=name, **HELLO)
        return name, answer.status, answer.body.get("model", "")

    with ThreadPoolExecutor(count) as pool:
        for name, status, answered_by in pool.map(ask, range(count)):
            assert (status, answered_by) in ((200, name), (503, ""))
    assert len(served.chosen) <= count


def test_request_that_has_waited_for_its_model_is_answered_by_it(
    served: ServedModel, cards: tuple[ModelCard, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second request, which names the model before, waits. It does not replace the chosen one."""
    load, used = served.engine.load_model, ServedModels.used
    loads, named = SimpleQueue[str](), SimpleQueue[str]()

    def note_name(models: ServedModels, name: str) -> AbstractAsyncContextManager[ModelFacts]:
        named.put(name)
        return used(models, name)

    monkeypatch.setattr(served.engine, "load_model", loads.put)
    monkeypatch.setattr(ServedModels, "used", note_name)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(served.post, CHAT, model=cards[1].name, **HELLO)
        path = loads.get(timeout=PATIENCE_S)
        second = pool.submit(served.post, CHAT, model=cards[0].name, **HELLO)
        assert {named.get(timeout=PATIENCE_S) for _ in cards} == {card.name for card in cards}
        load(path)

        assert (first.result(PATIENCE_S).status, second.result(PATIENCE_S).status) == (200, 503)
    assert served.chosen == [cards[1].path]


def test_model_that_cannot_be_loaded_is_an_error_with_the_reason(
    served: ServedModel, cards: tuple[ModelCard, ...], tmp_path: Path
) -> None:
    broken = replace(cards[1], path=tmp_path / "broken", name="broken")
    served.server.offer((*cards, broken))
    answer = served.post(CHAT, model="broken", **HELLO)

    assert answer.status == 503
    assert "broken" in answer.body["error"]["message"]
    assert served.post(CHAT, model=cards[0].name, **HELLO).status == 200


def offered(*cards: ModelCard) -> OfferedModels:
    return OfferedModels(Choice(lambda _path, _refuse: None, cards))


def test_models_with_the_same_name_get_numbers() -> None:
    first, second = card("Tiny"), card("Tiny", path=Path("/other/Tiny"))
    models = offered(first, second)

    assert [model.name for model in models.listed(None)] == ["Tiny", "Tiny (2)"]
    assert (models.find("Tiny"), models.find("Tiny (2)")) == (first, second)
    loaded = replace(FACTS, path="/other/Tiny", name="Tiny")
    assert [model.name for model in models.listed(loaded)] == ["Tiny (2)", "Tiny"]


def test_loaded_model_from_elsewhere_has_a_name_of_its_own() -> None:
    loaded = replace(FACTS, path="/elsewhere/Tiny", name="Tiny")

    assert [one.name for one in offered(card("Tiny")).listed(loaded)] == ["Tiny (2)", "Tiny"]


def test_unusable_models_are_neither_listed_nor_found() -> None:
    models = offered(card("Tiny", problem=Problem(title="Broken.", cause="", advice="")))

    assert (models.listed(None), models.find("Tiny")) == ((), None)
