"""Ollama's addresses, over HTTP, answered by a real engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from app.server import ollama, ollama_models
from app.server.chat_request import (
    Begun,
    Called,
    ChatRequest,
    Ended,
    Piece,
    Said,
    SignOfLife,
    Thought,
)
from app.server.errors import ErrorKind, ServerError
from app.server.fields import Fields
from app.server.model_choice import listed_facts
from app.server.protocol import AnswerForm, WholeAnswer
from app.words import server as words
from engine.types import ForcedReply, Role, ToolCall
from tests.app.server.test_openai_responses import MODEL
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.served_model import ServedModel, served_model
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

CHAT, GENERATE = "/api/chat", "/api/generate"
RULES = {"role": "system", "content": "Write a short story about a small boat. " * 6}
CALL = ToolCall(name="look", arguments='{"word": "fox", "times": 2}')
ENDED = Ended(
    at_limit=False,
    stop=None,
    prompt_tokens=10,
    restored=7,
    replayed=1,
    read=2,
    output_tokens=5,
    reasoning_tokens=3,
    first_word_ms=5.0,
    queue_ms=1.0,
    total_ms=12.5,
)
LOOK: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
    },
}
LOOKING = (
    "I look.\n\n<tool_call>\n<function=look>\n<parameter=word>\nfox\n</parameter>\n</function>"
    "\n</tool_call>"
)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def lines_of(*pieces: Piece) -> Iterator[dict[str, Any]]:
    form = new_form()
    for piece in pieces:
        for text in form.events(piece):
            assert text.endswith("\n")
            yield json.loads(text)


def new_form() -> AnswerForm:
    return ollama.CHAT.form(Fields({}), ChatRequest(messages=()), MODEL)


def test_chat_is_a_stream_of_lines_unless_it_is_asked_for_whole(served: ServedModel) -> None:
    served.replies += [ForcedReply(text="In other words, a boat.")] * 2
    body = {"model": "tiny:latest", "messages": [user("Say that in other words.")]}
    stream = served.post(CHAT, **body)
    whole = served.post(CHAT, **body, stream=False)

    assert stream.headers["content-type"] == "application/x-ndjson"
    *parts, last = [line for _, line in stream.events]
    assert not any(part["done"] for part in parts)
    text = "".join(part["message"]["content"] for part in parts)
    assert text == whole.body["message"]["content"] == "In other words, a boat."
    for end in (last, whole.body):
        assert (end["done"], end["done_reason"]) == (True, "stop")
        assert end["prompt_eval_count"] > 0
        assert end["eval_count"] == served.finished[-1].usage.output_tokens
    assert last["message"] == {"role": "assistant", "content": ""}


def test_durations_are_the_engine_s_in_nanoseconds(served: ServedModel) -> None:
    end = served.post(CHAT, messages=[user("Hello.")], options={"num_predict": 3}, stream=False)

    usage = served.finished[-1].usage
    assert end.body["done_reason"] == "length"
    assert end.body["total_duration"] == round(usage.total_ms * 1e6)
    parts = ("load_duration", "prompt_eval_duration", "eval_duration")
    assert sum(end.body[part] for part in parts) == pytest.approx(end.body["total_duration"], abs=3)


def test_options_reach_the_engine(served: ServedModel) -> None:
    options = {
        "temperature": 0.25,
        "top_p": 0.5,
        "top_k": 7,
        "min_p": 0.125,
        "seed": 11,
        "num_predict": 1,
        "repeat_penalty": 1.5,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.25,
        "num_ctx": 4096,
    }
    answer = served.post(
        CHAT, messages=[user("Hi.")], options=options, keep_alive="5m", think=False
    )

    request = served.requests[-1]
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.25, 0.5, 7)
    assert (sampling.min_p, sampling.seed, sampling.repetition_penalty) == (0.125, 11, 1.5)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (0.5, 0.25)
    assert (request.max_tokens, request.thinking) == (1, False)
    assert answer.headers["x-rejoinder-ignored"] == "keep_alive, options.num_ctx"


@pytest.mark.parametrize("limit", [-2, -1, 0, None])
def test_answer_without_a_limit_may_fill_the_context(limit: int | None) -> None:
    chat = ollama.read_chat(
        Fields({"messages": [user("Hi.")], "options": {"num_predict": limit, "seed": -1}})
    )

    assert chat.max_tokens is None
    assert "seed" not in chat.sampling


def test_answer_ends_before_a_stop_text(served: ServedModel) -> None:
    served.replies.append(ForcedReply(text="one, two, three, four"))
    answer = served.post(CHAT, messages=[user("Count.")], options={"stop": ["three"]}, stream=False)

    assert answer.body["message"]["content"] == "one, two, "
    assert answer.body["done_reason"] == "stop"


@pytest.mark.parametrize(
    ("think", "thinking"),
    [(True, True), (False, False), (None, None), ("low", True), ("high", True)],
)
def test_think_is_a_flag_or_an_effort(think: object, thinking: bool | None) -> None:
    assert (
        ollama.read_chat(Fields({"messages": [user("Hi.")], "think": think})).thinking is thinking
    )


def test_calls_and_results_are_translated() -> None:
    call = {"id": "c1", "function": {"name": "look", "arguments": {"word": "fox"}}}
    asked = [
        user("What is a fox?"),
        {"role": "assistant", "content": "", "thinking": "Well.", "tool_calls": [call]},
    ]
    for named in ({"tool_name": "look"}, {"name": "look"}, {"tool_call_id": "c1"}):
        result = {"role": "tool", "content": "Red.", **named}
        chat = ollama.read_chat(Fields({"messages": [*asked, result], "tools": [LOOK]}))

        _, reply, told = chat.messages
        assert (reply.reasoning, reply.calls) == (
            "Well.",
            (ToolCall(name="look", arguments='{"word": "fox"}'),),
        )
        assert (told.role, told.content, told.tool_name) == (Role.TOOL, "Red.", "look")
        assert json.loads(chat.tools)[0]["function"]["name"] == "look"


def test_calls_are_written_with_arguments_as_objects() -> None:
    pieces = [Begun(10, 7), Thought("Well."), Said("I look."), Called(CALL), Called(CALL), ENDED]
    answer = WholeAnswer()
    for piece in pieces:
        answer.add(piece)
    thought, said, first, second, end = lines_of(*pieces)
    whole: Any = new_form().whole(answer, ENDED)

    assert thought["message"] == {"role": "assistant", "content": "", "thinking": "Well."}
    assert said["message"]["content"] == "I look."
    calls = [*first["message"]["tool_calls"], *second["message"]["tool_calls"]]
    for written in (calls, whole["message"]["tool_calls"]):
        assert [call["function"] for call in written] == [
            {"index": index, "name": "look", "arguments": {"word": "fox", "times": 2}}
            for index in (0, 1)
        ]
    assert whole["message"]["thinking"] == "Well."
    assert (end["total_duration"], end["load_duration"]) == (12_500_000, 1_000_000)
    assert (end["prompt_eval_duration"], end["eval_duration"]) == (4_000_000, 7_500_000)


def test_sign_of_life_is_a_part_without_text() -> None:
    """Ollama's clients for Go and Python fail at an empty line, and know no comments."""
    (line,) = lines_of(SignOfLife(5, 10))

    assert line["message"] == {"role": "assistant", "content": ""}
    assert line["done"] is False


def test_error_within_a_stream_is_a_line() -> None:
    (line,) = new_form().error(ServerError(ErrorKind.UNAVAILABLE, "It failed."))

    assert json.loads(line) == {"error": "It failed."}


def test_generate_answers_a_prompt_as_a_user_message(served: ServedModel) -> None:
    served.replies += [ForcedReply(text="A boat.")] * 2
    body = {"model": "tiny", "prompt": "What is it?", "system": "Be brief."}
    stream = served.post(GENERATE, **body)
    whole = served.post(GENERATE, **body, stream=False)

    assert "".join(line["response"] for _, line in stream.events) == "A boat."
    assert whole.body["response"] == "A boat."
    assert [(one.role, one.content) for one in served.requests[-1].messages] == [
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "What is it?"),
    ]


@pytest.mark.parametrize(
    ("path", "body", "part"),
    [
        (GENERATE, {}, {"response": ""}),
        (GENERATE, {"prompt": ""}, {"response": ""}),
        (CHAT, {"messages": []}, {"message": {"role": "assistant", "content": ""}}),
    ],
)
def test_request_without_a_prompt_only_loads_the_model(
    served: ServedModel, path: str, body: dict[str, Any], part: dict[str, Any]
) -> None:
    answer = served.post(path, model="tiny", keep_alive="5m", **body)

    assert answer.body.items() >= {**part, "done": True, "done_reason": "load"}.items()
    assert answer.headers["x-rejoinder-ignored"] == "keep_alive"
    assert not served.requests


REFUSED: list[tuple[str, str, object]] = [
    (CHAT, "messages", "Hi."),
    (CHAT, "messages", [{"role": "assistant", "content": "Hello."}]),
    (CHAT, "messages[0].role", [{"role": "wizard", "content": "Hi."}]),
    (CHAT, "messages[0].images", [{**user("Hi."), "images": ["aaaa"]}]),
    (CHAT, "messages[0].tool_calls[0].function", [{"role": "user", "tool_calls": [{}]}]),
    (
        CHAT,
        "arguments",
        [{"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": "{}"}}]}],
    ),
    (CHAT, "format", "xml"),
    (CHAT, "format", [{"type": "object"}]),
    (CHAT, "think", "wildly"),
    (CHAT, "think", 1),
    (CHAT, "logprobs", "many"),
    (CHAT, "options", [1]),
    (CHAT, "options.temperature", {"temperature": "hot"}),
    (CHAT, "tools[0].type", [{"type": "search"}]),
    (GENERATE, "suffix", "an end"),
    (GENERATE, "raw", True),
    (GENERATE, "template", "{{ .Prompt }}"),
    (GENERATE, "context", [1, 2]),
    (GENERATE, "images", ["aaaa"]),
    (GENERATE, "prompt", 5),
]


@pytest.mark.parametrize(("path", "field", "value"), REFUSED)
def test_what_cannot_be_done_is_refused_with_the_field(
    served: ServedModel, path: str, field: str, value: object
) -> None:
    name = next(part for part in field.replace("[", ".").split(".") if part)
    name = "messages" if name == "arguments" else name
    answer = served.post(path, **{"messages": [user("Hi.")], "prompt": "Hi.", name: value})

    assert answer.status == 400
    assert field in answer.body["error"]
    assert not served.requests


def test_models_are_listed_and_shown(served: ServedModel) -> None:
    name = served.get("/v1/models").body["data"][0]["id"]
    for path in ("/api/tags", "/api/ps"):
        (model,) = served.get(path).body["models"]
        assert (model["name"], model["model"]) == (name, name)
        assert model["size"] > 0
    shown = served.post("/api/show", model=name).body

    family = shown["model_info"]["general.architecture"]
    length = served.get("/v1/models").body["data"][0]["context_length"]
    assert shown["model_info"][f"{family}.context_length"] == length
    assert shown["capabilities"] == ["completion", "thinking"]


def test_capabilities_are_those_of_the_model() -> None:
    model = replace(MODEL, can_use_tools=True, has_thinking=True)

    listed = listed_facts(model.name, model)
    assert ollama_models.show(listed, model)["capabilities"] == ["completion", "tools", "thinking"]


def test_version_is_bare_and_new_enough(served: ServedModel) -> None:
    version = served.get("/api/version").body["version"]

    assert [int(part) for part in version.split(".")] >= [0, 13, 4]


@pytest.mark.parametrize("path", ["/api/pull", "/api/embed", "/api/delete", "/api/blobs/sha256:1"])
def test_other_addresses_of_ollama_are_not_found(served: ServedModel, path: str) -> None:
    answer = served.post(path, model="tiny")

    assert answer.status == 404
    assert "/api/chat" in answer.body["error"]


def test_errors_have_the_form_of_ollama(served: ServedModel) -> None:
    wrong_key = served.send("GET", "/api/tags", headers={"authorization": ""})
    wrong_method = served.get(CHAT)

    assert (wrong_key.status, wrong_method.status) == (401, 405)
    assert isinstance(wrong_key.body["error"], str)
    assert wrong_method.body == {"error": words.wrong_method("POST")}


def test_without_a_model_nothing_runs() -> None:
    with served_model(None) as served:
        for path in ("/api/ps", "/api/tags"):
            assert served.get(path).body == {"models": []}
        assert served.get("/api/version").status == 200
        answer = served.post(CHAT, messages=[user("Hi.")])
        assert (answer.status, answer.body) == (503, {"error": words.NO_MODEL})


class LineAgent:
    """A client that keeps the messages of all answers, as Ollama's own programs do."""

    def __init__(self, served: ServedModel, *, streams: bool) -> None:
        self._served = served
        self._streams = streams
        self.messages: list[dict[str, Any]] = [RULES]

    def send(self, message: dict[str, Any], reply: ForcedReply | None, **body: Any) -> None:
        """Send a message. reply: the reply of the model; None: the model draws one."""
        if reply is not None:
            self._served.replies.append(reply)
        self.messages.append(message)
        answer = self._served.post(CHAT, messages=self.messages, stream=self._streams, **body)
        parts = [line for _, line in answer.events] if self._streams else [answer.body]
        said: dict[str, Any] = {"role": "assistant", "content": ""}
        for part in parts:
            for name, value in part["message"].items():
                said[name] = said.get(name, type(value)()) + value if name != "role" else value
        self.messages.append(said)
        self._served.await_idle()
        assert self._served.redo() == 0


@pytest.mark.parametrize(
    ("template", "streams"),
    rest_in_soak(
        product([Template.KEEPING, Template.THINKING], [False, True]),
        (Template.KEEPING, False),
        (Template.THINKING, True),
    ),
)
@pytest.mark.parametrize("name", rest_in_soak(["qwen3_5", "lfm2", "llama"], "qwen3_5"))
def test_turns_edits_and_branches_feed_no_known_token(
    tiny_model: TinyModel, name: str, template: Template, *, streams: bool
) -> None:
    # A reply of the thinking template is forced: a random one never ends its reasoning.
    thinks = template is Template.THINKING
    reply = ForcedReply(text="A boat.", reasoning="Well.") if thinks else None
    options = {"temperature": 1.0, "num_predict": 12}
    with served_model(tiny_model(name, template)) as served:
        agent = LineAgent(served, streams=streams)
        starts: list[int] = []  # numbers of messages before the turns
        for turn in range(4):
            starts.append(len(agent.messages))
            agent.send(user(f"What is number {turn} like?"), reply, options=options)
        for turn in (3, 1):
            kept = list(agent.messages)
            agent.messages = kept[: starts[turn]]
            agent.send(user(f"In other words, number {turn}."), reply, options=options)
            agent.messages = kept
        agent.send(user("And then?"), reply, options=options)

        replies = [one.reply for one in served.requests[-1].messages if one.role == "assistant"]
        assert len(replies) == 4
        assert None not in replies


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, True])
def test_calls_and_their_results_feed_no_known_token(
    calling: ServedModel, *, streams: bool
) -> None:
    agent = LineAgent(calling, streams=streams)

    def send(message: dict[str, Any], reply: str) -> None:
        agent.send(message, ForcedReply(text=reply), tools=[LOOK], think=False)

    send(user(f"{streams}: what is a fox?"), LOOKING)
    said = agent.messages[-1]
    assert said["content"] == "I look."
    assert said["tool_calls"][0]["function"]["arguments"] == {"word": "fox"}
    send({"role": "tool", "tool_name": "look", "content": "Red."}, "It is red.")
    send(user("Sure?"), "Yes.")

    own = [one for one in calling.requests[-1].messages if one.role == "assistant"]
    assert all(one.reply is not None for one in own)
    assert calling.requests[-1].messages[-3].tool_name == "look"
