from __future__ import annotations

from dataclasses import replace

from app.conversation.actions import Turn, plan_continue, plan_regenerate, plan_send
from app.conversation.readers import readers_of
from app.conversation.replies import finish_reply, set_generation, stop_reply
from app.conversation.tree import (
    Conversation,
    Generation,
    MessageStatus,
    NodeId,
    replace_node,
    set_system_prompt,
    shown_path,
)
from engine.types import FinishReason, SamplingParams
from tests.fakes.conversations import ConversationWriter, finished

BIG, SMALL = "/models/big", "/models/small"


def written_by(path: str, *, template_hash: str = "hash") -> Generation:
    return Generation(
        model_path=path,
        model_name="Model",
        template_hash=template_hash,
        thinking=None,
        sampling=SamplingParams(),
        max_tokens=64,
    )


def two_turns(first: str, second: str) -> ConversationWriter:
    person = ConversationWriter()
    for text, path in (("one", first), ("two", second)):
        turn = person.send(text)
        person.conv = set_generation(person.conv, turn.reply_id, written_by(path))
    return person


def next_turn(person: ConversationWriter) -> Turn:
    return plan_send(person.conv, "three", person.ids(), now=9.0)


def test_messages_before_a_reply_were_read_by_its_model() -> None:
    turn = next_turn(two_turns(BIG, SMALL))
    assert turn.readers == ({BIG, SMALL}, {BIG, SMALL}, {SMALL}, {SMALL}, frozenset())
    assert turn.new_messages == {4}
    assert turn.only_read_by({SMALL}) == {2, 3}
    assert turn.only_read_by({BIG}) == frozenset()


def test_reply_without_a_known_model_counts_for_every_model() -> None:
    person = ConversationWriter()
    person.send("one")
    turn = next_turn(person)
    assert turn.new_messages == {2}
    assert turn.only_read_by({BIG}) == frozenset()


def test_imported_messages_are_new() -> None:
    person = two_turns(BIG, BIG)
    imported = {
        node_id: replace(
            node,
            reply=None,
            generation=node.generation and written_by("", template_hash=""),
        )
        for node_id, node in person.conv.nodes.items()
    }
    person.conv = replace(person.conv, nodes=imported)
    assert next_turn(person).new_messages == {0, 1, 2, 3, 4}


def test_message_whose_answer_was_stopped_before_its_first_token_is_new() -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)
    conv = set_generation(turn.conversation, turn.reply_id, written_by(BIG))
    stopped = finished("", reason=FinishReason.CANCELLED, token_ids=())
    person.conv = finish_reply(conv, turn.reply_id, stopped)
    assert next_turn(person).readers == (frozenset(),)


def test_answer_that_a_crash_cut_off_was_read() -> None:
    person = two_turns(BIG, BIG)
    turn = plan_send(person.conv, "three", person.ids(), now=3.0)
    conv = set_generation(turn.conversation, turn.reply_id, written_by(BIG))
    person.conv = stop_reply(conv, turn.reply_id, content="Half", reasoning="")
    again = plan_continue(person.conv, turn.reply_id, now=4.0)
    assert again.new_messages == frozenset()
    assert again.messages[-1].reply is None


def test_versions_below_another_branch_count_as_readers() -> None:
    person = two_turns(BIG, BIG)
    (first, reply, *_) = person.conv.nodes
    turn = person.regenerate(reply)
    person.conv = set_generation(person.conv, turn.reply_id, written_by(SMALL))
    assert turn.conversation.nodes[first].parent is None
    assert next_turn(person).readers[:2] == ({BIG, SMALL}, {SMALL})


def test_system_prompt_is_new_after_a_change() -> None:
    person = two_turns(BIG, BIG)
    person.conv = set_system_prompt(person.conv, "Be brief.")
    assert next_turn(person).new_messages == {0, 5}
    turn = person.send("three")
    assert turn.new_messages == {0, 5}
    assert next_turn(person).new_messages == {7}


def test_deleted_version_was_read_too() -> None:
    person = two_turns(BIG, BIG)
    (_, reply, *_) = person.conv.nodes
    conv = deleted(person.conv, reply)
    assert readers_of(conv, shown_path(conv)) == [{BIG}]


def deleted(conv: Conversation, node_id: NodeId) -> Conversation:
    """Delete all messages from `node_id` on."""
    (first, *rest) = conv.nodes
    assert node_id == rest[0]
    for one in rest:
        conv = replace_node(conv, replace(conv.nodes[one], deleted_at=5.0))
    return replace(conv, children={None: (first,)})


def test_reply_in_progress_has_no_writer() -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)
    assert turn.conversation.nodes[turn.reply_id].status is MessageStatus.STREAMING
    assert turn.readers == (frozenset(),)


def test_new_version_of_an_answer_that_a_crash_cut_off_knows_of_it() -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)
    conv = set_generation(turn.conversation, turn.reply_id, written_by(BIG))
    cut = stop_reply(conv, turn.reply_id, content="Half", reasoning="")
    empty = stop_reply(conv, turn.reply_id, content="", reasoning="")
    whole = two_turns(BIG, BIG)
    last = shown_path(whole.conv)[-1].node_id
    assert [
        plan_regenerate(conv, reply, person.ids().reply, now=2.0).is_unsaved
        for conv, reply in ((cut, turn.reply_id), (empty, turn.reply_id), (whole.conv, last))
    ] == [True, False, False]
