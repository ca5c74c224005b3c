from __future__ import annotations

from hypothesis import given, settings, strategies as st

from app.conversation.deletion import can_delete, delete_message, num_shown_from, restore_message
from app.conversation.tree import Conversation, NodeId, shown_path
from tests.fakes.conversations import ConversationWriter


def _texts(conv: Conversation) -> list[str]:
    return [node.content for node in shown_path(conv)]


def _id(conv: Conversation, text: str) -> NodeId:
    return next(node_id for node_id, node in conv.nodes.items() if node.content == text)


def _person() -> ConversationWriter:
    """Return a conversation whose second user message has the versions two, two b and two c.

    Only the branch of the version "two" has a third turn."""
    person = ConversationWriter()
    person.send("one", "1")
    person.send("two", "2")
    person.send("three", "3")
    person.edit(_id(person.conv, "two"), "two b", "2b")
    person.edit(_id(person.conv, "two"), "two c", "2c")
    return person


def test_delete_removes_all_below_and_restore_brings_it_back() -> None:
    person = ConversationWriter()
    person.send("one", "1")
    person.send("two", "2")
    before = person.conv

    conv = delete_message(before, _id(before, "one"), now=9.0)

    conv.check_invariants()
    assert _texts(conv) == []
    assert num_shown_from(before, _id(before, "one")) == 4
    assert restore_message(conv, _id(before, "one")) == before


def test_deleted_messages_are_counted_as_they_are_shown() -> None:
    conv = _person().conv

    assert num_shown_from(conv, _id(conv, "one")) == 4, "two versions of the second turn are hidden"
    assert num_shown_from(conv, _id(conv, "two")) == 1


def test_delete_of_a_version_shows_the_neighbouring_version() -> None:
    conv = _person().conv

    for gone, shown in (("two c", "two b"), ("two b", "two")):
        conv = delete_message(conv, _id(conv, gone), now=9.0)
        conv.check_invariants()
        assert _texts(conv)[2] == shown
    assert _texts(conv) == ["one", "1", "two", "2", "three", "3"]


def test_restored_version_returns_to_its_position() -> None:
    person = _person()
    conv = delete_message(person.conv, _id(person.conv, "two b"), now=9.0)
    assert _texts(conv)[2] == "two c"

    conv = restore_message(conv, _id(conv, "two b"))

    conv.check_invariants()
    assert _texts(conv) == ["one", "1", "two b", "2b"]
    assert conv.children == person.conv.children
    assert restore_message(conv, _id(conv, "two b")) == conv


def test_answer_can_be_deleted_only_if_another_version_exists() -> None:
    person = ConversationWriter()
    turn = person.send("one", "1")
    assert not can_delete(person.conv, turn.reply_id)
    again = person.regenerate(turn.reply_id, "1b")
    assert can_delete(person.conv, turn.reply_id)

    conv = delete_message(person.conv, again.reply_id, now=9.0)

    assert _texts(conv) == ["one", "1"]
    assert not can_delete(conv, turn.reply_id)


def test_send_after_deletion_continues_the_shown_branch() -> None:
    person = _person()
    person.conv = delete_message(person.conv, _id(person.conv, "two c"), now=9.0)
    person.send("four", "4")
    person.conv.check_invariants()
    assert _texts(person.conv) == ["one", "1", "two b", "2b", "four", "4"]


@given(numbers=st.lists(st.integers(0, 20), max_size=12))
@settings(deadline=None)
def test_restoring_all_deleted_messages_gives_the_original_tree(numbers: list[int]) -> None:
    person = _person()
    conv, deleted = person.conv, list[NodeId]()
    for number in numbers:
        path = [node for node in shown_path(conv) if can_delete(conv, node.node_id)]
        if path:
            deleted.append(path[number % len(path)].node_id)
            conv = delete_message(conv, deleted[-1], now=9.0)
            conv.check_invariants()
    for node_id in reversed(deleted):
        conv = restore_message(conv, node_id)
        conv.check_invariants()
    assert (conv.nodes, conv.children) == (person.conv.nodes, person.conv.children)
