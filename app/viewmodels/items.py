"""Transcript items of a conversation: one item for each message of the visible branch.

The chat view requests the items after every change of the conversation that it shows. So the items
of stored messages are cached. Only a reply that is being written gets a new item each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.conversation.deletion import can_delete
from app.conversation.folder import Folder
from app.conversation.quotes import QuotedDocument, QuotedFile
from app.conversation.replies import can_continue, can_retry, is_at_limit, is_silent
from app.conversation.tree import (
    Conversation,
    Generation,
    MessageNode,
    MessageStatus,
    NodeId,
    shown_path,
    versions,
)
from app.viewmodels.attachments import sent_chip
from app.viewmodels.live import LiveReply
from app.viewmodels.phases import Planned
from app.viewmodels.transcript import (
    ItemStatus,
    ReplyFigures,
    TranscriptItem,
    Version,
)
from app.words import transcript as words, units
from engine.types import ConversationId, FinishReason, ReplyTokens, Role

KEPT = 5  # number of conversations whose items are cached
_ONLY_VERSION = Version()
_STATUS = {
    MessageStatus.COMPLETE: ItemStatus.COMPLETE,
    MessageStatus.STREAMING: ItemStatus.STREAMING,
    MessageStatus.STOPPED: ItemStatus.STOPPED,
    MessageStatus.FAILED: ItemStatus.FAILED,
}


class TranscriptItems:
    """A cache of transcript items, for the conversations that were shown last."""

    def __init__(self) -> None:
        self._made: dict[ConversationId, _Made] = {}

    def of(
        self,
        conversation: Conversation,
        live: Mapping[NodeId, LiveReply],
        editing: NodeId | None = None,
    ) -> tuple[TranscriptItem, ...]:
        """Return the items of the visible branch.

        `live` has the replies that are being written, by node id. `editing` is the node id of the
        message that is open in an editor.
        """
        is_answering = any(node_id in conversation.nodes for node_id in live)
        made = self._made.pop(conversation.conversation_id, None)
        if made is None or not made.is_of(conversation, is_answering=is_answering):
            made = _Made(
                conversation,
                is_answering,
                _stored_items(conversation, is_answering=is_answering),
            )
        self._made[conversation.conversation_id] = made
        if len(self._made) > KEPT:
            del self._made[next(iter(self._made))]
        items = list(made.items)
        if items and (reply := live.get(NodeId(items[-1].key))) is not None:
            items[-1] = _live_item(items[-1], reply)
        if editing is not None:
            items = [replace(one, editing=True) if one.key == editing else one for one in items]
        return tuple(items)


def column_item(
    conversation: Conversation, reply_id: NodeId, live: LiveReply | None
) -> TranscriptItem:
    """Return the item of one of several answers, which need not be on show.

    live: the reply while it is being written; None if it has ended.
    """
    node = conversation.nodes[reply_id]
    item = _reply_item(node, _version(conversation, reply_id), deletes=False, names_model=False)
    return replace(item if live is None else _live_item(item, live), is_column=True)


@dataclass(frozen=True, slots=True)
class _Made:
    """The cached items of the stored messages of one conversation."""

    conversation: Conversation
    is_answering: bool
    items: tuple[TranscriptItem, ...]

    def is_of(self, other: Conversation, *, is_answering: bool) -> bool:
        """Return True if the cached items are still valid for `other`, a newer conversation state.

        A new draft or title does not make the items invalid.
        """
        mine = self.conversation
        return (
            mine.nodes is other.nodes
            and mine.children is other.children
            and mine.shown is other.shown
            and self.is_answering == is_answering
        )


def _stored_items(conversation: Conversation, *, is_answering: bool) -> tuple[TranscriptItem, ...]:
    items: list[TranscriptItem] = []
    path = shown_path(conversation)
    names_model = len({one.generation.model_path for one in path if one.generation}) > 1
    for node in path:
        version = _version(conversation, node.node_id)
        deletes = not is_answering and can_delete(conversation, node.node_id)
        if node.role is Role.USER:
            items.append(_user_item(node, version, deletes=deletes))
            continue
        item = _reply_item(node, version, deletes=deletes, names_model=names_model)
        if not is_answering:
            item = replace(
                item,
                can_continue=can_continue(conversation, node.node_id),
                can_retry=can_retry(conversation, node.node_id),
            )
        items.append(item)
    return tuple(items)


def _version(conversation: Conversation, node_id: NodeId) -> Version:
    siblings = versions(conversation, node_id)
    if len(siblings) == 1:
        return _ONLY_VERSION
    return Version(siblings.index(node_id) + 1, len(siblings))


def _user_item(node: MessageNode, version: Version, *, deletes: bool) -> TranscriptItem:
    return TranscriptItem(
        key=node.node_id,
        role=Role.USER,
        text=node.content,
        version=version,
        can_delete=deletes,
        files=tuple(map(sent_chip, node.attachments)),
    )


def _reply_item(
    node: MessageNode,
    version: Version,
    *,
    deletes: bool,
    names_model: bool,
) -> TranscriptItem:
    return TranscriptItem(
        key=node.node_id,
        role=Role.ASSISTANT,
        text=node.content,
        reasoning=node.reasoning,
        reasoning_s=_reasoning_s(node.generation, node.reply),
        status=ItemStatus.UNANSWERED if _lacks_answer(node) else _STATUS[node.status],
        version=version,
        figures=_figures(node, names_model=names_model),
        phase=stored_phase(node.generation),
        problem=node.problem,
        cut=_cut(node),
        can_delete=deletes,
    )


def _live_item(stored: TranscriptItem, live: LiveReply) -> TranscriptItem:
    return TranscriptItem(
        key=stored.key,
        role=Role.ASSISTANT,
        text=live.content,
        reasoning=live.reasoning,
        reasoning_s=_sum(stored.reasoning_s, live.reasoning_s),
        status=ItemStatus.STREAMING,
        version=stored.version,
        phase=live.phase,
        is_late=live.is_late,
    )


def _sum(earlier_s: float | None, new_s: float | None) -> float | None:
    return earlier_s if new_s is None else new_s + (earlier_s or 0.0)


def _cut(reply: MessageNode) -> str:
    """Return the label for a reply that was cut off or is empty, or an empty string.

    For a failed reply the label does not give the reason: an error card shows it.
    """
    generation = reply.generation
    if reply.status is MessageStatus.STOPPED:
        return words.NO_ANSWER if _lacks_answer(reply) else _why_stopped(generation)
    if reply.status is MessageStatus.FAILED:
        return words.INTERRUPTED if reply.content or reply.reasoning else ""
    if is_silent(reply):
        return words.SILENT
    if generation is None or generation.finish_reason is not FinishReason.LENGTH:
        return ""
    limit = units.tokens(generation.max_tokens)
    return words.reached_limit(limit) if is_at_limit(reply) else words.NO_ROOM


def _why_stopped(generation: Generation | None) -> str:
    """Return the label for a stopped reply: the user, a quit, the end of the app, or the model."""
    if generation is None or generation.finish_reason is FinishReason.CANCELLED:
        return words.APP_QUIT if generation is not None and generation.was_quit else words.STOPPED
    if generation.was_quit:
        return words.APP_QUIT
    is_over = generation.finish_reason is FinishReason.ERROR
    return words.APP_ENDED if is_over else words.INTERRUPTED


def _lacks_answer(reply: MessageNode) -> bool:
    """Return True for the empty answer of a question with which an imported chat ends."""
    was_requested = reply.generation is not None and bool(reply.generation.model_path)
    return reply.status is MessageStatus.STOPPED and not (reply.content or was_requested)


def _figures(reply: MessageNode, *, names_model: bool) -> ReplyFigures | None:
    """Return the figures of a reply. names_model: True if several models answered in the chat."""
    generation = reply.generation
    if generation is None:
        return None
    model_name, usage = generation.model_title, generation.usage
    if usage is None:
        return ReplyFigures(model_name=model_name, names_model=names_model)
    num_tokens = reply.reply.num_tokens if reply.reply else usage.output_tokens
    is_continued = 0 < usage.output_tokens < num_tokens
    return ReplyFigures(
        decode_tok_s=usage.decode_tok_s or None,
        first_token_s=usage.ttft_ms / 1000 if usage.output_tokens else None,
        num_tokens=num_tokens,
        num_last=usage.output_tokens if is_continued else None,
        model_name=model_name,
        names_model=names_model,
    )


def stored_phase(generation: Generation | None) -> Planned | None:
    """Return the phase of an ended reply; None if its usage is unknown."""
    if generation is None or generation.usage is None:
        return None
    usage = generation.usage
    return Planned(
        plan=usage.plan,
        restore_ms=usage.restore_ms,
        queue_ms=usage.queue_ms + usage.render_ms,  # until restoring began, as in the live line
        load_ms=usage.load_ms,
        saved_ms=usage.saved_ms,
        wait_ms=usage.ttft_ms if usage.output_tokens else None,
    )


def _reasoning_s(generation: Generation | None, reply: ReplyTokens | None) -> float | None:
    """Return the duration of the reasoning in seconds.

    If it was not measured, it is estimated from the number of tokens.
    """
    if generation is not None and generation.reasoning_s is not None:
        return generation.reasoning_s  # also while the reply is continued
    if generation is None or generation.usage is None or reply is None:
        return None
    rate = generation.usage.decode_tok_s
    return reply.answer_start / rate if rate > 0 and reply.answer_start > 0 else None


def with_quotes(item: TranscriptItem, quotes: Sequence[QuotedDocument]) -> TranscriptItem:
    """Return an item with the rows of the documents that an ended answer quotes."""
    if not quotes or item.status is ItemStatus.STREAMING:
        return item
    return replace(
        item, quotes=tuple(QuotedFile(one.document.name, len(one.ranges)) for one in quotes)
    )


def with_folder(item: TranscriptItem, folder: Folder) -> TranscriptItem:
    """Name the folder of a message's documents, if this folder has documents with all their names.

    The chat may have been begun in another folder.
    """
    names = {chip.name for chip in item.files if chip.from_folder}
    known = {one.attachment.name for one in folder.documents}
    return replace(item, folder=folder.name) if names and names <= known else item
