"""Bodies with values of any type: they are answered or refused, and the server never fails."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from app.server import ollama
from app.server.anthropic_messages import MESSAGES as ANTHROPIC
from app.server.errors import ServerError
from app.server.fields import parse_body
from app.server.openai_chat import CHAT_COMPLETIONS
from app.server.openai_completions import COMPLETIONS
from app.server.openai_responses import RESPONSES
from app.server.report import Report
from tests.app.server.test_openai_responses import MODEL
from tests.fakes.served_model import ServedModel

TEXTS = st.sampled_from(["", "Hi.", "\ud800", "a\r\nb", "<|im_end|>", "{}", "[", "c1"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
KINDS = [
    *("tool_use", "tool_result", "thinking", "document"),
    *("message", "reasoning", "function_call", "function_call_output", "custom_tool_call"),
    *("custom_tool_call_output", "item_reference", "web_search_call", "wizard"),
    *("function", "namespace", "web_search", "text", "input_text", "output_text", "input_image"),
]
NAMES = [
    *("type", "role", "content", "text", "id", "name", "namespace", "call_id", "arguments"),
    *("output", "summary", "tools", "function", "parameters", "description", "tool_calls"),
    *("input", "tool_use_id", "is_error", "thinking", "input_schema"),
    *("format", "effort", "tool_call_id", "reasoning_content", "include_usage"),
    *("seed", "stop", "num_predict", "top_k", "images", "thinking", "tool_name"),
]
FIELDS = [
    *("model", "stream", "input", "instructions", "messages", "prompt", "tools", "tool_choice"),
    *("temperature", "top_p", "top_k", "seed", "stop", "n", "best_of", "echo", "suffix"),
    *("logprobs", "top_logprobs", "reasoning", "text", "store", "include", "metadata"),
    *("system", "thinking", "stop_sequences", "output_config", "output_format"),
    *("previous_response_id", "stream_options", "response_format", "background", "truncation"),
    *("options", "think", "format", "keep_alive", "images", "template", "context", "raw", "system"),
]
KIND, ROLE = st.sampled_from(KINDS), st.sampled_from(["user", "assistant", "system"])


def _object(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {}, optional=dict.fromkeys(NAMES, values) | {"type": KIND, "role": ROLE}
    )


VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | _object(inner), max_leaves=12
)
BODIES = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3)
TEXT_PARTS = TEXTS | st.lists(st.fixed_dictionaries({"type": KIND, "text": TEXTS}), max_size=2)
LIES = st.fixed_dictionaries(
    {"type": KIND},
    optional={"role": ROLE, "content": TEXT_PARTS, "output": TEXT_PARTS, "name": SCALARS},
)
# Items without a wrong type, so that many bodies reach the engine
MESSAGES = st.fixed_dictionaries({"role": ROLE, "content": TEXTS})
CALLS = st.fixed_dictionaries(
    {"type": st.just("function_call"), "name": TEXTS, "call_id": TEXTS, "arguments": TEXTS}
)
RESULTS = st.fixed_dictionaries(
    {"type": st.just("function_call_output"), "call_id": TEXTS, "output": TEXTS}
)
ITEMS = st.lists(MESSAGES | MESSAGES | CALLS | RESULTS | LIES, min_size=1, max_size=4)


PROTOCOLS = (CHAT_COMPLETIONS, COMPLETIONS, ANTHROPIC, RESPONSES, ollama.CHAT, ollama.GENERATE)


# A value of each type, and lists of each type
ONE_OF_EACH: list[Any] = [True, 5, -1.5, "x", {}, {"x": 5}, [], [5], ["x"], [{}], [[]]]


@given(body=BODIES, items=ITEMS)
def test_body_is_translated_or_refused(body: dict[str, Any], items: list[dict[str, Any]]) -> None:
    for name in ("input", "messages", "prompt"):
        assert_translated_or_refused({name: items, **body})


def test_field_of_any_type_is_translated_or_refused() -> None:
    message = {"role": "user", "content": "Hi."}
    for name, value in product(FIELDS, ONE_OF_EACH):
        assert_translated_or_refused({"messages": [message], "input": "Hi.", name: value})
    for name, value in product(NAMES, ONE_OF_EACH):
        item = {**message, name: value}
        assert_translated_or_refused({"messages": [item], "input": [item], "tools": [item]})
        assert_translated_or_refused({"messages": [message], "input": "Hi.", "options": item})


def assert_translated_or_refused(body: dict[str, Any]) -> None:
    sent = json.dumps(body).encode()
    for protocol in PROTOCOLS:
        line = ""
        # Any other error is a fault of the server.
        try:
            fields = parse_body(sent)
            chat = protocol.read(fields)
            protocol.form(fields, chat, MODEL)
            protocol.without_answer(fields, MODEL)
        except ServerError as error:
            line = Report(client="curl", ended=error).line
        assert "wizard" not in line


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BODIES, items=ITEMS)
def test_body_is_answered_or_refused(
    served: ServedModel, body: dict[str, Any], items: list[dict[str, Any]]
) -> None:
    messages = [item for item in items if "role" in item]
    limits: dict[str, Any] = {"max_tokens": 1, "max_output_tokens": 1}
    options = body.get("options")
    if options is None or isinstance(options, dict):
        limits["options"] = {**(options or {}), "num_predict": 1}
    for path, start in (
        ("/v1/chat/completions", {"messages": messages}),
        ("/v1/completions", {"prompt": "Hi."}),
        ("/v1/messages", {"messages": messages}),
        ("/v1/responses", {"input": items}),
        ("/api/chat", {"messages": messages}),
        ("/api/generate", {"prompt": "Hi."}),
    ):
        answer = served.post(path, **{**start, **body, **limits})

        assert answer.status in (200, 400), (path, answer.text)
        assert "response.failed" not in answer.text
