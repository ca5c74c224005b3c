"""The tool calls that a model writes, parsed by the parsers of mlx-lm in the worker process."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from engine.errors import ToolCallError
from engine.models import isolated
from engine.models.isolated import CallParser
from engine.types import ToolCall
from engine.worker.process import shared_worker
from tests.fakes.tables import rest_in_soak

TOOLS = json.dumps(
    [
        {
            "type": "function",
            "function": {
                "name": "look",
                "description": "Look a word up.",
                "parameters": {
                    "type": "object",
                    "properties": {"word": {"type": "string"}, "n": {"type": "integer"}},
                },
            },
        }
    ]
)
_GLM = "look\n<arg_key>word</arg_key>\n<arg_value>a b</arg_value>\n<arg_key>n</arg_key>\n<arg_value>3</arg_value>\n"
# The call look(word="a b", n=3) in the form of each parser of mlx-lm.
CALLS = {
    "function_gemma": "call:look{word:<escape>a b<escape>,n:3}",
    "gemma4": 'call:look{word:<|"|>a b<|"|>,n:3}',
    "glm47": _GLM,
    "json_tools": '\n{"name": "look", "arguments": {"word": "a b", "n": 3}}\n',
    "kimi_k2": "<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>"
    '{"word": "a b", "n": 3}<|tool_call_end|>',
    "kimi_k3": '<|open|>call tool="look" index="1"<|sep|><|open|>argument key="word" type="string"<|sep|>'
    'a b<|close|>argument<|sep|><|open|>argument key="n" type="number"<|sep|>3<|close|>argument<|sep|>'
    "<|close|>call<|sep|>",
    "laguna": _GLM,
    "longcat": _GLM.replace("<arg", "<longcat_arg").replace("</arg", "</longcat_arg"),
    "minicpm5": '"look"><param name="word">a b</param><param name="n">3</param>',
    "minimax_m2": '\n<invoke name="look">\n<parameter name="word">a b</parameter>\n'
    '<parameter name="n">3</parameter>\n</invoke>\n',
    "mistral": '[{"name": "look", "arguments": {"word": "a b", "n": 3}}]',
    "muse_spark": '<atem:invoke name="look"><atem:parameter name="word">a b</atem:parameter>'
    '<atem:parameter name="n">3</atem:parameter></atem:invoke>',
    "pythonic": '[look(word="a b", n=3)]',
    "qwen3_coder": "\n<function=look>\n<parameter=word>\na b\n</parameter>\n"
    "<parameter=n>\n3\n</parameter>\n</function>\n",
}
# Texts that are no call in the form of a parser. Those of GLM take every text for a call.
NO_CALLS = [
    *((name, "It rains {[<") for name in CALLS if name not in {"glm47", "laguna"}),
    ("json_tools", ""),
    ("json_tools", '{"name": "look", "arguments": [3]}'),
    ("json_tools", '{"name": "", "arguments": {}}'),
    ("json_tools", '{"name": "look", "arguments": {"n": NaN}}'),
    ("json_tools", '{"name": "look", "arguments": ' + '{"n": ' * 3000 + "}" * 3001),
    ("pythonic", "[look(n={1, 2})]"),
    ("mistral", "look[ARGS]{"),
    ("", CALLS["json_tools"]),
]


def test_table_has_every_parser_of_mlx_lm() -> None:
    spec = find_spec("mlx_lm")
    assert spec is not None
    assert spec.origin is not None
    modules = (Path(spec.origin).parent / "tool_parsers").glob("[!_]*.py")

    assert {module.stem for module in modules} == set(CALLS)


@pytest.mark.parametrize("name", rest_in_soak(CALLS, "qwen3_coder", "minicpm5", "pythonic"))
def test_call_in_the_form_of_each_parser_is_found(name: str) -> None:
    (call,) = CallParser(name).parse(CALLS[name], TOOLS)

    assert (call.name, json.loads(call.arguments)) == ("look", {"word": "a b", "n": 3})


def test_several_calls_in_one_text_are_all_found() -> None:
    calls = CallParser("pythonic").parse("[look(n=1), look(n=2)]", "")

    assert calls == tuple(ToolCall(name="look", arguments=f'{{"n": {n}}}') for n in (1, 2))


def test_arguments_as_text_become_an_object() -> None:
    (call,) = CallParser("json_tools").parse('{"name": "look", "arguments": "{\\"n\\": 1}"}', "")

    assert call.arguments == '{"n": 1}'


@pytest.mark.parametrize(("name", "text"), rest_in_soak(NO_CALLS, *NO_CALLS[-8:]))
def test_text_that_is_no_call_gives_a_sentence(name: str, text: str) -> None:
    with pytest.raises(ToolCallError, match=r"^(Its text is not|The form of)"):
        CallParser(name).parse(text, TOOLS)


def test_text_that_a_parser_searches_for_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = CallParser("function_gemma")
    parser.parse(CALLS["function_gemma"], "")
    with monkeypatch.context() as patch:
        patch.setattr(isolated, "_CALL_S", 0.2)
        patch.setattr(isolated, "_CHARACTER_S", 0.0)
        with pytest.raises(ToolCallError, match="It takes longer than"):
            parser.parse("call:a{" * 100_000, "")

    assert parser.parse(CALLS["function_gemma"], "")


def test_long_text_is_not_parsed() -> None:
    with pytest.raises(ToolCallError, match="It has more than"):
        CallParser("json_tools").parse(" " * 5_000_000, "")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the maps of a process")
def test_worker_process_loads_no_mlx_for_a_parser() -> None:
    CallParser("qwen3_coder").parse(CALLS["qwen3_coder"], TOOLS)
    maps = psutil.Process(shared_worker().process_id).memory_maps()

    assert not any("mlx" in file.path for file in maps)
