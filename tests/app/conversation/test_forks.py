from __future__ import annotations

from hypothesis import given

from app.conversation.deletion import delete_message, restore_message
from app.conversation.forks import (
    branch_end,
    branch_of,
    branch_top,
    is_in_tree,
    num_from,
    num_shared,
    version_on_show,
)
from app.conversation.tree import Conversation, NodeId, show_branch, shown_path
from tests.fakes.conversations import ConversationWriter
from tests.fakes.trees import conversations


def _id(conv: Conversation, text: str) -> NodeId:
    return next(node_id for node_id, node in conv.nodes.items() if node.content == text)


def _three_branches() -> Conversation:
    """Return a chat with the branches one-1-two-2-three-3, one-1-two-2b, and one-1-dos-dos."""
    writer = ConversationWriter()
    writer.send("one", "1")
    turn = writer.send("two", "2")
    writer.send("three", "3")
    writer.regenerate(turn.reply_id, "2b")
    writer.edit(turn.user_id, "dos", "d")
    return writer.conv


def _texts(conv: Conversation, node_id: NodeId) -> list[str]:
    return [node.content for node in branch_of(conv, node_id)]


def test_branch_of_a_message_goes_on_through_the_versions_on_show() -> None:
    conv = _three_branches()

    assert _texts(conv, _id(conv, "one")) == ["one", "1", "dos", "d"]
    assert _texts(conv, _id(conv, "two")) == ["one", "1", "two", "2b"]
    assert _texts(conv, _id(conv, "2")) == ["one", "1", "two", "2", "three", "3"]
    assert branch_end(conv, _id(conv, "2")) == _id(conv, "3")


def test_branches_part_after_the_messages_that_both_have() -> None:
    conv = _three_branches()
    first, second, third = (branch_of(conv, _id(conv, text)) for text in ("3", "2b", "d"))

    assert num_shared(first, second) == 3
    assert num_shared(second, third) == 2
    assert num_shared(first, first) == len(first)


def test_branch_top_is_the_first_message_that_no_other_branch_has() -> None:
    conv = _three_branches()

    assert branch_top(conv, _id(conv, "3")) == _id(conv, "2")
    assert branch_top(conv, _id(conv, "two")) == _id(conv, "two")
    assert branch_top(conv, _id(conv, "1")) is None
    assert num_from(conv, _id(conv, "2")) == 3
    assert num_from(conv, _id(conv, "two")) == 5


def test_deletion_of_a_hidden_version_leaves_the_shown_one_on_show() -> None:
    conv = _three_branches()
    conv = show_branch(conv, _id(conv, "3"))
    before = shown_path(conv)

    pruned = delete_message(conv, _id(conv, "2b"), now=9.0)

    assert shown_path(pruned) == before
    restored = restore_message(pruned, _id(conv, "2b"), is_shown=False)
    assert restored == conv


def test_deletion_of_the_newest_hidden_version_keeps_the_oldest_on_show() -> None:
    writer = ConversationWriter()
    turn = writer.send("one", "1")
    writer.regenerate(turn.reply_id, "2")
    writer.regenerate(turn.reply_id, "3")
    conv = show_branch(writer.conv, turn.reply_id)

    pruned = delete_message(conv, _id(conv, "3"), now=9.0)

    pruned.check_invariants()
    assert [node.content for node in shown_path(pruned)] == ["one", "1"]


@given(conversations())
def test_messages_in_the_tree_are_those_that_can_be_shown(conv: Conversation) -> None:
    for node_id in conv.nodes:
        if is_in_tree(conv, node_id):
            branch = branch_of(show_branch(conv, node_id), node_id)
            assert branch == shown_path(show_branch(conv, node_id))
            assert version_on_show(conv, branch[-1].node_id) is None
            assert num_from(conv, node_id) >= len(branch) - branch.index(conv.nodes[node_id])
