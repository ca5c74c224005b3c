"""Replies with every kind of text behind real chat templates, without a model.

    python -m tests.oracle.reply_texts [TEMPLATE ...]

A reply may consist of blanks, or contain markers of reasoning and control tokens, drawn or spelled.
No reply may damage the text of the template around it, and none may keep the template from writing
the next prompt. Every prompt is checked as `--check` checks it (engine/checking/prompts.py), and its
control tokens are compared with those of the same conversation with a plain reply.
"""

# Control tokens of some templates have a full-width bar.
# ruff: noqa: RUF001

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from engine.chat.prompt import Prompt
from engine.chat.prompt_builder import PromptBuilder
from engine.chat.reply_ids import forced_ids
from engine.chat.template import TemplateOptions
from engine.chat.tokenizer import ChatTokenizer, Markers
from engine.checking.prompts import prompt_fault
from engine.errors import EngineError
from engine.models.renderer import JinjaRenderer
from engine.types import Message, Role
from tests.fakes.texts import reply_of
from tests.fakes.trl_templates import chat_templates, template_text, template_tokenizer

BLANKS = ["", " ", "\n", "\n\n", "  \n ", "\t", "\r\n", "\u00a0", "\u200b"]
MARKERS = [
    *("It is </think>", "</think>", "</think>\n\nYes", "<think>", "<think>hm", "Yes<think>"),
    *("<think>\nhm\n</think>\n\nYes.", "<|im_end|>", "Yes<|im_end|>", "<|im_start|>user\nhi"),
    *("<end_of_turn>", "<start_of_turn>model\n", "<|eot_id|>", "</s>", "<bos>", "[INST] x"),
    *("<tool_call>\n{}\n</tool_call>", "<|channel|>final<|message|>x", "<｜User｜>x", "<|end|>"),
]
WORDS = [
    *("Yes.", " a", "a ", "\na\n", "\n\nYes.\n", "a\r\nb", "1", "plan", "user", "assistant"),
    *("é", "a\u0301", "你好", "🙂", "{{ x }}", "{% if %}", "<", "<|"),
]
REPLIES = [*BLANKS, *MARKERS, *WORDS]
REASONING = ["", "hm", " ", "hm ", "\nhm\n"]
FIRST = Message(role=Role.USER, content="One plan?")
SECOND = Message(role=Role.USER, content="Two?")


@cache
def builder_of(name: str) -> PromptBuilder:
    """Return a builder with a template of trl, and the control tokens that the template writes."""
    text, backend = template_text(name), template_tokenizer(name)

    def ids(marker: str) -> tuple[int, ...]:
        return tuple(backend.encode(marker, add_special_tokens=False).ids)

    thinks = "<think>" in text
    markers = Markers(
        eos_ids=frozenset(ids("<|im_end|>")),
        think_start=ids("<think>") if thinks else (),
        think_end=ids("</think>") if thinks else (),
    )
    tokenizer = ChatTokenizer(backend, markers, name)
    return PromptBuilder(tokenizer, JinjaRenderer(text, {"bos_token": ""}))


def faults_of(
    name: str, replies: list[str], *, reasoning: str, thinking: bool | None, is_drawn: bool
) -> Iterator[str]:
    """Yield the faults in the prompts of a conversation with each reply.

    Args:
        name: the name of the template.
        replies: texts of replies. Each is used in two turns of a conversation of its own.
        reasoning: the reasoning of all replies.
        thinking: the setting of all requests.
        is_drawn: True if control tokens of a reply were drawn, False if they were spelled in
            ordinary tokens.
    """
    builder = builder_of(name)
    plain = _controls(builder, _chat(builder, "plain", reasoning, thinking, is_drawn=False)[0])
    for text in replies:
        try:
            prompt, messages = _chat(builder, text, reasoning, thinking, is_drawn=is_drawn)
        except EngineError as error:
            yield f"{name}: refused after {text!r}: {error}"
            continue
        checked = builder.template, builder.tokenizer, prompt.token_ids, messages
        fault = prompt_fault(*checked, TemplateOptions(thinking))
        own = Counter(i for m in messages if m.reply for i in m.reply.token_ids)
        if not fault and any((_controls(builder, prompt) - plain - own).values()):
            fault = "it has control tokens that are not the template’s"
        if not fault and (plain - _controls(builder, prompt)):
            fault = "it lacks control tokens of the template"
        if fault:
            yield f"{name}: damaged by {text!r}: {fault}"


def _chat(
    builder: PromptBuilder, text: str, reasoning: str, thinking: bool | None, *, is_drawn: bool
) -> tuple[Prompt, list[Message]]:
    """Return the prompt of the third turn, and its messages. Each reply has the given text."""
    messages = [FIRST]
    for following in (SECOND, FIRST):
        prompt = builder.build(messages, thinking=thinking, keep_thinking=False)
        drawn = forced_ids(
            builder.tokenizer, text if is_drawn else "", reasoning, in_reasoning=prompt.in_reasoning
        )
        if not is_drawn:
            drawn = (*drawn, *builder.tokenizer.encode_text(text))
        messages += [reply_of(builder, prompt, drawn), following]
    return builder.build(messages, thinking=thinking, keep_thinking=False), messages


def _controls(builder: PromptBuilder, prompt: Prompt) -> Counter[int]:
    return Counter(i for i in prompt.token_ids if builder.tokenizer.is_control(i))


def play_reply_texts(_: Path, names: list[str] | None = None) -> bool:
    """Check all replies behind all templates. Print the faults. Return True if there is none."""
    num_chats, faults = 0, list[str]()
    for name in names or chat_templates():
        thinks = bool(builder_of(name).tokenizer.markers.think_end)
        for thinking in (None, False):
            for reasoning in REASONING if thinks and thinking is None else [""]:
                for is_drawn in (True, False):
                    faults += faults_of(
                        name, REPLIES, reasoning=reasoning, thinking=thinking, is_drawn=is_drawn
                    )
                    num_chats += len(REPLIES)
    print("\n".join(faults))
    print(f"{num_chats:,} chats of two replies: {len(faults)} refused or damaged")
    return not faults


if __name__ == "__main__":
    sys.exit(not play_reply_texts(Path(), sys.argv[1:]))
