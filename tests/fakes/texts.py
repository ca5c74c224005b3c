"""A tokenizer and a renderer for tests of `engine.chat`, without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.chat.prompt import PromptBuilder
from engine.chat.tokenizer import ChatTokenizer, Markers
from engine.types import Message
from tests.fakes.tiny_model import TEMPLATES, Template, train_tokenizer


def chat_tokenizer() -> ChatTokenizer:
    backend = train_tokenizer()

    def ids(text: str) -> tuple[int, ...]:
        return tuple(backend.encode(text, add_special_tokens=False).ids)

    markers = Markers(
        eos_ids=frozenset(ids("<|im_end|>")),
        think_start=ids("<think>"),
        think_end=ids("</think>"),
    )
    return ChatTokenizer(backend, markers, "tiny")


class StringRenderer:
    """Renders a Jinja template given as a string."""

    def __init__(self, template: str) -> None:
        self._template = ImmutableSandboxedEnvironment().from_string(template)

    def render(
        self, messages: Sequence[Message], *, thinking: bool | None, reply_follows: bool
    ) -> str:
        rows = [
            {"role": m.role.value, "content": m.content}
            | ({"reasoning_content": m.reasoning} if m.reasoning else {})
            for m in messages
        ]
        options = {} if thinking is None else {"enable_thinking": thinking}
        return self._template.render(messages=rows, add_generation_prompt=reply_follows, **options)


class FunctionRenderer:
    """Renders with a Python function of (messages, reply_follows)."""

    def __init__(self, render: Callable[[Sequence[Message], bool], str]) -> None:
        self._render = render

    def render(
        self, messages: Sequence[Message], *, thinking: bool | None, reply_follows: bool
    ) -> str:
        return self._render(messages, reply_follows)


def prompt_builder(template: Template) -> PromptBuilder:
    return PromptBuilder(chat_tokenizer(), StringRenderer(TEMPLATES[template]))
