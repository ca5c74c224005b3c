"""Splicing of stored replies into a prompt.

If the template renders a reply with the text that the model produced, the prompt gets the token ids
that the model produced.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from engine.chat.prompt_builder import PromptBuilder
from engine.chat.template import TemplateOptions
from engine.sequences import common_prefix_len
from engine.types import Message, ReplyTokens, Role
from tests.fakes.texts import VOCAB_SIZE, StringRenderer, chat_tokenizer, reply_of

# A template that keeps every thought and trims blanks as Qwen's templates do.
ALWAYS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}<think>\n{{ m.reasoning_content | default('') | trim }}\n</think>\n\n{% endif %}"
    "{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
# Like ALWAYS, but the prompt does not end with <think>: the model writes <think> itself.
OPENING = ALWAYS.replace("assistant\n<think>\n{% endif %}", "assistant\n{% endif %}")
USER = Message(role=Role.USER, content="one")
NEXT = Message(role=Role.USER, content="two")
TOKENIZER = chat_tokenizer()
BUILDERS = {name: PromptBuilder(TOKENIZER, StringRenderer(name)) for name in (ALWAYS, OPENING)}

# Texts to encode letter by letter. The tokenizer would encode a whole text to other ids.
letters = st.text("abcdefghij ", min_size=1, max_size=12).filter(lambda t: t == t.strip())


def spelled(text: str) -> tuple[int, ...]:
    return tuple(token_id for letter in text for token_id in TOKENIZER.encode_text(letter))


def kept(template: str, token_ids: tuple[int, ...]) -> int:
    """Return how many of a reply's ids the next turn's prompt repeats."""
    builder = BUILDERS[template]
    prompt = builder.build([USER], thinking=None, keep_thinking=False)
    reply = reply_of(builder, prompt, token_ids)
    later = builder.build([USER, reply, NEXT], thinking=None, keep_thinking=False)
    rendered = builder.template.render([USER, reply, NEXT], TemplateOptions(), reply_follows=True)
    assert TOKENIZER.decode(later.token_ids) == rendered
    return common_prefix_len(prompt.token_ids + token_ids, later.token_ids) - len(prompt.token_ids)


@settings(deadline=None, max_examples=30)
@given(letters, letters)
def test_thought_marker_and_answer_keep_all_their_ids(thought: str, answer: str) -> None:
    end = TOKENIZER.encode_template("</think>")
    token_ids = (*spelled(f"{thought}\n"), *end, *spelled(f"\n\n{answer}"))
    opened = (*TOKENIZER.encode_template("<think>"), *spelled("\n"), *token_ids)

    assert kept(ALWAYS, token_ids) == len(token_ids)
    assert kept(OPENING, opened) == len(opened)


@pytest.mark.parametrize(
    ("text", "agreed"),
    [
        ("\n</think>\n\nYes.", "\n</think>\n\nYes."),  # no thought
        ("hm\n</think>\n\n", "hm\n</think>\n\n"),  # no answer
        ("hm\n</think>", "hm\n</think>"),  # stopped before the answer
        ("hm", "hm"),  # stopped inside its thought
        ("hm\n</think>\n\nYes. ", "hm\n</think>\n\nYes."),  # the template trims the blank
        ("hm \n</think>\n\nYes.", "hm"),
        ("hm</think>Yes.", "hm"),  # the template writes line breaks around </think>
    ],
)
def test_reply_ids_are_kept_as_far_as_the_text_agrees(text: str, agreed: str) -> None:
    parts = TOKENIZER.split_control(text)
    token_ids = tuple(
        token_id
        for part in parts
        for control in [TOKENIZER.control_prefix(part)]
        for token_id in (
            *TOKENIZER.encode_template(control),
            *spelled(part.removeprefix(control)),
        )
    )

    assert TOKENIZER.decode(token_ids[: kept(ALWAYS, token_ids)]) == agreed


def test_edited_thought_is_tokenised_and_the_answer_keeps_its_ids() -> None:
    builder = BUILDERS[ALWAYS]
    prompt = builder.build([USER], thinking=None, keep_thinking=False)
    answer = spelled("\n\nSo be it.")
    token_ids = (*spelled("hm\n"), *TOKENIZER.encode_template("</think>"), *answer)
    edited = replace(reply_of(builder, prompt, token_ids), reasoning="Another one.")
    later = builder.build([USER, edited, NEXT], thinking=None, keep_thinking=False).token_ids

    assert "Another one.\n</think>\n\nSo be it." in TOKENIZER.decode(later)
    assert any(later[i : i + 9] == spelled("So be it.") for i in range(len(later)))


# Cuts a reply at a marker, and so shows only a part of it, or nothing.
CUTTING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content.split('#')[0] | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "\n",
            "\n\n",
            "#",
            "#plan",
            "\n\n#",
            "#<|im_end|>",
            "#<|im_end|>\n",
            "<|im_end|>",
        ),
        *(
            "Yes#<",
            "Yes <|im_end|>",
            "Yes#|im_end|>",
            "assistant\n",
            "<|im_start|>assistant\n",
            "<|#",
        ),
    ],
)
def test_template_text_around_a_reply_is_never_replaced(text: str) -> None:
    builder = PromptBuilder(TOKENIZER, StringRenderer(CUTTING))
    prompt = builder.build([USER], thinking=None, keep_thinking=False)
    reply = reply_of(builder, prompt, spelled(text))
    messages = [USER, reply, NEXT]
    later = builder.build(messages, thinking=None, keep_thinking=False).token_ids

    rendered = builder.template.render(messages, TemplateOptions(), reply_follows=True)
    assert TOKENIZER.decode(later) == rendered
    plain = [USER, Message(role=Role.ASSISTANT, content="x"), NEXT]
    wanted = builder.build(plain, thinking=None, keep_thinking=False).token_ids
    assert controls(later) == controls(wanted)


# A template without control tokens, whose text before a reply ends with a blank.
PLAIN = (
    "{% for m in messages %}{{ m.role }}: {{ m.content | trim }}END{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def test_token_that_is_longer_than_the_shown_text_is_not_used() -> None:
    builder = PromptBuilder(TOKENIZER, StringRenderer(PLAIN))
    prompt = builder.build([USER], thinking=None, keep_thinking=False)
    blanks = TOKENIZER.encode_text("  ")
    assert len(blanks) == 1
    messages = [USER, reply_of(builder, prompt, blanks), NEXT]
    later = builder.build(messages, thinking=None, keep_thinking=False).token_ids

    rendered = builder.template.render(messages, TemplateOptions(), reply_follows=True)
    assert TOKENIZER.decode(later) == rendered


def controls(token_ids: tuple[int, ...]) -> list[int]:
    return [token_id for token_id in token_ids if TOKENIZER.is_control(token_id)]


@pytest.mark.parametrize(
    ("token_id", "text"),
    [(VOCAB_SIZE, ""), (2**32 - 1, ""), (min(TOKENIZER.markers.eos_ids), "<|im_end|>")],
)
def test_reply_with_a_token_that_the_model_never_draws_is_encoded_from_its_text(
    token_id: int, text: str
) -> None:
    builder = BUILDERS[ALWAYS]
    foreign = ReplyTokens.of(
        [*spelled("So be it."), token_id], answer_start=0, tokenizer_hash=TOKENIZER.tokenizer_hash
    )
    imported = Message(role=Role.ASSISTANT, content=f"So be it.{text}", reply=foreign)
    plain = replace(imported, reply=None)

    for following in ([NEXT], []):
        built = [
            builder.build([USER, reply, *following], thinking=False, keep_thinking=False).token_ids
            for reply in (imported, plain)
        ]
        assert built[0] == built[1]


def test_stored_ids_that_spell_a_control_token_do_not_replace_it() -> None:
    builder = BUILDERS[ALWAYS]
    foreign = ReplyTokens.of(
        spelled("<think>\n\n</think>\n\nYes."),
        answer_start=0,
        tokenizer_hash=TOKENIZER.tokenizer_hash,
    )
    imported = Message(role=Role.ASSISTANT, content="Yes.", reply=foreign)
    later, wanted = (
        builder.build([USER, reply, NEXT], thinking=None, keep_thinking=False).token_ids
        for reply in (imported, replace(imported, reply=None))
    )

    assert controls(later) == controls(wanted)
    assert TOKENIZER.decode(later) == TOKENIZER.decode(wanted)
