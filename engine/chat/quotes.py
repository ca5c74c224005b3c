"""Quote the texts of tools and tool calls, so that no control token is recognised in them.

A chat template writes the tools of a request and the calls of earlier messages into its own text,
in which control tokens are recognised. But a client wrote their texts. The spelling of a control
token may be in one text, or the template may complete it: "<", a key of the arguments, ">".

So each of these texts is put between two characters from Unicode's private-use area before the
template gets it. The characters occur in no text of the request. In the output, all text between
them is
quoted: `Quotes.divide` cuts the segments of the template there, and `Quotes.remove` takes only the
characters away. Words such as "properties" and types such as "string" are not quoted, because
templates look for them.

Callers: ChatTemplate (template.py) quotes the messages and tools of each prompt.
checking/prompts.py replaces the same texts by placeholders.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from engine.chat.segments import Segment, escapes, free_characters, texts_of
from engine.errors import ToolsError
from engine.types import Message, Role, ToolCall

# Keys of OpenAI's API and of JSON schemas, and the values of the key "type": templates look for
# them.
_KEYS = frozenset(
    """type function name description parameters properties required items enum anyOf oneOf allOf not const
    default format title additionalProperties strict nullable return returns response examples pattern
    minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems
    uniqueItems prefixItems minProperties maxProperties $ref $defs $schema definitions""".split()  # noqa: SIM905
)
# Keys of a schema whose value has names of the client as keys.
_OF_NAMES = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_TYPES = frozenset("function object array string integer number boolean null".split())  # noqa: SIM905
_NO_TOOLS = "They are not a list of functions with names, in JSON."
_NO_ARGUMENTS = "The arguments of a call are not a JSON object."
_TOO_DEEP = "A tool or the arguments of a call are nested too deeply."
_CHANGED = "The chat template of the model changes their texts."


@dataclass(frozen=True, slots=True)
class Quotes:
    """The messages and the tools of a request, with quoted texts.

    The opening character, the index of the call's message and the opening character again stand
    before a text, and the closing character after it. A text of the tools has no index.
    """

    messages: tuple[Message, ...]
    tools: list[object]  # as the template gets them; empty if there are none
    names: Counter[tuple[str, str]]  # index and name of each tool and each call
    opening: str  # "" if nothing is quoted
    closing: str

    @classmethod
    def of(cls, messages: Sequence[Message], tools: str) -> Quotes:
        """Quote the texts of tools and of the calls in messages.

        Raises:
            ToolsError: the tools or the arguments of a call do not have the form that they must
                have.
        """
        if not tools and not any(m.calls or m.tool_name for m in messages):
            return cls(tuple(messages), [], Counter(), "", "")
        parsed = parsed_tools(tools)
        opening, closing = free_characters([*texts_of(messages), _as_json(parsed)], 2)

        def quote(index: str, text: str) -> str:
            # Templates check whether a text is empty.
            return text and f"{opening}{index}{opening}{text}{closing}"

        names = [("", _name(tool)) for tool in parsed]
        names += [(str(i), call.name) for i, m in enumerate(messages) for call in m.calls]
        return cls(
            tuple(
                map_calls(message, partial(quote, str(_calling(messages, index))))
                for index, message in enumerate(messages)
            ),
            cast("list[object]", map_schema(parsed, partial(quote, ""))),
            Counter(names),
            opening,
            closing,
        )

    def remove(self, text: str) -> str:
        """Return a rendered text without the characters around quoted texts.

        Raises:
            ToolsError: the template left out a tool or a call, or changed one of their texts.
        """
        parts = self._cut(text)
        self._check_shown(parts)
        return "".join(part for part, _ in parts)

    def divide(self, segments: Sequence[Segment]) -> list[Segment]:
        """Cut the template's text in segments before and after each quoted text.

        Text of a call belongs to the message of the call, and so does the template's text before
        it.

        Raises:
            ToolsError: as in `remove`.
        """
        everything: list[tuple[str, str | None]] = []
        divided: list[Segment] = []
        newest = 0
        for segment in segments:
            parts = [(segment.text, None)] if segment.is_content else self._cut(segment.text)
            everything += parts
            for (text, index), message in zip(parts, _messages(parts, segment), strict=True):
                newest = max(newest, message)
                is_quoted = index is not None
                divided.append(replace(segment, text=text, message=newest, is_quoted=is_quoted))
        self._check_shown(everything)
        return [segment for segment in divided if segment.text]

    def _cut(self, text: str) -> list[tuple[str, str | None]]:
        """Cut a text of the template into its parts, with None, and quoted parts, with an index."""
        if not self.opening:
            return [(text, None)]
        a, b = self.opening, self.closing
        parts: list[tuple[str, str | None]] = []
        end = 0
        for match in re.finditer(f"{a}([0-9]*){a}([^{a}{b}]*){b}", text):
            parts += [(text[end : match.start()], None), (match[2], match[1])]
            end = match.end()
        parts.append((text[end:], None))
        strange = (a, b, *escapes(a), *escapes(b))
        if any(letter in part for part, _ in parts for letter in strange):
            raise ToolsError(_CHANGED)
        return parts

    def _check_shown(self, parts: Sequence[tuple[str, str | None]]) -> None:
        shown = Counter((index, text) for text, index in parts if index is not None)
        for (index, name), number in self.names.items():
            if shown[index, name] + shown[index, _as_json(name)[1:-1]] < number:
                missing = "a tool call of an earlier message" if index else "a tool"
                raise ToolsError(f"The chat template of the model leaves out {missing}.")


def parsed_tools(tools: str) -> list[object]:
    """Return a request's tools as values of JSON.

    Raises:
        ToolsError: they are not a list of functions with names.
    """
    parsed = _parsed(tools, _NO_TOOLS) if tools else list[object]()
    listed = cast("list[object]", parsed) if isinstance(parsed, list) else []
    if not isinstance(parsed, list) or not all(map(_name, listed)):
        raise ToolsError(_NO_TOOLS)
    return listed


def map_schema(value: object, change: Callable[[str], str], key: str = "") -> object:
    """Return a value of JSON with its texts changed, but not the words that templates look for.

    Args:
        value: the tools, or a part of them.
        change: returns the new text for a text.
        key: the key of this value.
    """
    match value:
        case str():
            return value if key == "type" and value in _TYPES else change(value)
        case list():
            return [map_schema(part, change, key) for part in cast("list[object]", value)]
        case dict():
            items = cast("dict[str, object]", value).items()
            if key in _OF_NAMES:
                return {change(k): map_schema(v, change) for k, v in items}
            return {k if k in _KEYS else change(k): map_schema(v, change, k) for k, v in items}
        case _:
            return value


def map_calls(message: Message, change: Callable[[str], str]) -> Message:
    """Return a message with the texts of its calls changed, and the name of its tool.

    Raises:
        ToolsError: the arguments of a call are not a JSON object, or are nested too deeply.
    """
    calls: list[ToolCall] = []
    for call in message.calls:
        arguments = _parsed(call.arguments, _NO_ARGUMENTS)
        if not isinstance(arguments, dict):
            raise ToolsError(_NO_ARGUMENTS)
        try:
            changed = _as_json(_map_texts(cast("object", arguments), change))
        except RecursionError:
            raise ToolsError(_TOO_DEEP) from None
        calls.append(ToolCall(name=change(call.name), arguments=changed))
    tool_name = message.tool_name and change(message.tool_name)
    return replace(message, calls=tuple(calls), tool_name=tool_name)


def _map_texts(value: object, change: Callable[[str], str]) -> object:
    match value:
        case str():
            return change(value)
        case list():
            return [_map_texts(part, change) for part in cast("list[object]", value)]
        case dict():
            items = cast("dict[str, object]", value).items()
            return {change(k): _map_texts(v, change) for k, v in items}
        case _:
            return value


def _calling(messages: Sequence[Message], index: int) -> int:
    """Return the index of the message whose call a message answers, or else the message's own.

    So the name of the tool is quoted as in the call, and a template may compare them.
    """
    name = messages[index].tool_name
    while name and index and messages[index].role is Role.TOOL:
        index -= 1
    return index


def _messages(parts: Sequence[tuple[str, str | None]], segment: Segment) -> list[int]:
    """Return the index of the message of each part of a segment."""
    indices: list[int] = []
    following = segment.message
    for _, index in reversed(parts):
        if index:
            following = min(int(index), segment.message)
        indices.append(following)
    return indices[::-1]


def _name(tool: object) -> str:
    """Return the name of a tool, or "" if it has none."""
    function = cast("dict[str, object]", tool).get("function") if isinstance(tool, dict) else None
    name = cast("dict[str, object]", function).get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def _parsed(text: str, refusal: str) -> object:
    """Return a value of JSON.

    Raises:
        ToolsError: the text is not JSON, for which `refusal` is the sentence, or is nested too
            deeply.
    """
    try:
        parsed: object = json.loads(text)
        # A lone surrogate is half a character, which has no encoding. JSON can contain one.
        return json.loads(_as_json(parsed).encode("utf-8", "replace"))
    except RecursionError:
        raise ToolsError(_TOO_DEEP) from None
    except ValueError as error:
        raise ToolsError(refusal) from error


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
