"""The fields that demand a form of the answer: JSON of a schema, or calls of tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from app.server.errors import invalid, unsupported
from app.server.fields import Fields, as_json
from app.words import server as words
from engine.types import AnswerFormat

# Characters of a schema. Larger ones would stop the engine for seconds while they are compiled.
_MAX_SCHEMA_LEN = 200_000
_ANY_OBJECT: dict[str, object] = {"type": "object"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRule:
    """The calls of tools that the model may write, or has to write."""

    may_call: bool = True
    must_call: bool = False
    name: str = ""  # the tool that must be called; "" for any
    calls_once: bool = False  # True if a second call is not allowed

    def format_with(self, schema: str, tools: str) -> AnswerFormat | None:
        """Return the format of the answer. None if every answer is allowed.

        Args:
            schema: a result of read_schema.
            tools: as in engine.types.Request.

        Raises:
            ServerError: a tool must be called, and there is none.
        """
        names = _names(tools)
        if self.must_call:
            if not names:
                raise invalid(words.NO_TOOLS_TO_CALL, "tool_choice")
            if self.name and self.name not in names:
                raise unsupported("tool_choice", self.name)
            names, schema = (self.name,) if self.name else names, ""
        elif not schema:
            return None
        elif not self.may_call:
            names = ()
        return AnswerFormat(schema=schema, functions=names, calls_once=self.calls_once)


def _names(tools: str) -> tuple[str, ...]:
    """Return the names of the tools of a request."""
    listed = cast("list[dict[str, dict[str, str]]]", json.loads(tools)) if tools else []
    return tuple(tool["function"]["name"] for tool in listed)


def read_call_rule(fields: Fields) -> CallRule:
    """Return the rule of the field tool_choice, in the form of OpenAI's protocols."""
    if isinstance(fields.raw("tool_choice"), dict):
        choice = fields.section("tool_choice")
        assert choice is not None
        if (kind := choice.text("type")) != "function":
            raise unsupported("tool_choice.type", kind)
        named = choice.section("function") or choice
        if not (name := named.text("name")):
            raise invalid(words.wrong_field(named.path_of("name"), words.A_TEXT), "tool_choice")
        return CallRule(must_call=True, name=name, calls_once=True)
    match fields.text("tool_choice"):
        case "" | "auto":
            return CallRule()
        case "none":
            return CallRule(may_call=False)
        case "required":
            once = fields.flag("parallel_tool_calls") is False
            return CallRule(must_call=True, calls_once=once)
        case choice:
            raise unsupported("tool_choice", choice)


def read_schema(section: Fields | None) -> str:
    """Return the JSON schema that an answer's format names, as JSON. "": the answer is free."""
    if section is None:
        return ""
    match section.text("type"):
        case "" | "text":
            return ""
        case "json_object":
            return _schema_of(section, _ANY_OBJECT)
        case "json_schema":
            # Chat completions have a section of their own, the other protocols do not.
            return _schema_of(section.section("json_schema") or section, None)
        case kind:
            raise unsupported(section.path_of("type"), kind)


def _schema_of(section: Fields, default: object) -> str:
    for name in ("name", "description", "strict"):  # the schema is always kept
        section.raw(name)
    schema = section.raw("schema")
    return schema_text(default if schema is None else schema, section.path_of("schema"))


def schema_text(schema: object, path: str) -> str:
    """Return a JSON schema as JSON.

    Args:
        schema: the value of a field.
        path: the field.

    Raises:
        ServerError: it is no object, or too long.
    """
    if not isinstance(schema, dict):
        raise invalid(words.wrong_field(path, words.AN_OBJECT), path)
    text = as_json(cast("object", schema))
    if len(text) > _MAX_SCHEMA_LEN:
        raise invalid(words.schema_too_long(_MAX_SCHEMA_LEN), path)
    return text
