"""A model's chat template, run in transformers' Jinja sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from jinja2 import TemplateError as JinjaError
from transformers.utils.chat_template_utils import (
    render_jinja_template,  # pyright: ignore[reportUnknownVariableType] — bare dict in its types
)

from engine.errors import TemplateError
from engine.types import Message

# Typed to return one string, it returns a list of them and the ranges of replies.
_render = cast("Callable[..., tuple[list[str], object]]", render_jinja_template)

# What a template can raise besides Jinja's own errors when it meets a message it did not expect.
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


class JinjaRenderer:
    """Renders with the template that came with the model. Engine thread only."""

    def __init__(self, template: str, special_tokens: Mapping[str, str]) -> None:
        self._run = partial(_render, chat_template=template, **special_tokens)

    def render(
        self, messages: Sequence[Message], *, options: Mapping[str, bool], reply_follows: bool
    ) -> str:
        def run(rows: list[dict[str, str]]) -> str:
            rendered, _ = self._run(
                conversations=[rows], add_generation_prompt=reply_follows, **options
            )
            return rendered[0]

        return _guarded(run, messages)


class FunctionRenderer:
    """Renders with a template that mlx-lm has as code, for models that come without one."""

    def __init__(self, apply: Callable[..., str]) -> None:
        self._apply = apply

    def render(
        self, messages: Sequence[Message], *, options: Mapping[str, bool], reply_follows: bool
    ) -> str:
        def run(rows: list[dict[str, str]]) -> str:
            return self._apply(rows, tokenize=False, add_generation_prompt=reply_follows, **options)

        return _guarded(run, messages)


def _guarded(run: Callable[[list[dict[str, str]]], str], messages: Sequence[Message]) -> str:
    try:
        return run([_as_row(message) for message in messages])
    except _TEMPLATE_ERRORS as error:
        raise TemplateError(f"It says: {str(error).strip() or type(error).__name__}.") from error


def _as_row(message: Message) -> dict[str, str]:
    """A message as templates expect it."""
    row = {"role": message.role.value, "content": message.content}
    if message.reasoning:
        row["reasoning_content"] = message.reasoning
    return row
