from __future__ import annotations

from dataclasses import replace

import pytest

from app.conversation.actions import plan_send
from app.conversation.replies import fail_reply, finish_reply, set_generation, stop_reply
from app.conversation.tree import (
    Conversation,
    MessageStatus,
    Setup,
    path_to,
    set_draft,
    set_system_prompt,
    set_title,
    show_version,
    shown_path,
    summary_of,
    versions,
)
from engine.problem import Problem
from engine.types import FinishReason, SamplingParams
from tests.fakes.conversations import GENERATION, USAGE, ConversationWriter, finished


def _shown(conv: Conversation) -> list[str]:
    return [node.content for node in shown_path(conv)]


def test_a_new_conversation_shows_nothing() -> None:
    conv = ConversationWriter().conv

    assert shown_path(conv) == ()
    assert conv.title == "New chat"


def test_switching_versions_shows_the_branch_used_last_below_each() -> None:
    person = ConversationWriter()
    first = person.send("one", "1")
    second = person.send("two", "2")
    again = person.regenerate(second.reply_id, "2b")
    edit = person.edit(first.user_id, "one edited", "1b")

    assert _shown(person.conv) == ["one edited", "1b"]
    assert versions(person.conv, first.user_id) == (first.user_id, edit.user_id)

    back = show_version(person.conv, first.user_id)

    assert _shown(back) == ["one", "1", "two", "2b"]
    assert _shown(show_version(back, edit.user_id)) == ["one edited", "1b"]

    older = show_version(back, second.reply_id)
    round_trip = show_version(show_version(older, edit.user_id), first.user_id)

    assert _shown(round_trip) == ["one", "1", "two", "2"]
    assert versions(round_trip, again.reply_id) == (second.reply_id, again.reply_id)


def test_a_message_sent_below_an_older_version_continues_that_version() -> None:
    person = ConversationWriter()
    first = person.send("one", "1")
    person.regenerate(first.reply_id, "1b")
    person.conv = show_version(person.conv, first.reply_id)

    person.send("two", "2")

    assert _shown(person.conv) == ["one", "1", "two", "2"]


def test_regenerate_shows_the_new_version_after_an_older_one_was_shown() -> None:
    person = ConversationWriter()
    first = person.send("one", "1")
    person.regenerate(first.reply_id, "1b")
    person.conv = show_version(person.conv, first.reply_id)

    person.regenerate(first.reply_id, "1c")

    assert _shown(person.conv) == ["one", "1c"]
    person.conv.check_invariants()


def test_path_to_a_hidden_message_ignores_what_is_shown() -> None:
    person = ConversationWriter()
    first = person.send("one", "1")
    second = person.send("two", "2")
    person.edit(first.user_id, "one edited")

    path = path_to(person.conv, second.reply_id)

    assert [node.content for node in path] == ["one", "1", "two", "2"]


def test_actions_do_not_change_the_original_conversation() -> None:
    person = ConversationWriter()
    person.send("one", "1")
    before = person.conv
    copy = replace(before, nodes=dict(before.nodes), children=dict(before.children))

    turn = person.send("two")
    person.regenerate(turn.reply_id)
    show_version(person.conv, turn.reply_id)

    assert before == copy


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (FinishReason.STOP, MessageStatus.COMPLETE),
        (FinishReason.LENGTH, MessageStatus.COMPLETE),
        (FinishReason.CANCELLED, MessageStatus.STOPPED),
        (FinishReason.ERROR, MessageStatus.FAILED),
    ],
)
def test_finished_reply_keeps_text_token_ids_and_usage(
    reason: FinishReason, status: MessageStatus
) -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)
    conv = set_generation(turn.conversation, turn.reply_id, GENERATION)
    event = finished("1", reasoning="hm", reason=reason)

    reply = finish_reply(conv, turn.reply_id, event).nodes[turn.reply_id]

    assert (reply.content, reply.reasoning) == ("1", "hm")
    assert reply.reply == event.reply
    assert reply.status is status
    assert reply.generation == replace(GENERATION, usage=USAGE, finish_reason=reason)


def test_stopped_and_failed_replies_keep_streamed_text() -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)
    problem = Problem(title="No memory.", cause="9 GB of 8 GB.", advice="Close something.")

    stopped = stop_reply(turn.conversation, turn.reply_id, content="ha", reasoning="h")
    failed = fail_reply(turn.conversation, turn.reply_id, problem, content="ha", reasoning="")

    assert stopped.nodes[turn.reply_id].status is MessageStatus.STOPPED
    assert stopped.nodes[turn.reply_id].content == "ha"
    assert stopped.nodes[turn.reply_id].reasoning == "h"
    assert failed.nodes[turn.reply_id].status is MessageStatus.FAILED
    assert failed.nodes[turn.reply_id].content == "ha"
    assert failed.nodes[turn.reply_id].problem == problem


def test_ending_a_finished_reply_raises() -> None:
    person = ConversationWriter()
    turn = person.send("one", "1")

    with pytest.raises(AssertionError, match="ends once"):
        stop_reply(person.conv, turn.reply_id, content="", reasoning="")


def test_manual_title_stays_until_it_is_emptied() -> None:
    person = ConversationWriter()
    person.send("Hello *there*")
    automatic = person.conv

    person.conv = set_title(automatic, "  My\nchat ")
    person.edit(shown_path(person.conv)[0].node_id, "Something else")

    assert automatic.title == "Hello there"
    assert (person.conv.title, person.conv.title_is_manual) == ("My chat", True)

    emptied = set_title(person.conv, " ")

    assert (emptied.title, emptied.title_is_manual) == ("Something else", False)
    assert set_title(ConversationWriter().conv, "").title == "New chat"
    assert summary_of(person.conv).title == "My chat"


def test_text_fields_replace_unpaired_surrogates() -> None:
    conv = ConversationWriter().conv

    assert set_draft(conv, "half \ud83d").draft == "half \ufffd"
    assert set_system_prompt(conv, "half \ud83d").system_prompt == "half \ufffd"
    assert set_title(conv, "half \ud83d").title == "half \ufffd"


def test_setup_overrides_sampling_only_by_values_that_are_set() -> None:
    defaults = SamplingParams(temperature=0.6, top_k=20)

    assert Setup().sampling(defaults) == defaults
    assert Setup(temperature=0.0, seed=3).sampling(defaults) == SamplingParams(
        temperature=0.0, top_k=20, seed=3
    )
