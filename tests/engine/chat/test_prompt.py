"""Prompts keep the ids of replies, tokenise all other text and have reusable resume points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings, strategies as st

from engine.cache.points import PointKind
from engine.chat.prompt_builder import PromptBuilder
from engine.chat.reply_ids import forced_ids
from engine.chat.template import TemplateOptions
from engine.errors import TemplateError
from engine.sequences import common_prefix_len
from engine.types import Message, ReplyTokens, Role
from tests.fakes.texts import VOCAB_SIZE, FakeRenderer, chat_tokenizer, prompt_builder
from tests.fakes.tiny_model import Template

KEEPING, THINKING = prompt_builder(Template.KEEPING), prompt_builder(Template.THINKING)


def user(text: str) -> Message:
    return Message(role=Role.USER, content=text)


def reply(builder: PromptBuilder, token_ids: tuple[int, ...], answer_start: int = 0) -> Message:
    return Message(
        role=Role.ASSISTANT,
        content=builder.tokenizer.decode(token_ids[answer_start:]),
        reasoning=builder.tokenizer.decode(token_ids[: max(0, answer_start - 1)]),
        reply=ReplyTokens.of(token_ids, answer_start=answer_start, tokenizer_hash="tiny"),
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, VOCAB_SIZE - 6), min_size=1, max_size=20).map(tuple))
def test_next_prompt_begins_with_this_prompt_and_the_replys_ids(token_ids: tuple[int, ...]) -> None:
    first = KEEPING.build([user("one")], thinking=None, keep_thinking=False)
    second = KEEPING.build(
        [user("one"), reply(KEEPING, token_ids), user("two")], thinking=None, keep_thinking=False
    )

    held = (*first.token_ids, *token_ids)
    assert second.token_ids[: len(held)] == held


@settings(deadline=None, max_examples=40)
@given(st.text(min_size=1, max_size=30))
def test_prompt_without_replies_has_the_tokenizers_ids(text: str) -> None:
    prompt = KEEPING.build([user(text)], thinking=None, keep_thinking=False)
    rendered = KEEPING.template.render([user(text)], TemplateOptions(), reply_follows=True)
    parts = KEEPING.tokenizer.split_control(text)
    if not any(map(KEEPING.tokenizer.control_prefix, parts)):
        assert prompt.token_ids == KEEPING.tokenizer.encode_template(rendered)


def test_prompt_has_a_resume_point_before_its_thinking_tail() -> None:
    first = THINKING.build([user("one")], thinking=None, keep_thinking=False)
    answer = reply(THINKING, forced_ids(THINKING.tokenizer, "Yes.", "hm", in_reasoning=True), 3)
    second = THINKING.build([user("one"), answer, user("two")], thinking=None, keep_thinking=False)
    common = common_prefix_len(first.token_ids, second.token_ids)

    assert first.in_reasoning
    assert common < len(first.token_ids)
    assert common in {point.num_tokens for point in first.points}


def test_prompt_of_a_keeping_template_has_a_point_at_its_end() -> None:
    prompt = KEEPING.build([user("one")], thinking=None, keep_thinking=False)

    assert not prompt.in_reasoning
    assert prompt.points[-1].num_tokens == len(prompt.token_ids)
    assert prompt.points[-1].kind is PointKind.PROMPT
    assert [p.kind for p in prompt.points] == [PointKind.SYSTEM, PointKind.PROMPT]


def test_edited_message_diverges_at_a_resume_point() -> None:
    chat = [user("one"), reply(KEEPING, (5, 6)), user("old words")]
    old = KEEPING.build(chat, thinking=None, keep_thinking=False)
    new = KEEPING.build([*chat[:2], user("New words")], thinking=None, keep_thinking=False)
    common = common_prefix_len(old.token_ids, new.token_ids)

    assert common in {point.num_tokens for point in old.points}


def test_message_starts_cover_the_prompt() -> None:
    chat = [user("one"), reply(KEEPING, (5, 6)), user("two")]
    prompt = KEEPING.build(chat, thinking=None, keep_thinking=False)
    starts = [*prompt.message_starts, len(prompt.token_ids)]
    texts = [KEEPING.tokenizer.decode(prompt.token_ids[a:b]) for a, b in pairwise(starts)]

    assert texts[0] == "<|im_start|>user\none"
    assert texts[2] == "<|im_end|>\n<|im_start|>user\ntwo"
    assert texts[3] == "<|im_end|>\n<|im_start|>assistant\n"


def test_reply_of_another_tokenizer_is_tokenised_again() -> None:
    foreign = Message(
        role=Role.ASSISTANT,
        content="Yes.",
        reply=ReplyTokens.of((9999,), answer_start=0, tokenizer_hash="other"),
    )
    prompt = KEEPING.build([user("one"), foreign, user("two")], thinking=None, keep_thinking=False)

    assert 9999 not in prompt.token_ids
    assert "Yes." in KEEPING.tokenizer.decode(prompt.token_ids)


def test_read_ahead_prompt_ends_where_the_users_text_begins() -> None:
    answer = reply(KEEPING, (5, 6))
    ahead = KEEPING.build_read_ahead(
        [user("one"), answer], thinking=None, keep_thinking=False, is_draft=False
    )
    upcoming = ahead.token_ids
    actual = KEEPING.build(
        [user("one"), answer, user("whatever")], thinking=None, keep_thinking=False
    )

    assert actual.token_ids[: len(upcoming)] == upcoming
    assert KEEPING.tokenizer.decode(upcoming).endswith("<|im_start|>user\n")


def test_typed_text_and_template_text_form_no_control_token() -> None:
    tokenizer = chat_tokenizer()
    framing = FakeRenderer(lambda messages, _: "".join(f"<{m.content}>" for m in messages))
    builder = PromptBuilder(tokenizer, framing)
    prompt = builder.build([user("|im_end|"), user("/think")], thinking=None, keep_thinking=False)

    assert tokenizer.decode(prompt.token_ids) == "<|im_end|></think>"
    assert tokenizer.count_control(prompt.token_ids) == 0


def test_forced_reply_keeps_control_tokens_except_the_end_token() -> None:
    tokenizer = KEEPING.tokenizer
    text = "One <|im_start|>two<|im_end|> three"
    token_ids = forced_ids(KEEPING.tokenizer, text, "", in_reasoning=False)

    assert tokenizer.decode(token_ids) == text
    assert tokenizer.count_control(token_ids) == 1
    assert not tokenizer.markers.eos_ids & set(token_ids)


def test_read_ahead_after_a_tool_call_has_a_point_for_user_messages() -> None:
    call = reply(KEEPING, forced_ids(KEEPING.tokenizer, "<|im_start|>look", "", in_reasoning=False))
    ahead = KEEPING.build_read_ahead(
        [user("one"), call], thinking=None, keep_thinking=False, is_draft=False
    )
    actual = KEEPING.build([user("one"), call, user("two")], thinking=None, keep_thinking=False)

    assert KEEPING.tokenizer.decode(ahead.token_ids).endswith("<|im_start|>tool\n")
    common = common_prefix_len(ahead.token_ids, actual.token_ids)
    assert common > actual.message_starts[2]
    assert common in {point.num_tokens for point in ahead.points}


def test_read_ahead_without_tools_in_the_template_expects_a_user() -> None:
    def without_tools(messages: Sequence[Message], _: bool) -> str:
        if any(message.role is Role.TOOL for message in messages):
            raise TemplateError("no tools")
        return "".join(f"<|im_start|>{m.content}" for m in messages)

    builder = PromptBuilder(chat_tokenizer(), FakeRenderer(without_tools))
    call = reply(builder, forced_ids(builder.tokenizer, "<|im_start|>look", "", in_reasoning=False))
    ahead = builder.build_read_ahead(
        [user("one"), call], thinking=None, keep_thinking=False, is_draft=False
    )

    assert (
        builder.tokenizer.decode(ahead.token_ids)
        == "<|im_start|>one<|im_start|><|im_start|>look<|im_start|>"
    )
