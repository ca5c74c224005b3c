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
# Most characters of all rules. The definitions of a schema are repeated for each argument in XML,
# so that 2 MB of schemas could become 10 GB of rules.
_MAX_LEN = 8_000_000
# Blanks only where a reader expects them. Otherwise a model could write blanks without end.
_JSON_OPTIONS = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
# Formats of texts that llguidance knows
_TEXT_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri")
)
_VALUES = ("enum", "const", "default", "examples")  # keywords with values in place of schemas
# Keywords of a schema to which its parts refer
_DEFINITIONS = ("$defs", "definitions")
# Keywords whose values are objects of schemas by name
_NAMED = (*_DEFINITIONS, "properties", "patternProperties", "dependentSchemas")


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
        AnswerFormatError: no grammar is known for the calls of this model, or a function is
            missing.
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
        self._len = 0

    def add(self, body: str, attributes: str = "") -> str:
        """Add a rule. Return its name.

        Raises:
            AnswerFormatError: the rules are too long.
        """
        name = f"r{len(self._lines)}"
        self._lines.append(f"{name}{attributes}: {body}\n")
        self._len += len(body)
        if self._len > _MAX_LEN:
            raise AnswerFormatError("The schemas are too large.")
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
    known: dict[str, object] = {}
    for key, value in cast("dict[str, object]", schema).items():
        if key in _NAMED and isinstance(value, dict):  # its keys are no keywords
            named = cast("_Json", value)
            known[key] = {name: _without_unknown_formats(part) for name, part in named.items()}
        elif key in _VALUES:
            known[key] = value
        elif key != "format" or value in _TEXT_FORMATS:
            known[key] = _without_unknown_formats(value)
    return known


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
        parameters = functions[name].get("parameters") or {"type": "object"}
        if not isinstance(parameters, dict):
            raise AnswerFormatError(f"The parameters of {name} are not a JSON schema.")
        bodies.append(body_of(rules, name, cast("_Json", parameters)))
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
    properties = cast("object", parameters.get("properties") or {})
    required = cast("object", parameters.get("required") or [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise AnswerFormatError(f"The parameters of {name} are not a JSON schema.")
    parts = [_xml_start("function", name)]
    for key, schema in cast("_Json", properties).items():
        argument = rules.add(
            f"{_xml_start('parameter', key)} {_xml_value(rules, schema, parameters)}"
        )
        parts.append(argument if key in required else f"{argument}?")
    return rules.add(" ".join([*parts, '"</function>"']))


_XML_END = "\n</parameter>\n"


def _xml_start(element: str, name: str) -> str:
    """Return the start of an element as a text in the language of llguidance.

    Raises:
        AnswerFormatError: the parser (mlx_lm.tool_parsers.qwen3_coder) would not read the name as a
            whole.
    """
    if not name or any(char.isspace() or char in "<>" for char in name):
        raise AnswerFormatError(f"This model cannot write the name {json.dumps(name)} in a call.")
    return json.dumps(f"<{element}={name}>\n")


def _xml_value(rules: _Rules, schema: object, parameters: _Json) -> str:
    """Add the rule of an argument's value with the end of its element. Return its name.

    A text stands as it is, and any other value as JSON.
    """
    kinds = [_xml_kind(rules, part, parameters) for part in _alternatives(schema, parameters)]
    if not kinds:
        raise AnswerFormatError("The schema of a parameter only refers to itself.")
    return rules.add(" | ".join(kinds))


def _xml_kind(rules: _Rules, schema: _Json, parameters: _Json) -> str:
    """Add the rule of one alternative of an argument's value with the end. Return its name."""
    end, is_text = json.dumps(_XML_END), schema.get("type") == "string"
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if values and isinstance(values, list):
        listed = cast("list[object]", values)
        texts = [
            value if isinstance(value, str) else json.dumps(value)
            for value in listed
            if isinstance(value, str) or not is_text
        ]
        return rules.add(f"({' | '.join(map(json.dumps, texts))}) {end}")
    if not is_text:
        return rules.add(f"{rules.add(_json_rule(schema, parameters))} {end}")
    most = schema.get("maxLength")
    length = f"{{0,{most}}}" if isinstance(most, int) else "*"
    return rules.add(f"/(?s:.{length})/", f"[suffix={end}]")


def _alternatives(schema: object, parameters: _Json) -> Iterator[_Json]:
    """Yield the schemas of which a value must match one. References to definitions are followed.

    Each reference is followed once. Otherwise a few definitions could stand for millions of
    schemas.
    """
    waiting, seen = [schema], set[str]()
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            raise AnswerFormatError("The schema of a parameter is not an object.")
        part = cast("_Json", part)
        reference, choices = part.get("$ref"), part.get("anyOf", part.get("oneOf"))
        if isinstance(reference, str) and (target := _defined(reference, parameters)) is not None:
            if reference not in seen:
                seen.add(reference)
                waiting.append(target)
        elif isinstance(choices, list) and choices and "type" not in part:
            waiting += reversed(cast("list[object]", choices))
        else:
            yield part


def _defined(reference: str, parameters: _Json) -> object:
    """Return the definition to which a reference leads. None: it leads elsewhere."""
    keyword, _, name = reference.removeprefix("#/").partition("/")
    definitions = parameters.get(keyword) if keyword in _DEFINITIONS else None
    return cast("_Json", definitions).get(name) if isinstance(definitions, dict) else None


# By the name of the parser: a function that adds the rule of a call to one function.
_CALL_BODIES: dict[str, Callable[[_Rules, str, _Json], str]] = {
    "json_tools": _json_call,
    "qwen3_coder": _xml_call,
}
