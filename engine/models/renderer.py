"""Run a model's chat template in the Jinja sandbox of transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from jinja2 import TemplateError as JinjaError
from transformers.utils.chat_template_utils import (
    render_jinja_template,  # pyright: ignore[reportUnknownVariableType] — bare dict in its types
)
from typing_extensions import override

from engine.chat.segments import Renderer
from engine.errors import TemplateError, printable
from engine.types import Message

# The type annotation of render_jinja_template is wrong. The function returns a list of strings, one
# per conversation, and the character ranges of replies.
_render = cast("Callable[..., tuple[list[str], object]]", render_jinja_template)

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
        self, messages: Sequence[Message], *, options: Mapping[str, bool], reply_follows: bool
    ) -> str:
        def run(rows: list[dict[str, str]]) -> str:
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
        self, messages: Sequence[Message], *, options: Mapping[str, bool], reply_follows: bool
    ) -> str:
        def run(rows: list[dict[str, str]]) -> str:
            return self._apply(rows, tokenize=False, add_generation_prompt=reply_follows, **options)

        return _guarded(run, messages)


def _guarded(run: Callable[[list[dict[str, str]]], str], messages: Sequence[Message]) -> str:
    try:
        return run([_as_row(message) for message in messages])
    except _TEMPLATE_ERRORS as error:
        said = printable(str(error).strip().rstrip(".")) or type(error).__name__
        raise TemplateError(f"It says: {said}.") from error


def _as_row(message: Message) -> dict[str, str]:
    """Return a message as the dictionary that chat templates expect."""
    row = {"role": message.role.value, "content": message.content}
    if message.reasoning:
        row["reasoning_content"] = message.reasoning
    return row
