"""Each model is tested once: correctness before it is ready, faster ways in idle time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import mlx.core as mx
import pytest

from app.cli.client import load_model
from engine.cache.layout import Layout
from engine.events import RequestFinished, Submit
from engine.models.abilities import Abilities, AbilityRecords
from engine.models.adapter import ModelAdapter
from engine.types import ConversationId, Request, RequestId
from tests.fakes.asking import ask, user
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

# mlx-lm's models do not state the size of their vocabulary: a lazy pass of one token shows it.
VOCABULARY = [1]
MOST_PASSES = 8  # before a model that is not known is ready


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the number of tokens of each forward pass is added."""
    counted: list[int] = []
    run = ModelAdapter.run

    def counting(self: ModelAdapter, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        counted.append(input_ids.size)
        return run(self, input_ids, caches)

    monkeypatch.setattr(ModelAdapter, "run", counting)
    return counted


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that forgets the records of this process, as its end does."""

    def forget() -> None:
        monkeypatch.setattr(AbilityRecords, "_known", {})

    forget()
    return forget


@pytest.fixture(params=rest_in_soak(["lfm2", "llama", "qwen3_5"], "qwen3_5"))
def folder(request: pytest.FixtureRequest, tiny_model: TinyModel) -> Path:
    return tiny_model(request.param, Template.KEEPING)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "abilities"


@pytest.fixture
def client(open_tiny: OpenTiny, records: Path, forget: Callable[[], None]) -> InlineClient:
    client = open_tiny("gemma3", abilities_folder=records)
    forget()
    return client


def load(client: InlineClient, folder: Path) -> None:
    """Load a model and do no idle work."""
    load_model(client, folder, lambda _: None, awaits_tests=False)


def rest(client: InlineClient) -> None:
    client.answer(client.await_idle())


def request() -> Request:
    return Request(
        request_id=RequestId("r"),
        conversation_id=ConversationId("A"),
        messages=(user("one"),),
        new_messages=frozenset({0}),
        max_tokens=6,
    )


def is_fast(client: InlineClient) -> bool:
    model = client.core.model
    assert model is not None
    return model.ways.can_merge and model.ways.rewinding is not None and model.ways.can_merge_drafts


@pytest.mark.usefixtures("forget")
def test_first_load_takes_few_passes_and_tests_faster_ways_in_idle_time(
    client: InlineClient, folder: Path, passes: list[int]
) -> None:
    passes.clear()
    load(client, folder)
    assert 0 < len(passes) <= MOST_PASSES
    assert not is_fast(client)
    before = ask(client, user("A list of boats.")).reply

    rest(client)
    assert is_fast(client)
    assert ask(client, user("A list of boats."), chat="B").reply == before


def test_known_model_is_ready_without_a_pass_in_a_later_process(
    client: InlineClient,
    open_tiny: OpenTiny,
    folder: Path,
    records: Path,
    passes: list[int],
    forget: Callable[[], None],
) -> None:
    load(client, folder)
    rest(client)
    wanted = ask(client, user("A list of boats.")).reply

    forget()
    later = open_tiny("gemma3", abilities_folder=records)
    passes.clear()
    load(later, folder)
    assert passes == VOCABULARY
    assert is_fast(later)
    assert ask(later, user("A list of boats.")).reply == wanted
    rest(later)


def test_known_model_with_quantised_kv_is_ready_without_a_pass(
    open_tiny: OpenTiny, folder: Path, records: Path, passes: list[int], forget: Callable[[], None]
) -> None:
    client = open_tiny("gemma3", abilities_folder=records, kv_bits=8)
    load(client, folder)
    wanted = ask(client, user("A list of boats.")).reply

    forget()
    later = open_tiny("gemma3", abilities_folder=records, kv_bits=8)
    passes.clear()
    load(later, folder)
    assert passes == VOCABULARY
    assert ask(later, user("A list of boats.")).reply == wanted


def test_copy_of_a_known_model_is_known(
    client: InlineClient, folder: Path, tmp_path: Path, passes: list[int]
) -> None:
    load(client, folder)
    rest(client)
    passes.clear()
    load(client, Path(shutil.copytree(folder, tmp_path / "copy")))
    assert passes == VOCABULARY


def test_model_that_was_changed_is_tested_again(
    client: InlineClient, tiny_model: TinyModel, tmp_path: Path, passes: list[int]
) -> None:
    folder = Path(shutil.copytree(tiny_model("llama", Template.KEEPING), tmp_path / "model"))
    load(client, folder)
    rest(client)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "rope_theta": 5000.0}), "utf-8")
    passes.clear()
    load(client, folder)
    assert len(passes) > 1


def test_request_ends_the_test_of_faster_ways_and_it_goes_on_later(
    client: InlineClient, tiny_model: TinyModel, passes: list[int]
) -> None:
    load(client, tiny_model("qwen3_5", Template.KEEPING))
    passes.clear()
    client.await_idle()
    client.step()
    client.step()
    tested = len(passes)
    assert 0 < tested < 10, "a step has few passes"
    client.send(Submit(request(), 0.0))
    while not isinstance(client.next_event(), RequestFinished):
        assert not is_fast(client)
    rest(client)
    assert is_fast(client)


def broken(content: bytes) -> list[bytes]:
    fields = json.loads(content)
    return [
        b"",
        b"7",
        b"[" * 200_000,
        content[: len(content) // 2],
        json.dumps({**fields, "key": "another"}).encode(),
        json.dumps({**fields, "layout": [0, 0, 0, 0]}).encode(),
        json.dumps({**fields, "ways": {**fields["ways"], "can_merge": False}}).encode(),
        json.dumps({name: value for name, value in fields.items() if name != "digest"}).encode(),
        b" " * (1 << 20),
    ]


def test_damaged_record_is_not_used_and_replaced(
    client: InlineClient,
    tiny_model: TinyModel,
    records: Path,
    passes: list[int],
    forget: Callable[[], None],
) -> None:
    folder = tiny_model("qwen3_5", Template.KEEPING)
    others = {*records.iterdir()}
    load(client, folder)
    rest(client)
    (record,) = {*records.iterdir()} - others
    content = record.read_bytes()
    for damaged in broken(content):
        record.write_bytes(damaged)
        forget()
        assert AbilityRecords(records).find(record.stem) is None

    passes.clear()
    load(client, folder)
    assert len(passes) > 1
    rest(client)
    assert record.read_bytes() == content
    forget()
    assert AbilityRecords(records).find(record.stem) is not None


def test_record_is_private(client: InlineClient, folder: Path, records: Path) -> None:
    load(client, folder)
    assert records.stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in records.iterdir())


def test_folder_that_cannot_be_written_costs_only_later_tests(
    open_tiny: OpenTiny, folder: Path, tmp_path: Path, forget: Callable[[], None]
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    client = open_tiny("gemma3", abilities_folder=tmp_path / "file" / "abilities")
    forget()
    load(client, folder)
    rest(client)
    assert is_fast(client)


@pytest.mark.usefixtures("forget")
def test_folder_of_another_host_is_not_created(tmp_path: Path) -> None:
    AbilityRecords(tmp_path / "user" / "abilities").keep("key", Abilities(Layout(1, 0, 8, 0)))
    assert not (tmp_path / "user").exists()
