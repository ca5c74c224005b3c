from __future__ import annotations

from dataclasses import replace

import pytest

from app.conversation.actions import (
    EmptyMessageError,
    Turn,
    plan_continue,
    plan_edit,
    plan_regenerate,
    plan_send,
)
from app.conversation.prompts import messages_ahead, prompt_nodes
from app.conversation.replies import can_continue, fail_reply, finish_reply, is_at_limit, stop_reply
from app.conversation.tree import (
    MessageStatus,
    set_draft,
    set_system_prompt,
    show_version,
    shown_path,
)
from engine.problem import Problem
from engine.types import FinishReason, Message, Role
from tests.fakes.conversations import GENERATION, ConversationWriter, finished, generated

FAILURE = Problem(title="No memory.", cause="", advice="")


def _said(turn: Turn) -> list[str]:
    return [f"{message.role}: {message.content}" for message in turn.messages]


def test_first_turn_sends_system_prompt_and_message_as_new() -> None:
    person = ConversationWriter()
    person.conv = set_system_prompt(person.conv, "Be brief.")

    turn = person.send("one")

    assert _said(turn) == ["system: Be brief.", "user: one"]
    assert turn.new_messages == {0, 1}


def test_a_turn_holds_the_message_and_an_empty_streaming_reply() -> None:
    person = ConversationWriter()
    person.conv = set_draft(person.conv, "one")

    turn = generated(plan_send(person.conv, "one", person.ids(), now=5.0), GENERATION)

    user, reply = shown_path(turn.conversation)
    assert (user.node_id, user.status) == (turn.user_id, MessageStatus.COMPLETE)
    assert (reply.node_id, reply.status) == (turn.reply_id, MessageStatus.STREAMING)
    assert (reply.generation, reply.created_at) == (GENERATION, 5.0)
    assert turn.conversation.draft == ""
    assert turn.conversation.title == "one"
    assert turn.conversation.updated_at == 5.0
    assert person.conv.draft == "one", "planning a turn must not change the conversation"


def test_later_turn_sends_shown_branch_with_token_ids_and_reasoning() -> None:
    person = ConversationWriter()
    first = plan_send(person.conv, "one", person.ids(), now=1.0)
    event = finished("1", reasoning="hm")
    person.conv = finish_reply(first.conversation, first.reply_id, event)
    person.regenerate(first.reply_id, "1b")
    person.conv = show_version(person.conv, first.reply_id)

    turn = person.send("two")

    assert turn.messages == (
        Message(role=Role.USER, content="one"),
        Message(role=Role.ASSISTANT, content="1", reasoning="hm", reply=event.reply),
        Message(role=Role.USER, content="two"),
    )
    assert turn.new_messages == {2}


def test_messages_ahead_are_the_start_of_the_next_turn() -> None:
    person = ConversationWriter()
    assert messages_ahead(person.conv) == ()
    person.conv = set_system_prompt(person.conv, "Be brief.")
    person.send("one", "1")

    ahead = messages_ahead(person.conv)
    with_draft = messages_ahead(person.conv, "\n\n two")
    sent = person.send("\n\n two and more").messages

    assert ahead == sent[:-1]
    assert ahead[-1].role is Role.ASSISTANT
    assert with_draft[:-1] == ahead
    assert (with_draft[-1].role, with_draft[-1].content) == (Role.USER, " two")
    assert sent[-1].content.startswith(with_draft[-1].content)


def test_messages_ahead_join_draft_to_unanswered_message() -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)
    person.conv = fail_reply(turn.conversation, turn.reply_id, FAILURE, content="", reasoning="")

    ahead = messages_ahead(person.conv)
    with_draft = messages_ahead(person.conv, "two")

    assert ahead == (Message(role=Role.USER, content="one"),)
    assert with_draft == person.send("two").messages


def test_messages_ahead_ignore_blank_draft() -> None:
    person = ConversationWriter()
    person.send("one", "1")

    assert messages_ahead(person.conv, "  \n") == messages_ahead(person.conv)


def test_an_edit_sends_the_branch_above_it_and_the_new_version() -> None:
    person = ConversationWriter()
    person.send("one", "1")
    second = person.send("two", "2")
    person.send("three", "3")

    turn = person.edit(second.user_id, "two edited")

    assert _said(turn) == ["user: one", "assistant: 1", "user: two edited"]
    assert turn.new_messages == {2}
    assert person.conv.title == "one"


def test_an_edit_of_the_first_message_renames_the_conversation() -> None:
    person = ConversationWriter()
    first = person.send("one")

    person.edit(first.user_id, "two")

    assert person.conv.title == "two"


def test_regenerate_sends_the_same_messages_and_nothing_new() -> None:
    person = ConversationWriter()
    first = person.send("one", "1")
    person.send("two", "2")

    turn = person.regenerate(first.reply_id)

    assert turn.messages == first.messages
    assert turn.new_messages == frozenset()
    assert turn.user_id == first.user_id


def test_changed_system_prompt_counts_as_new_only_once() -> None:
    person = ConversationWriter()
    person.conv = set_system_prompt(person.conv, "Be brief.")
    first = person.send("one")

    assert person.send("two").new_messages == {3}

    person.conv = set_system_prompt(person.conv, "Be long.")

    assert person.regenerate(first.reply_id).new_messages == {0}
    assert person.regenerate(first.reply_id).new_messages == frozenset()


def test_removed_system_prompt_is_not_sent() -> None:
    person = ConversationWriter()
    person.conv = set_system_prompt(person.conv, "Be brief.")
    person.send("one")
    person.conv = set_system_prompt(person.conv, "  \n")

    turn = person.send("two")

    assert _said(turn) == ["user: one", "assistant: Yes.", "user: two"]
    assert turn.new_messages == {2}


def test_user_messages_around_an_empty_reply_are_joined() -> None:
    person = ConversationWriter()
    person.send("zero", "0")
    failed = plan_send(person.conv, "one", person.ids(), now=1.0)
    person.conv = fail_reply(
        failed.conversation, failed.reply_id, FAILURE, content="", reasoning=""
    )
    stopped = plan_send(person.conv, "two", person.ids(), now=2.0)
    person.conv = stop_reply(stopped.conversation, stopped.reply_id, content="", reasoning="")

    turn = person.send("three")

    assert _said(turn) == ["user: zero", "assistant: 0", "user: one\n\ntwo\n\nthree"]
    assert turn.new_messages == {2}


def test_a_failed_reply_with_text_is_sent() -> None:
    person = ConversationWriter()
    failed = plan_send(person.conv, "one", person.ids(), now=1.0)
    person.conv = fail_reply(
        failed.conversation, failed.reply_id, FAILURE, content="half", reasoning=""
    )

    assert _said(person.send("two")) == ["user: one", "assistant: half", "user: two"]


@pytest.mark.parametrize(
    ("reason", "token_ids", "num_messages"),
    [
        (FinishReason.CANCELLED, (7,), 3),
        (FinishReason.CANCELLED, (), 1),
        (FinishReason.STOP, (), 3),
    ],
)
def test_reply_without_text_is_sent_unless_stopped_before_first_token(
    reason: FinishReason, token_ids: tuple[int, ...], num_messages: int
) -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)
    event = finished("", reason=reason, token_ids=token_ids)
    person.conv = finish_reply(turn.conversation, turn.reply_id, event)

    messages = person.send("two").messages

    assert len(messages) == num_messages
    assert messages[-1].role is Role.USER


def test_reply_without_token_ids_is_sent_as_text() -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)
    person.conv = stop_reply(turn.conversation, turn.reply_id, content="half", reasoning="")

    reply = person.send("two").messages[1]

    assert reply == Message(role=Role.ASSISTANT, content="half", reply=None)


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_empty_message_is_refused(text: str) -> None:
    person = ConversationWriter()
    first = person.send("one")

    with pytest.raises(EmptyMessageError) as sent:
        plan_send(person.conv, text, person.ids(), now=1.0)
    with pytest.raises(EmptyMessageError):
        plan_edit(person.conv, first.user_id, text, person.ids(), now=1.0)

    assert sent.value.problem.title == "The message is empty."


def test_send_below_a_streaming_reply_raises() -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)

    with pytest.raises(AssertionError, match="must have ended"):
        plan_send(turn.conversation, "two", person.ids(), now=2.0)


def test_regenerate_during_streaming_sends_the_same_messages() -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)

    again = plan_regenerate(turn.conversation, turn.reply_id, person.ids().reply, now=2.0)

    assert again.messages == turn.messages


def test_a_two_megabyte_paste_is_sent_whole() -> None:
    person = ConversationWriter()
    text = "word " * 400_000

    turn = person.send(text)

    assert turn.messages[0].content == text
    assert person.conv.title.startswith("word word")


def test_continue_keeps_id_and_text_of_stopped_reply() -> None:
    person = ConversationWriter()
    person.send("one")
    turn = generated(plan_send(person.conv, "two", person.ids(), now=2.0), GENERATION)
    half = finished("Half", reason=FinishReason.CANCELLED)
    stopped = finish_reply(turn.conversation, turn.reply_id, half)

    again = plan_continue(stopped, turn.reply_id, now=3.0)

    assert _said(again) == ["user: one", "assistant: Yes.", "user: two", "assistant: Half"]
    assert again.messages[-1].reply == half.reply
    assert again.new_messages == frozenset()
    assert (again.user_id, again.reply_id) == (turn.user_id, turn.reply_id)
    reply = again.conversation.nodes[turn.reply_id]
    assert (reply.status, reply.content) == (MessageStatus.STREAMING, "Half")
    assert reply.reply is None, "the token ids of the first half do not match the continued text"
    assert again.conversation.updated_at == 3.0
    ended = finish_reply(again.conversation, turn.reply_id, finished("Half and more"))
    assert shown_path(ended)[-1].content == "Half and more"


@pytest.mark.parametrize(
    ("content", "reason", "max_tokens", "can"),
    [
        ("Half", FinishReason.CANCELLED, 64, True),
        ("", FinishReason.CANCELLED, 64, False),
        ("Half", FinishReason.LENGTH, 3, True),
        ("Half", FinishReason.LENGTH, 4, False),  # stopped because the context was full
        ("All", FinishReason.STOP, 3, False),
    ],
)
def test_can_continue_only_cut_off_last_reply_with_text(
    content: str, reason: FinishReason, max_tokens: int, can: bool
) -> None:
    person = ConversationWriter()
    generation = replace(GENERATION, max_tokens=max_tokens)
    turn = generated(plan_send(person.conv, "one", person.ids(), now=1.0), generation)
    end = finished(content, reason=reason, token_ids=(1, 2, 3) if content else ())
    conv = finish_reply(turn.conversation, turn.reply_id, end)

    assert can_continue(conv, turn.reply_id) == can
    after = plan_send(conv, "two", person.ids(), now=2.0).conversation
    assert not can_continue(after, turn.reply_id), "a message follows the reply"


def test_tokens_of_a_preview_count_for_the_limit_of_a_reply() -> None:
    person = ConversationWriter()
    generation = replace(GENERATION, max_tokens=3)
    turn = generated(plan_send(person.conv, "one", person.ids(), now=1.0), generation)
    end = finished("Half", reason=FinishReason.LENGTH, token_ids=(1, 2, 3))
    drawn = replace(end.usage, output_tokens=1)
    conv = finish_reply(turn.conversation, turn.reply_id, replace(end, usage=drawn))

    assert is_at_limit(conv.nodes[turn.reply_id])


def test_continue_of_failed_reply_sends_its_text_without_token_ids() -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)
    failed = fail_reply(turn.conversation, turn.reply_id, FAILURE, content="Ha", reasoning="")

    again = plan_continue(failed, turn.reply_id, now=2.0)

    assert again.messages[-1] == Message(role=Role.ASSISTANT, content="Ha")
    assert again.conversation.nodes[turn.reply_id].problem is None


def test_prompt_nodes_are_the_messages_of_the_prompt_without_empty_replies() -> None:
    person = ConversationWriter()
    first = person.send("one")
    stopped = plan_send(person.conv, "two", person.ids(), now=2.0)
    person.conv = stop_reply(stopped.conversation, stopped.reply_id, content="", reasoning="")
    cut = plan_send(person.conv, "three", person.ids(), now=3.0)
    person.conv = stop_reply(cut.conversation, cut.reply_id, content="half", reasoning="")
    assert _said(plan_continue(person.conv, cut.reply_id, now=4.0)) == [
        "user: one",
        "assistant: Yes.",
        "user: two\n\nthree",
        "assistant: half",
    ]
    expected = (first.user_id, first.reply_id, stopped.user_id, cut.reply_id)
    assert prompt_nodes(person.conv, cut.reply_id) == expected
    assert prompt_nodes(person.conv, stopped.reply_id) == (*expected[:3], stopped.reply_id)
