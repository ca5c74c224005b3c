"""A tokenizer and two template renderers for tests of `engine.chat`, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from jinja2.sandbox import ImmutableSandboxedEnvironment
from typing_extensions import override

from engine.chat.prompt import Prompt
from engine.chat.prompt_builder import PromptBuilder
from engine.chat.reply import ReplyStream
from engine.chat.reply_ids import forced_ids
from engine.chat.segments import Renderer
from engine.chat.tokenizer import ChatTokenizer, Markers
from engine.types import Message, Role
from tests.fakes.tiny_model import TEMPLATES, Template, train_tokenizer

VOCAB_SIZE = train_tokenizer().get_vocab_size()


def chat_tokenizer(vocab_size: int | None = None) -> ChatTokenizer:
    backend = train_tokenizer()

    def ids(text: str) -> tuple[int, ...]:
        return tuple(backend.encode(text, add_special_tokens=False).ids)

    markers = Markers(
        eos_ids=frozenset(ids("<|im_end|>")),
        think_start=ids("<think>"),
        think_end=ids("</think>"),
    )
    return ChatTokenizer(backend, markers, "tiny", vocab_size=vocab_size)


class StringRenderer(Renderer):
    """A renderer of a Jinja template that is given as a string."""

    def __init__(self, template: str) -> None:
        self._template = ImmutableSandboxedEnvironment().from_string(template)

    @override
    def render(
        self, messages: Sequence[Message], *, options: Mapping[str, object], reply_follows: bool
    ) -> str:
        rows = [
            {"role": m.role.value, "content": m.content}
            | ({"reasoning_content": m.reasoning} if m.reasoning else {})
            for m in messages
        ]
        return self._template.render(messages=rows, add_generation_prompt=reply_follows, **options)


class FakeRenderer(Renderer):
    """A chat template renderer that calls a Python function with (messages, reply_follows)."""

    def __init__(self, render: Callable[[Sequence[Message], bool], str]) -> None:
        self._render = render

    @override
    def render(
        self, messages: Sequence[Message], *, options: Mapping[str, object], reply_follows: bool
    ) -> str:
        return self._render(messages, reply_follows)


def written_reply(
    builder: PromptBuilder, prompt: Prompt, text: str, reasoning: str = ""
) -> Message:
    """Return the assistant message that the engine makes from a reply's text and reasoning."""
    token_ids = forced_ids(builder.tokenizer, text, reasoning, in_reasoning=prompt.in_reasoning)
    return reply_of(builder, prompt, token_ids)


def reply_of(builder: PromptBuilder, prompt: Prompt, token_ids: Iterable[int]) -> Message:
    """Return the assistant message that the engine makes from generated token ids."""
    stream = ReplyStream(builder.tokenizer, in_reasoning=prompt.in_reasoning)
    for token_id in token_ids:
        stream.add(token_id)
    stream.flush()
    return Message(
        role=Role.ASSISTANT,
        content=stream.content,
        reasoning=stream.reasoning,
        reply=stream.tokens(),
    )


def prompt_builder(template: Template, vocab_size: int | None = None) -> PromptBuilder:
    return PromptBuilder(chat_tokenizer(vocab_size), StringRenderer(TEMPLATES[template]))
