"""The grammar of an answer format, in the language of llguidance. Pure functions.

A grammar consists of rules, each on one line. `%json` stands for the JSON values of a schema, and
`<[7]>` for the token with the id 7. A text in quotes is written as in JSON.

Source: llguidance, docs/syntax.md and docs/json_schema.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from engine.errors import AnswerFormatError
from engine.types import AnswerFormat

_Json = Mapping[str, object]
# Blanks only where a reader expects them. Otherwise a model could write blanks without end.
_JSON_OPTIONS = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
# Formats of texts that llguidance knows
_TEXT_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri")
)
_VALUES = ("enum", "const", "default", "examples")  # keywords with values in place of schemas
# Keywords of a schema to which its parts refer
_DEFINITIONS = ("$defs", "definitions")


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """The form in which a model writes a tool call."""

    parser: str  # name of the module in mlx_lm.tool_parsers; "" if it is not known
    start: str  # text before a call, as a text or a token in the language of llguidance
    end: str  # text after a call, in the same way


def grammar_text(answer: AnswerFormat, tools: str, syntax: CallSyntax) -> str:
    """Return the grammar of an answer format.

    Args:
        answer: the format.
        tools: Request.tools.
        syntax: the form of the model's calls.

    Raises:
        AnswerFormatError: no grammar is known for the calls of this model, or a function is missing.
    """
    rules = _Rules()
    kinds: list[str] = []
    if answer.schema:
        kinds.append(rules.add(_json_rule(cast("_Json", json.loads(answer.schema)))))
    if answer.functions:
        call = _call_rule(rules, answer, tools, syntax)
        kinds.append(call if answer.calls_once else f'{call} ("\\n" {call})*')
    return f"start: {' | '.join(kinds)}\n{rules.text}"


class _Rules:
    """The rules of one grammar."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, body: str, attributes: str = "") -> str:
        """Add a rule. Return its name."""
        name = f"r{len(self._lines)}"
        self._lines.append(f"{name}{attributes}: {body}\n")
        return name

    @property
    def text(self) -> str:
        return "".join(self._lines)


def _json_rule(schema: _Json, within: _Json | None = None) -> str:
    """Return the body of a rule for the JSON values of a schema.

    within: another schema, to whose definitions this one may refer.
    """
    shared = {name: value for name, value in (within or {}).items() if name in _DEFINITIONS}
    known = cast("_Json", _without_unknown_formats({**shared, **schema}))
    return f"%json {json.dumps({**known, 'x-guidance': _JSON_OPTIONS})}"


def _without_unknown_formats(schema: object) -> object:
    """Return a schema without formats of texts that llguidance refuses.

    They demand nothing: JSON Schema 2020-12, Validation, section 7.2.3.
    """
    if isinstance(schema, list):
        return [_without_unknown_formats(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _VALUES else _without_unknown_formats(value)
        for key, value in cast("dict[str, object]", schema).items()
        # The format of a property that is named "format" is an object.
        if not (key == "format" and isinstance(value, str) and value not in _TEXT_FORMATS)
    }


def _call_rule(rules: _Rules, answer: AnswerFormat, tools: str, syntax: CallSyntax) -> str:
    """Add the rules of one call. Return the name of the last."""
    body_of = _CALL_BODIES.get(syntax.parser)
    if body_of is None:
        raise AnswerFormatError("This model’s form of tool calls is not known well enough.")
    functions = {str(tool["name"]): tool for tool in _functions(tools)}
    bodies: list[str] = []
    for name in answer.functions:
        if name not in functions:
            raise AnswerFormatError(f"There is no tool named {name}.")
        parameters = functions[name].get("parameters")
        bodies.append(body_of(rules, name, cast("_Json", parameters or {"type": "object"})))
    return rules.add(f'{syntax.start} "\\n" ({" | ".join(bodies)}) "\\n" {syntax.end}')


def _functions(tools: str) -> Iterator[_Json]:
    for tool in cast("list[dict[str, _Json]]", json.loads(tools or "[]")):
        yield tool["function"]


def _json_call(rules: _Rules, name: str, parameters: _Json) -> str:
    """Add the rule of a call as a JSON object. Return its name."""
    start = json.dumps(f'{{"name": {json.dumps(name)}, "arguments": ')
    return rules.add(f'{start} {rules.add(_json_rule(parameters))} "}}"')


def _xml_call(rules: _Rules, name: str, parameters: _Json) -> str:
    """Add the rule of a call with one element for each argument. Return its name."""
    properties = cast("Mapping[str, _Json]", parameters.get("properties") or {})
    required = cast("list[str]", parameters.get("required") or [])
    parts = [json.dumps(f"<function={name}>\n")]
    for key, schema in properties.items():
        start = json.dumps(f"<parameter={key}>\n")
        argument = rules.add(f"{start} {_xml_value(rules, schema, parameters)}")
        parts.append(argument if key in required else f"{argument}?")
    return rules.add(" ".join([*parts, '"</function>"']))


_XML_END = "\n</parameter>\n"


def _xml_value(rules: _Rules, schema: _Json, parameters: _Json) -> str:
    """Add the rule of an argument's value with the end of its element. Return its name.

    A text stands as it is, and any other value as JSON.
    """
    if schema.get("type") != "string":
        return rules.add(f"{rules.add(_json_rule(schema, parameters))} {json.dumps(_XML_END)}")
    if choices := cast("list[str]", schema.get("enum") or []):
        texts = " | ".join(json.dumps(choice) for choice in choices)
        return rules.add(f"({texts}) {json.dumps(_XML_END)}")
    most = schema.get("maxLength")
    length = f"{{0,{most}}}" if isinstance(most, int) else "*"
    return rules.add(f"/(?s:.{length})/", f"[suffix={json.dumps(_XML_END)}]")


# By the name of the parser: a function that adds the rule of a call to one function.
_CALL_BODIES: dict[str, Callable[[_Rules, str, _Json], str]] = {
    "json_tools": _json_call,
    "qwen3_coder": _xml_call,
}
