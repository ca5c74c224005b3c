"""Answers in a format: JSON of a schema and tool calls, whatever a random model would like to write."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import mlx.core as mx
import pytest
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel, Metaspace
from tokenizers.models import BPE

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.errors import AnswerFormatError
from engine.events import RequestFailed, RequestFinished, Submit
from engine.grammar.matcher import GrammarTokenizer
from engine.problem import ProblemKind
from engine.runner.drawing import FormattedTokens
from engine.runner.speculation import Speculation
from engine.types import (
    MAX_DRAFTS,
    AnswerFormat,
    ConversationId,
    FinishReason,
    Request,
    RequestId,
    SamplingParams,
)
from tests.engine.test_tools import lfm, qwen, tools
from tests.fakes.asking import reply_of, user
from tests.fakes.drafted_requests import answer, ids_of
from tests.fakes.inline_engine import InlineClient
from tests.fakes.planted_drafts import PlantedDrafts, plant
from tests.fakes.qwen import Qwen, build_qwen
from tests.fakes.tables import rest_in_soak

pytestmark = pytest.mark.slow

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "moods": {"type": "array", "items": {"enum": ["fröhlich 🦊", "sad"]}, "maxItems": 3},
    },
    "required": ["name", "age", "moods"],
    "additionalProperties": False,
}

Open = Callable[..., InlineClient]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the models. Each model is built once."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def open_model(models: Path) -> Open:
    def opened(build: Callable[[Path], Path] = qwen, *, looks_ahead: bool = True) -> InlineClient:
        folder = models / build.__name__
        config = EngineConfig(
            use_openblas=False,
            cache_budget_bytes=1 << 30,
            saves_battery=False,
            looks_ahead=looks_ahead,
        )
        client = InlineClient(config)
        load_model(client, folder if folder.exists() else build(folder), lambda _: None)
        return client

    return opened


def hermes(out: Path) -> Path:
    return build_qwen(Qwen.QWEN3, out, num_tokens=8_000)


def request_of(number: int, wanted: AnswerFormat, tools: str = "") -> Request:
    return Request(
        request_id=RequestId(f"r{number}"),
        conversation_id=ConversationId(f"{number}"),
        messages=(user(f"{number} Describe a person. " * (1 + number)),),
        new_messages=frozenset({0}),
        sampling=SamplingParams(temperature=1.0, top_p=1.0, seed=number),
        max_tokens=300,
        thinking=False,
        answer_format=wanted,
        tools=tools,
    )


def run(client: InlineClient, request: Request) -> RequestFinished | RequestFailed:
    client.send(Submit(request, time.perf_counter()))
    while not isinstance(event := client.next_event(), RequestFinished | RequestFailed):
        pass
    return event


def finish(client: InlineClient, request: Request) -> RequestFinished:
    event = run(client, request)
    assert isinstance(event, RequestFinished), event
    return event


def assert_person(finished: RequestFinished) -> None:
    assert finished.reason is FinishReason.STOP
    person = json.loads(finished.content)
    assert list(person) == ["name", "age", "moods"]
    assert len(person["name"]) <= 12
    assert 0 <= person["age"] <= 150
    assert set(person["moods"]) <= {"fröhlich 🦊", "sad"}


JSON = AnswerFormat(schema=json.dumps(PERSON))


def test_answers_have_the_schema_alone_together_and_with_drafts(
    open_model: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [replace(request_of(number, JSON), max_drafts=MAX_DRAFTS) for number in range(2)]
    requests.append(replace(request_of(2, JSON), answer_format=None, max_tokens=40))
    requests = [replace(request, num_likeliest=2) for request in requests]
    drafter = PlantedDrafts(0.7)
    plant(monkeypatch, drafter)
    client = open_model()
    alone = {str(request.request_id): finish(client, request) for request in requests}
    drafter.is_learning = False
    for looks_ahead in (True, False):
        together = answer(open_model(looks_ahead=looks_ahead), requests)

        assert ids_of(together) == ids_of(alone)
        assert sum(one.usage.accepted_tokens for one in together.values()) > 10
        for name, finished in together.items():
            scores = [score.logprob for score in finished.scores]
            assert finished.scores[-1].end == len(finished.content)
            assert scores == pytest.approx(
                [score.logprob for score in alone[name].scores], abs=0.01
            )
    for request in requests[:2]:
        assert_person(alone[request.request_id])


@pytest.mark.parametrize("is_kept", [False, True])
def test_reasoning_before_an_answer_in_a_format_waits_for_no_drafts(
    open_model: Open, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    waits: list[bool] = []
    may_propose = Speculation.may_propose

    def watched(drafter: Speculation, sequences: Sequence[Any]) -> bool:
        waits.append(may_propose(drafter, sequences))
        return waits[-1]

    client = open_model()
    request = replace(request_of(1, JSON), thinking=True, max_drafts=MAX_DRAFTS, max_tokens=40)
    finish(client, request)
    monkeypatch.setattr(Speculation, "may_propose", watched)
    # The reasoning of the first answer is drafted for the second one.
    wanted = request.answer_format if is_kept else None
    again = replace(request, request_id=RequestId("again"), answer_format=wanted)
    finished = finish(client, again)

    assert finished.reasoning
    assert not finished.content
    assert any(waits) is not is_kept


def test_a_continued_answer_keeps_to_the_format_and_restores_its_beginning(
    open_model: Open,
) -> None:
    client = open_model()
    whole = finish(client, request_of(1, JSON))
    request = replace(request_of(1, JSON), conversation_id=ConversationId("other"))
    cut = finish(client, replace(request, max_tokens=6))
    rest = replace(request, messages=(*request.messages, reply_of(cut)), new_messages=frozenset())
    finished = finish(client, replace(rest, request_id=RequestId("rest")))

    assert cut.reason is FinishReason.LENGTH
    assert_person(finished)
    assert finished.reply.token_ids == whole.reply.token_ids
    assert finished.usage.plan.read == 0


@pytest.mark.parametrize("build", rest_in_soak([qwen, hermes], hermes))
def test_an_answer_that_must_be_a_call_is_one(
    open_model: Open, build: Callable[[Path], Path]
) -> None:
    client = open_model(build)
    facts = client.core.model and client.core.model.facts
    assert facts
    listed = json.loads(tools("look", "find"))
    listed[0]["function"]["parameters"] = {**PERSON, "required": ["age"]}
    listed[1]["function"]["parameters"]["properties"]["word"]["maxLength"] = 12
    for number, name in enumerate(("look", "find")):
        wanted = AnswerFormat(functions=(name,), calls_once=True)
        text = finish(client, request_of(number, wanted, json.dumps(listed))).content
        assert text.startswith(facts.call_start)
        assert text.endswith(facts.call_end)
        inner = text.removeprefix(facts.call_start).removesuffix(facts.call_end)
        (call,) = client.answer(client.parse_calls(inner, json.dumps(listed)))

        assert call.name == name
        if name == "look":
            assert 0 <= json.loads(call.arguments)["age"] <= 150


def test_reasoning_before_a_formatted_answer_is_free(open_model: Open) -> None:
    client = open_model()
    request = replace(request_of(2, JSON), thinking=True, max_tokens=40)
    finished = finish(client, request)

    assert finished.reasoning
    assert not finished.content


@pytest.mark.parametrize(("in_answer", "drawn"), [(False, 3), (True, 1)])
def test_end_of_a_reply_within_its_reasoning_begins_the_answer(in_answer: bool, drawn: int) -> None:
    class Before:
        def recent(self) -> mx.array:
            raise AssertionError

        def answer_ids(self) -> list[int] | None:
            return [] if in_answer else None

    source = Mock()
    grammar = Mock()
    grammar.allowed_after.return_value = memoryview(bytes([0, 1, 0, 0]))
    tokens = FormattedTokens(source, grammar, opening_ids=(), closing_ids=(3,), eos_ids=(2,))
    logits = mx.array([1.0, 2.0, 5.0, 0.0])

    tokens.draw(logits, Before(), index=4)
    (filtered, *_), _ = source.draw.call_args

    assert mx.argmax(filtered).item() == drawn


def test_an_unknown_format_of_a_text_demands_nothing(open_model: Open) -> None:
    schema = {
        "type": "object",
        "properties": {
            "format": {"enum": [{"format": "odd"}]},
            "at": {"enum": ["x"], "format": "odd"},
            "default": {"enum": ["y"], "format": "odd"},
        },
        "required": ["format", "at", "default"],
        "additionalProperties": False,
    }
    finished = finish(open_model(), request_of(1, AnswerFormat(schema=json.dumps(schema))))

    assert json.loads(finished.content) == {
        "format": {"format": "odd"},
        "at": "x",
        "default": "y",
    }


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"type": "banana"}, "banana"),
    ({"type": "string", "pattern": "(?=x)"}, "look-around"),
    ({"$ref": "https://example.org/schema"}, "Resource"),
    ({"oneOf": [{"type": "object"}, {"type": "object"}]}, "oneOf"),
    ({"enum": []}, "empty"),
]


def test_a_schema_that_cannot_be_kept_is_refused(open_model: Open) -> None:
    client = open_model()
    for schema, cause in REFUSED:
        failed = run(client, request_of(1, AnswerFormat(schema=json.dumps(schema))))

        assert isinstance(failed, RequestFailed)
        assert failed.problem.kind is ProblemKind.ANSWER_FORMAT
        assert cause in failed.problem.cause
    assert_person(finish(client, request_of(2, JSON)))


@pytest.mark.parametrize(("decoder", "eos_ids"), [(Metaspace(), {1}), (ByteLevel(), ())])
def test_a_tokenizer_that_cannot_be_used_is_named(
    decoder: Metaspace | ByteLevel, eos_ids: Collection[int]
) -> None:
    backend = Tokenizer(BPE({"a": 0, "b": 1}, []))
    backend.decoder = decoder

    with pytest.raises(AnswerFormatError, match="tokenizer"):
        GrammarTokenizer(backend, 2, eos_ids)


def test_calls_in_a_form_without_a_grammar_are_refused(open_model: Open) -> None:
    wanted = AnswerFormat(functions=("look",))
    failed = run(open_model(lfm), request_of(1, wanted, tools("look")))
    unknown = run(open_model(), request_of(1, wanted, tools("find")))

    for event, cause in ((failed, "form of tool calls"), (unknown, "no tool named look")):
        assert isinstance(event, RequestFailed)
        assert event.problem.kind is ProblemKind.ANSWER_FORMAT
        assert cause in event.problem.cause


COLOUR = {"type": "string", "enum": ["red"]}


@pytest.mark.parametrize("build", rest_in_soak([qwen, hermes], qwen))
def test_arguments_of_a_forced_call_match_their_schemas(
    open_model: Open, build: Callable[[Path], Path]
) -> None:
    schemas: dict[str, object] = {
        "untyped": {"enum": ["red"]},
        "constant": {"type": "string", "const": "red"},
        "nullable": {"anyOf": [COLOUR, COLOUR]},
        "listed": {"type": ["string", "null"], "enum": ["red"]},
        "referred": {"$ref": "#/$defs/Colour"},
    }
    parameters = {
        "type": "object",
        "properties": schemas,
        "required": list(schemas),
        "additionalProperties": False,
        "$defs": {"Colour": COLOUR},
    }
    listed = json.loads(tools("look"))
    listed[0]["function"]["parameters"] = parameters
    client = open_model(build)
    facts = client.core.model and client.core.model.facts
    assert facts
    wanted = AnswerFormat(functions=("look",), calls_once=True)
    text = finish(client, request_of(1, wanted, json.dumps(listed))).content
    inner = text.removeprefix(facts.call_start).removesuffix(facts.call_end)
    (call,) = client.answer(client.parse_calls(inner, json.dumps(listed)))

    assert json.loads(call.arguments) == dict.fromkeys(schemas, "red")


PARAMETERS: list[object] = [
    True,
    {"properties": [1]},
    {"properties": {"a": {}}, "required": 5},
    {"properties": {"a": True}},
    {"properties": {"a b": {"type": "string"}}},
    {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}},
    {
        "properties": {f"p{number}": {"type": "integer"} for number in range(200)},
        "$defs": {"long": {"const": "x" * 50_000}},
    },
]


def test_parameters_that_a_call_cannot_keep_are_refused(open_model: Open) -> None:
    client = open_model()
    wanted = AnswerFormat(functions=("look",))
    listed = json.loads(tools("look"))
    for parameters in PARAMETERS:
        listed[0]["function"]["parameters"] = parameters
        failed = run(client, request_of(1, wanted, json.dumps(listed)))

        assert isinstance(failed, RequestFailed)
        assert failed.problem.kind is ProblemKind.ANSWER_FORMAT
