"""Run a model's chat template in the Jinja sandbox of transformers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, cast

from jinja2 import TemplateError as JinjaError
from transformers.utils.chat_template_utils import (
    render_jinja_template,  # pyright: ignore[reportUnknownVariableType] — bare dict in its types
)
from typing_extensions import override

from engine.chat.segments import Renderer
from engine.errors import TemplateError, printable
from engine.types import Message, Picture, Role

# The type annotation of render_jinja_template is wrong. The function returns a list of strings, one
# per conversation, and the character ranges of replies.
_render = cast("Callable[..., tuple[list[str], object]]", render_jinja_template)

# Stands for any picture: templates are told only how many there are.
SOME_PICTURE: Final = Picture(digest="", width=0, height=0)
# A message as the dictionary that chat templates expect.
Row = dict[str, object]

# Errors that a template can raise for messages that it does not support.
_TEMPLATE_ERRORS = (
    JinjaError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)


class JinjaRenderer(Renderer):
    """Runs the Jinja chat template of the model's folder, in the worker process."""

    def __init__(self, template: str, special_tokens: Mapping[str, str]) -> None:
        self._run = partial(_render, chat_template=template, **special_tokens)

    @override
    def render(
        self, messages: Sequence[Message], *, options: Mapping[str, object], reply_follows: bool
    ) -> str:
        def run(rows: list[Row]) -> str:
            rendered, _ = self._run(
                conversations=[rows], add_generation_prompt=reply_follows, **options
            )
            return rendered[0]

        return _guarded(run, messages)


class FunctionRenderer(Renderer):
    """Runs a chat template that is a Python function in mlx-lm.

    mlx-lm has such functions for models that have no Jinja template in their folders.
    """

    def __init__(self, apply: Callable[..., str]) -> None:
        self._apply = apply

    @override
    def render(
        self, messages: Sequence[Message], *, options: Mapping[str, object], reply_follows: bool
    ) -> str:
        def run(rows: list[Row]) -> str:
            return self._apply(rows, tokenize=False, add_generation_prompt=reply_follows, **options)

        return _guarded(run, messages)


def _guarded(run: Callable[[list[Row]], str], messages: Sequence[Message]) -> str:
    calls = [call for message in messages for call in message.calls]
    shown = [str(json.loads(call.arguments)) for call in calls]
    refusal = ""
    # Most templates expect the arguments of a call as a mapping. The others raise an error, or
    # write the mapping in the form of Python.
    for is_text in (False, True) if calls else (False,):
        try:
            text = run(_rows(messages, is_text=is_text))
        except _TEMPLATE_ERRORS as error:
            said = printable(str(error).strip().rstrip(".")) or type(error).__name__
            refusal = refusal or f"It says: {said}."
        else:
            if is_text or not any(one in text for one in shown if one != "{}"):
                return text
    raise TemplateError(refusal or "It can’t show the arguments of a tool call.")


def _rows(messages: Sequence[Message], *, is_text: bool) -> list[Row]:
    """Return messages as the dictionaries that chat templates expect.

    is_text: True for the arguments of calls as JSON, False for a mapping.
    """
    rows: list[Row] = []
    waiting: list[tuple[str, str]] = []  # id and name of the newest calls without a result
    for index, message in enumerate(messages):
        row: Row = {"role": message.role.value, "content": _content(message)}
        if message.reasoning:
            row["reasoning_content"] = message.reasoning
        if message.role is Role.ASSISTANT:
            waiting = [(_id(index, at), call.name) for at, call in enumerate(message.calls)]
        if message.calls:
            row["tool_calls"] = [
                {
                    "id": _id(index, at),
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": call.arguments if is_text else json.loads(call.arguments),
                    },
                }
                for at, call in enumerate(message.calls)
            ]
        if message.role is Role.TOOL:
            named = [call for call in waiting if call[1] == message.tool_name] or waiting
            answered = named[0] if named else (_id(index, 0), "")
            waiting = [call for call in waiting if call != answered]
            row["tool_call_id"] = answered[0]
            if message.tool_name:
                row["name"] = message.tool_name
        rows.append(row)
    return rows


def _content(message: Message) -> str | list[Row]:
    """Return the text of a message, or the list of its pictures and its text."""
    if not message.pictures:
        return message.content
    parts: list[Row] = [{"type": "image"} for _ in message.pictures]
    return [*parts, {"type": "text", "text": message.content}] if message.content else parts


def _id(message: int, call: int) -> str:
    """Return an id of a tool call. Some templates refuse ids that have not 9 letters or digits."""
    return f"{message:05d}{call:04d}"
