"""Plans for the user's actions: send, edit, regenerate, continue.

Each plan_... function takes a conversation and returns a `Turn`: the conversation with a new, empty
reply, and the messages of that branch for the engine. The functions are pure and store nothing. The
caller saves the conversation and submits the messages, or discards the turn. Callers are the window
(controllers/chat.py), the command line (app/cli) and tests.

    action       adds to the tree                          last message for the engine
    send         a user message at the end, and a reply    the new user message
    edit         a version of a user message, and a reply  the new version
    regenerate   a version of a reply                      the user message above it
    continue     nothing: the cut-off reply streams again  the reply so far

Every earlier reply must have ended. The window therefore plans no turn while another turn of the
conversation is running.

The new reply has no Generation. The window sets it when a model is ready (replies.set_generation).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace

from app.conversation.attachments import Files, own_files
from app.conversation.prompts import PromptedMessage, prompt_with_readers
from app.conversation.readers import writer_of
from app.conversation.replies import can_continue, resume_reply
from app.conversation.text import message_text
from app.conversation.title import retitled, with_title_kept
from app.conversation.tree import (
    Conversation,
    Generation,
    MessageNode,
    MessageStatus,
    NodeId,
    Setup,
    add_nodes,
    first_title,
    has_messages,
    path_to,
    replace_node,
    shown_path,
)
from app.words import problems as words
from engine.errors import UserFixableError
from engine.questions import Preview
from engine.types import ForcedReply, Message, Role


class EmptyMessageError(UserFixableError):
    """The message to send contains only white space."""

    title = words.EMPTY_MESSAGE
    advice = words.EMPTY_MESSAGE_ADVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnIds:
    """The ids of the user message and the reply that a turn adds."""

    user: NodeId
    reply: NodeId

    @classmethod
    def new(cls, new_id: Callable[[], str]) -> TurnIds:
        """Return ids from a source of new ones."""
        return cls(user=NodeId(new_id()), reply=NodeId(new_id()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A planned turn: the conversation after the action, and the messages for the engine."""

    conversation: Conversation  # contains the turn's reply, with status STREAMING
    user_id: NodeId  # the user message that the reply answers
    reply_id: NodeId
    messages: tuple[Message, ...]  # the last one is the user's message, or the reply to continue
    # the paths of the models that have read each of `messages` (readers.py)
    readers: tuple[frozenset[str], ...]
    # True if an answer to the last message was cut off before the engine saved its state
    is_unsaved: bool = False
    edited: NodeId | None = None  # the message that the user has edited, if the turn is of an edit
    # Number of the reply among those that are written at once to the same message, from 1
    answer: int = 1
    setup: Setup | None = (
        None  # the options of this reply, if they are not those of the conversation
    )
    # The turn without the preview with which its reply begins; None if its reply begins with none.
    plain: Turn | None = None
    is_whole: bool = False  # True if this preview is the whole reply

    @property
    def num_begun(self) -> int:
        """Number of tokens of the preview with which the reply begins."""
        begun = None if self.plain is None else self.messages[-1].reply
        return 0 if begun is None else begun.num_tokens

    @property
    def forced(self) -> ForcedReply | None:
        """The rest of a reply that a preview has written as a whole: no text, and the end."""
        return ForcedReply(text="") if self.is_whole else None

    @property
    def new_messages(self) -> frozenset[int]:
        """Indices of the items of `messages` that no model has read."""
        return frozenset(index for index, one in enumerate(self.readers) if not one)

    def only_read_by(self, models: Set[str]) -> frozenset[int]:
        """Return the indices of the items of `messages` that only the given models have read."""
        return frozenset(index for index, one in enumerate(self.readers) if one and one <= models)

    @property
    def continues_reply(self) -> bool:
        """True if the turn continues an existing reply."""
        return self.messages[-1].role is Role.ASSISTANT


def plan_send(conv: Conversation, text: str, ids: TurnIds, *, now: float) -> Turn:
    """Plan a turn with a new user message at the end of the branch on show. Clear the draft.

    The message gets the documents of the folder if it is the first one, and the files of the draft.

    Raises:
        EmptyMessageError: the text contains only white space, and the user has attached nothing.
    """
    path = shown_path(conv)
    parent = path[-1].node_id if path else None
    files = (*conv.documents, *conv.draft_attachments)
    user = _user_node(text, files, ids.user, parent, now=now)
    cleared = replace(conv, draft="", draft_attachments=(), documents=())
    return _plan(cleared, user, _reply_node(ids.reply, user, now))


def plan_edit(
    conv: Conversation,
    node_id: NodeId,
    text: str,
    ids: TurnIds,
    *,
    now: float,
    attachments: Files | None = None,
) -> Turn:
    """Plan a turn with a new version of a user message, which starts a new branch.

    The draft stays, because the user has typed the edit in the message and not in the composer. The
    new version keeps the attachments, unless others are given.

    Raises:
        EmptyMessageError: the text contains only white space, and the user has attached nothing.
    """
    edited = conv.nodes[node_id]
    assert edited.role is Role.USER
    files = edited.attachments if attachments is None else attachments
    user = _user_node(text, files, ids.user, edited.parent, now=now)
    turn = _plan(conv, user, _reply_node(ids.reply, user, now))
    return replace(turn, edited=node_id)


def begin_reply(
    turn: Turn, preview: Preview, max_tokens: int, generation: Generation | None = None
) -> Turn:
    """Return a turn whose new reply begins with the text and tokens of a preview.

    Return the same turn if the preview has no token, or none is left to draw.

    Args:
        turn: a turn with an empty reply.
        preview: the preview of this turn.
        max_tokens: limit of the reply.
        generation: model and options of the preview; None if they are not stored.
    """
    if preview.reply is None or preview.reply.num_tokens >= max_tokens:
        return turn
    begun = Message(
        role=Role.ASSISTANT,
        content=preview.content,
        reasoning=preview.reasoning,
        reply=preview.reply,
    )
    empty = turn.conversation.nodes[turn.reply_id]
    reply = replace(empty, content=begun.content, reasoning=begun.reasoning, generation=generation)
    return replace(
        turn,
        conversation=replace_node(turn.conversation, reply),
        messages=(*turn.messages, begun),
        readers=(*turn.readers, frozenset()),
        plain=turn,
        # A reply that the model ended within its reasoning is drawn to its end again.
        is_whole=preview.is_whole and bool(preview.content),
    )


def plan_regenerate(conv: Conversation, reply_id: NodeId, new_id: NodeId, *, now: float) -> Turn:
    """Plan a turn with a new version of a reply, generated from the same messages."""
    parent = conv.nodes[reply_id].parent
    assert parent is not None
    user, reply = conv.nodes[parent], conv.nodes[reply_id]
    turn = _plan(conv, user, _reply_node(new_id, user, now))
    is_cut = reply.status is MessageStatus.STOPPED and reply.reply is None
    return replace(turn, is_unsaved=is_cut and writer_of(reply) is not None)


def plan_continue(conv: Conversation, reply_id: NodeId, *, now: float) -> Turn:
    """Plan a turn that continues a cut-off reply: its text stays, and new text is appended.

    The caller checks can_continue() first.
    """
    assert can_continue(conv, reply_id)
    user_id = conv.nodes[reply_id].parent
    assert user_id is not None
    # Make the messages before resume_reply() drops the token ids, which the engine needs.
    prompted = prompt_with_readers(conv, path_to(conv, reply_id))
    return _turn(resume_reply(conv, reply_id), user_id, reply_id, prompted, now=now)


def _user_node(
    text: str,
    attachments: Files,
    node_id: NodeId,
    parent: NodeId | None,
    *,
    now: float,
) -> MessageNode:
    if not text.strip() and not own_files(attachments):
        raise EmptyMessageError("")
    return MessageNode(
        node_id=node_id,
        parent=parent,
        role=Role.USER,
        content=message_text(text),
        created_at=now,
        attachments=attachments,
    )


def _reply_node(node_id: NodeId, user: MessageNode, now: float) -> MessageNode:
    return MessageNode(
        node_id=node_id,
        parent=user.node_id,
        role=Role.ASSISTANT,
        content="",
        created_at=now,
        status=MessageStatus.STREAMING,
    )


def _plan(conv: Conversation, user: MessageNode, reply: MessageNode) -> Turn:
    is_new = user.node_id not in conv.nodes
    is_first = is_new and user.parent is None
    is_edit = is_first and has_messages(conv)
    conv = with_title_kept(conv) if is_edit else conv
    grown = add_nodes(conv, user, reply) if is_new else add_nodes(conv, reply)
    prompted = prompt_with_readers(grown, path_to(grown, user.node_id))
    if is_edit:
        grown = retitled(grown)
    elif is_first and not conv.title_is_manual:
        grown = replace(grown, title=first_title(user))
    return _turn(grown, user.node_id, reply.node_id, prompted, now=reply.created_at)


def _turn(
    conv: Conversation,
    user_id: NodeId,
    reply_id: NodeId,
    prompted: list[PromptedMessage],
    *,
    now: float,
) -> Turn:
    return Turn(
        conversation=replace(conv, read_system_prompt=conv.system_prompt, updated_at=now),
        user_id=user_id,
        reply_id=reply_id,
        messages=tuple(one.message for one in prompted),
        readers=tuple(one.readers for one in prompted),
    )
