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

`generation` has the model and options to store in the new reply. The window passes None, and sets
the value when a model is ready (tree.set_generation). The command line passes None too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from app.conversation.attachments import (
    Attachment,
    PromptText,
    join_prompts,
    own_files,
    prompt_text,
)
from app.conversation.readers import readers_of, writer_of
from app.conversation.replies import resume_reply
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
    versions,
)
from app.words import problems as words
from engine.errors import UserFixableError
from engine.questions import Preview
from engine.types import FinishReason, Message, Role


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


def plan_send(
    conv: Conversation,
    text: str,
    ids: TurnIds,
    *,
    now: float,
    generation: Generation | None = None,
) -> Turn:
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
    return _plan(cleared, user, _reply_node(ids.reply, user, now, generation))


def plan_edit(  # noqa: PLR0913 (values with defaults)
    conv: Conversation,
    node_id: NodeId,
    text: str,
    ids: TurnIds,
    *,
    now: float,
    attachments: tuple[Attachment, ...] | None = None,
    generation: Generation | None = None,
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
    turn = _plan(conv, user, _reply_node(ids.reply, user, now, generation))
    return replace(turn, edited=node_id)


def begin_reply(turn: Turn, preview: Preview, generation: Generation | None = None) -> Turn:
    """Return a turn whose new reply begins with the text and tokens of a preview.

    Args:
        turn: a turn with an empty reply.
        preview: a preview with tokens.
        generation: model and options of the preview, as for the other plans.
    """
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
        readers=(*turn.readers, _NOBODY),
        plain=turn,
        # A reply that the model ended within its reasoning is drawn to its end again.
        is_whole=preview.is_whole and bool(preview.content),
    )


def plan_regenerate(
    conv: Conversation,
    reply_id: NodeId,
    new_id: NodeId,
    *,
    now: float,
    generation: Generation | None = None,
) -> Turn:
    """Plan a turn with a new version of a reply, generated from the same messages."""
    parent = conv.nodes[reply_id].parent
    assert parent is not None
    user, reply = conv.nodes[parent], conv.nodes[reply_id]
    turn = _plan(conv, user, _reply_node(new_id, user, now, generation))
    is_cut = reply.status is MessageStatus.STOPPED and reply.reply is None
    return replace(turn, is_unsaved=is_cut and writer_of(reply) is not None)


def can_continue(conv: Conversation, reply_id: NodeId) -> bool:
    """Return True if a reply has text, was cut off, and has no message below it."""
    reply = conv.nodes[reply_id]
    is_cut = reply.status in (MessageStatus.STOPPED, MessageStatus.FAILED) or is_at_limit(reply)
    return is_cut and _has_text(reply) and reply_id not in conv.children


def is_empty_reply(node: MessageNode) -> bool:
    """Return True for a reply that was stopped before its first token."""
    return node.status is MessageStatus.STOPPED and not _has_text(node)


def empty_versions(conv: Conversation, reply: MessageNode) -> list[NodeId]:
    """Return the other versions of a reply that are empty and have no message below them."""
    others = (one for one in versions(conv, reply.node_id) if one != reply.node_id)
    return [one for one in others if is_empty_reply(conv.nodes[one]) and one not in conv.children]


def can_retry(conv: Conversation, reply_id: NodeId) -> bool:
    """Return True if a reply has ended without an answer, and has no message below it."""
    reply = conv.nodes[reply_id]
    return (is_empty_reply(reply) or is_silent(reply)) and reply_id not in conv.children


def is_silent(node: MessageNode) -> bool:
    """Return True for a reply that the model ended itself, without an answer."""
    reason = node.generation and node.generation.finish_reason
    return reason is FinishReason.STOP and not node.content.strip()


def is_at_limit(reply: MessageNode) -> bool:
    """Return True if a reply reached its own max_tokens, and False if the context was full."""
    generation = reply.generation
    if generation is None or generation.finish_reason is not FinishReason.LENGTH:
        return False
    if generation.usage is None:
        return False
    # The tokens of a preview count for the limit, those of a reply before it was continued do not.
    num_tokens = 0 if reply.reply is None else reply.reply.num_tokens
    num_drawn = generation.usage.output_tokens
    return num_drawn >= generation.max_tokens or num_tokens == generation.max_tokens


def plan_continue(conv: Conversation, reply_id: NodeId, *, now: float) -> Turn:
    """Plan a turn that continues a cut-off reply: its text stays, and new text is appended.

    The caller checks can_continue() first.
    """
    assert can_continue(conv, reply_id)
    user_id = conv.nodes[reply_id].parent
    assert user_id is not None
    # Make the messages before resume_reply() drops the token ids, which the engine needs.
    prompted = _with_readers(conv, path_to(conv, reply_id))
    return _turn(resume_reply(conv, reply_id), user_id, reply_id, prompted, now=now)


def messages_ahead(conv: Conversation, draft: str = "") -> tuple[Message, ...]:
    """Return the messages at the start of the next prompt: those on show, and the draft if any.

    The window passes them to the engine to read ahead (controllers/requests.py). The system prompt
    comes first, even if there is no message and no draft. The attachments of the draft count as a
    draft, and so do the documents of the folder, which the first message will have.
    """
    prompted = _without_readers(conv, shown_path(conv))
    files = (*conv.documents, *conv.draft_attachments)
    if draft.strip() or files:
        _add_user(prompted, prompt_text(files, message_text(draft)), _NOBODY)
    return tuple(one.message for one in prompted)


def messages_edited(conv: Conversation, node_id: NodeId, text: str) -> tuple[Message, ...]:
    """Return the messages up to an edited one, as plan_edit() or rewrite_reply() would make them.

    The text must not be blank.
    """
    before = conv.nodes[node_id]
    edited = replace(before, content=message_text(text), reply=None)
    above = () if before.parent is None else path_to(conv, before.parent)
    return tuple(one.message for one in _without_readers(conv, (*above, edited)))


def prompt_nodes(conv: Conversation, reply_id: NodeId) -> tuple[NodeId, ...]:
    """Return the nodes of the messages that the prompt of a reply had, and the reply.

    Item n - 1 is the message that the engine's reasons call message n. Of joined user messages it
    is the first.
    """
    nodes: list[MessageNode] = []
    for node in path_to(conv, reply_id):
        if node.role is Role.USER:
            is_prompted = not nodes or nodes[-1].role is not Role.USER
        else:
            is_prompted = node.node_id == reply_id or _holds_something(node)
        if is_prompted:
            nodes.append(node)
    return tuple(node.node_id for node in nodes)


def _user_node(
    text: str,
    attachments: tuple[Attachment, ...],
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


def _reply_node(
    node_id: NodeId, user: MessageNode, now: float, generation: Generation | None
) -> MessageNode:
    return MessageNode(
        node_id=node_id,
        parent=user.node_id,
        role=Role.ASSISTANT,
        content="",
        created_at=now,
        status=MessageStatus.STREAMING,
        generation=generation,
    )


def _plan(conv: Conversation, user: MessageNode, reply: MessageNode) -> Turn:
    is_new = user.node_id not in conv.nodes
    is_first = is_new and user.parent is None
    is_edit = is_first and has_messages(conv)
    conv = with_title_kept(conv) if is_edit else conv
    grown = add_nodes(conv, user, reply) if is_new else add_nodes(conv, reply)
    prompted = _with_readers(grown, path_to(grown, user.node_id))
    if is_edit:
        grown = retitled(grown)
    elif is_first and not conv.title_is_manual:
        grown = replace(grown, title=first_title(user))
    return _turn(grown, user.node_id, reply.node_id, prompted, now=reply.created_at)


def _turn(
    conv: Conversation,
    user_id: NodeId,
    reply_id: NodeId,
    prompted: list[_Prompted],
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


@dataclass(frozen=True, slots=True)
class _Prompted:
    """A message in the form that the model gets, and the models that have read it."""

    message: Message
    readers: frozenset[str]


_NOBODY: Final = frozenset[str]()


def _with_readers(conv: Conversation, path: Sequence[MessageNode]) -> list[_Prompted]:
    """Return the messages of a branch, with their readers."""
    return _prompted(conv, path, readers_of(conv, path), _readers_of_system(conv))


def _without_readers(conv: Conversation, path: Sequence[MessageNode]) -> list[_Prompted]:
    """Return the messages of a branch without their readers, which takes half the time."""
    return _prompted(conv, path, [_NOBODY] * len(path), _NOBODY)


def _prompted(
    conv: Conversation,
    path: Sequence[MessageNode],
    readers_of_path: Sequence[frozenset[str]],
    readers_of_system: frozenset[str],
) -> list[_Prompted]:
    """Return the messages of a branch in the form that the model gets.

    A reply without content, which failed or was stopped at once, is left out. The user messages
    before and after such a reply are joined, because many chat templates refuse two user messages
    in a row.
    """
    prompted: list[_Prompted] = []
    if conv.system_prompt.strip():
        system = Message(role=Role.SYSTEM, content=conv.system_prompt)
        prompted.append(_Prompted(system, readers_of_system))
    for node, readers in zip(path, readers_of_path, strict=True):
        if node.role is Role.ASSISTANT:
            assert node.status is not MessageStatus.STREAMING, "the previous reply must have ended"
            if _holds_something(node):
                prompted.append(_Prompted(_reply_message(node), readers))
        else:
            _add_user(prompted, prompt_text(node.attachments, node.content), readers)
    return prompted


def _readers_of_system(conv: Conversation) -> frozenset[str]:
    """Return the models that have read the system prompt: none if it has changed since."""
    if conv.system_prompt != conv.read_system_prompt:
        return frozenset()
    writers = map(writer_of, conv.nodes.values())
    return frozenset(one for one in writers if one is not None)


def _add_user(prompted: list[_Prompted], text: PromptText, readers: frozenset[str]) -> None:
    if prompted and prompted[-1].message.role is Role.USER:
        earlier = prompted.pop()
        message, readers = earlier.message, earlier.readers & readers
        before = PromptText(message.content, message.part_ends, message.pictures)
        text = join_prompts(before, text)
    message = Message(
        role=Role.USER, content=text.content, part_ends=text.part_ends, pictures=text.pictures
    )
    prompted.append(_Prompted(message, readers))


def _reply_message(node: MessageNode) -> Message:
    return Message(
        role=Role.ASSISTANT,
        content=node.content,
        reasoning=node.reasoning,
        reply=node.reply,  # with token ids, the engine need not tokenize the text again
    )


def _holds_something(reply: MessageNode) -> bool:
    # A complete reply stays in the prompt even if it is empty, because it is part of the engine's
    # cached state.
    return reply.status is MessageStatus.COMPLETE or _has_text(reply)


def _has_text(reply: MessageNode) -> bool:
    # A reply can have tokens and no text: it may have been cut off inside its first character.
    has_tokens = reply.reply is not None and bool(reply.reply.token_bytes)
    return has_tokens or bool(reply.content or reply.reasoning)
