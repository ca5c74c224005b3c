from __future__ import annotations

from dataclasses import replace
from itertools import count

from app.conversation.actions import TurnIds, plan_send
from app.conversation.attachments import Attachment
from app.conversation.branching import fork, rewrite_reply
from app.conversation.readers import writer_of
from app.conversation.replies import can_continue
from app.conversation.tree import Conversation, NodeId, shown_path, versions
from engine.types import ConversationId, Role
from tests.fakes.conversations import ConversationWriter

IDS = TurnIds(user=NodeId("user"), reply=NodeId("reply"))


def texts(conv: Conversation) -> list[str]:
    return [node.content for node in shown_path(conv)]


def id_of(conv: Conversation, text: str) -> NodeId:
    return next(node_id for node_id, node in conv.nodes.items() if node.content == text)


def two_turns() -> ConversationWriter:
    person = ConversationWriter()
    person.send("one", "1")
    person.send("two", "2")
    return person


def forked(conv: Conversation, text: str) -> Conversation:
    numbers = count()
    made = fork(
        conv, id_of(conv, text), ConversationId("new"), lambda: f"copy-{next(numbers)}", now=9.0
    )
    made.check_invariants()
    return made


def test_rewritten_answer_is_a_version_of_its_own_without_token_ids() -> None:
    before = two_turns().conv
    conv = rewrite_reply(before, id_of(before, "1"), "uno", NodeId("new"), now=9.0)
    conv.check_invariants()
    assert texts(conv) == ["one", "uno"], "the messages below belong to the other version"
    assert versions(conv, NodeId("new")) == (id_of(before, "1"), NodeId("new"))
    node = conv.nodes[NodeId("new")]
    assert writer_of(node) is None
    assert not can_continue(conv, NodeId("new"))
    assert writer_of(conv.nodes[id_of(before, "1")]) is not None


def test_next_turn_counts_the_rewritten_answer_as_new_once() -> None:
    person = two_turns()
    conv = rewrite_reply(person.conv, id_of(person.conv, "2"), "due", NodeId("new"), now=9.0)
    turn = plan_send(conv, "three", IDS, now=10.0)
    assert [message.content for message in turn.messages] == ["one", "1", "two", "due", "three"]
    assert turn.new_messages == {3, 4}
    person.conv = conv
    person.send("three", "3")
    assert plan_send(person.conv, "four", IDS, now=11.0).new_messages == {6}


def test_fork_copies_the_branch_with_its_token_ids() -> None:
    person = two_turns()
    person.edit(id_of(person.conv, "two"), "two b", "2b")
    made = forked(person.conv, "2")
    assert texts(made) == ["one", "1", "two", "2"]
    replies = [node.reply for node in shown_path(made) if node.role is Role.ASSISTANT]
    assert None not in replies
    assert replies == [person.conv.nodes[id_of(person.conv, text)].reply for text in ("1", "2")]
    assert not set(made.nodes) & set(person.conv.nodes), "the store needs ids of its own"
    assert made.title == f"{person.conv.title} (fork)"
    assert forked(made, "1").title == made.title


def test_fork_at_a_user_message_has_its_text_as_the_draft() -> None:
    made = forked(two_turns().conv, "two")
    assert texts(made) == ["one", "1"]
    assert made.draft == "two"
    assert forked(two_turns().conv, "one").nodes == {}


def test_fork_at_a_first_message_leaves_the_documents_to_the_folder() -> None:
    own = Attachment(name="a.txt", kind="txt", text="A", digest="a")
    document = replace(own, name="b.txt", digest="b", from_folder=True)
    conv = two_turns().conv
    first = id_of(conv, "one")
    node = replace(conv.nodes[first], attachments=(document, own))

    made = forked(replace(conv, nodes={**conv.nodes, first: node}), "one")

    assert made.draft_attachments == (own,)
