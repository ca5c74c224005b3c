"""Random conversations for Hypothesis: edits, new versions, deletions and choices of a version."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from app.conversation.deletion import can_delete, delete_message
from app.conversation.filed import FiledConversation
from app.conversation.folder import Folder, FolderColor
from app.conversation.placement import FolderId, Placement
from app.conversation.replies import set_generation
from app.conversation.tree import (
    Conversation,
    MessageStatus,
    NodeId,
    Setup,
    replace_node,
    set_draft,
    set_system_prompt,
    set_title,
    show_version,
    shown_path,
)
from engine.problem import Problem
from engine.types import Role
from tests.fakes.conversations import GENERATION, USAGE, ConversationWriter

TEXTS = st.text(min_size=1, max_size=30).filter(lambda text: bool(text.strip()))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "edit", "again", "show", "delete", "fail", "model"]),
        st.integers(0, 1000),
        TEXTS,
    ),
    max_size=14,
)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    writer = ConversationWriter(draw(st.sampled_from("ABC")))
    for step, number, text in draw(STEPS):
        _play(writer, step, number, text)
    conv = set_system_prompt(set_title(writer.conv, draw(st.text(max_size=9))), draw(TEXTS))
    setup = Setup(temperature=draw(st.none() | st.floats(0, 2)), seed=draw(st.none() | st.just(7)))
    return replace(set_draft(conv, draw(st.text(max_size=9))), setup=setup, keep_ready=True)


@st.composite
def filed_conversations(draw: st.DrawFn) -> FiledConversation:
    """Draw a conversation at a random place of the list, in a random folder or in none."""
    folder = draw(
        st.none()
        | st.builds(
            Folder,
            folder_id=st.sampled_from("FG").map(FolderId),
            name=st.sampled_from(["Work", "R\u00e9sum\u00e9s"]),
            color=st.sampled_from(FolderColor),
            created_at=st.just(3.5),
            system_prompt=st.sampled_from(["", "Be brief."]),
            preset=st.sampled_from(["", "Poet"]),
        )
    )
    return FiledConversation(
        conversation=draw(conversations()),
        placement=Placement(
            pinned=draw(st.booleans()),
            archived=draw(st.booleans()),
            folder_id=folder and folder.folder_id,
        ),
        folder=folder,
    )


def _play(writer: ConversationWriter, step: str, number: int, text: str) -> None:
    shown = shown_path(writer.conv)
    if step == "send" or not shown:
        writer.send(text, text[::-1])
        return
    node = shown[number % len(shown)]
    is_user = node.role is Role.USER
    match step:
        case "edit" if is_user:
            writer.edit(node.node_id, text)
        case "again" if not is_user:
            writer.regenerate(node.node_id, text)
        case "show":
            siblings = writer.conv.children[node.parent]
            writer.conv = show_version(writer.conv, siblings[number % len(siblings)])
        case "delete" if can_delete(writer.conv, node.node_id):
            writer.conv = delete_message(writer.conv, node.node_id, now=1.0)
        case "fail" if not is_user:
            problem = Problem(title="No memory.", cause=text, advice="")
            failed = replace(node, status=MessageStatus.FAILED, problem=problem, reasoning=text)
            writer.conv = replace_node(writer.conv, failed)
        case "model" if not is_user:
            generation = replace(GENERATION, usage=USAGE)
            writer.conv = set_generation(writer.conv, node.node_id, generation)
        case _:
            pass


def without_deleted(conv: Conversation) -> Conversation:
    """Return a conversation without its deleted messages and the messages below them."""
    kept: set[NodeId | None] = {None}
    for node in conv.nodes.values():
        if node.deleted_at is None and node.parent in kept:
            kept.add(node.node_id)
    return replace(
        conv,
        nodes={node_id: node for node_id, node in conv.nodes.items() if node_id in kept},
        children={parent: ids for parent, ids in conv.children.items() if parent in kept},
        shown={parent: node_id for parent, node_id in conv.shown.items() if parent in kept},
    )
