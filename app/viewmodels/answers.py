"""Several answers to one message, side by side: which ones, how they differ, which words. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.conversation.tree import Conversation, Generation, MessageNode, NodeId, shown_path
from app.viewmodels.comparing import ComparisonSteps, Span, compare_texts
from app.viewmodels.items import column_item
from app.viewmodels.live import LiveReply
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.words import answers as words, inspector

_THINKING = {True: words.THINKING_ON, False: words.THINKING_OFF, None: words.THINKING_AUTO}


def answers_to(conversation: Conversation, question: NodeId) -> tuple[NodeId, ...]:
    """Return all versions of the answer to a message; () if it is not on show or was deleted."""
    if all(node.node_id != question for node in shown_path(conversation)):
        return ()
    return conversation.children.get(question, ())


@dataclass(frozen=True, slots=True)
class AnswerColumnItem:
    """An answer as its column shows it."""

    number: int  # of its version, from 1
    item: TranscriptItem
    differs: str  # options that are not the same in all columns, such as the temperature
    can_regenerate: bool

    @property
    def key(self) -> NodeId:
        return NodeId(self.item.key)

    @property
    def is_running(self) -> bool:
        return self.item.status is ItemStatus.STREAMING

    @property
    def can_use(self) -> bool:
        """False for an answer that ended without text: it is removed when another is on show."""
        return self.is_running or bool(self.item.text or self.item.reasoning)

    @property
    def name(self) -> str:
        return words.name(self.number)


def column_items(
    conversation: Conversation, replies: Sequence[NodeId], live: Mapping[NodeId, LiveReply]
) -> tuple[AnswerColumnItem, ...]:
    """Return the columns of some versions of a reply. live: replies that are being written."""
    nodes = [conversation.nodes[one] for one in replies]
    siblings = conversation.children[nodes[0].parent] if nodes else ()
    is_answering = any(one in conversation.nodes for one in live)
    return tuple(
        AnswerColumnItem(
            siblings.index(node.node_id) + 1,
            column_item(conversation, node.node_id, live.get(node.node_id)),
            differs,
            not is_answering,
        )
        for node, differs in zip(nodes, differences(nodes), strict=True)
    )


_Option = Callable[[Generation], str]


def _number(label: str, value: Callable[[Generation], float]) -> _Option:
    return lambda generation: words.option(label, f"{value(generation):g}")


# Options that the header of a column may name, the most important first.
_OPTIONS: tuple[_Option, ...] = (
    lambda generation: generation.model_title,
    lambda generation: _THINKING[generation.thinking],
    _number(inspector.TEMPERATURE, lambda one: one.sampling.temperature),
    _number(inspector.TOP_P, lambda one: one.sampling.top_p),
    _number(inspector.TOP_K, lambda one: one.sampling.top_k),
    _number(inspector.MIN_P, lambda one: one.sampling.min_p),
    _number(inspector.XTC_PROBABILITY, lambda one: one.sampling.xtc_probability),
    _number(inspector.REPETITION, lambda one: one.sampling.repetition_penalty),
    _number(inspector.PRESENCE, lambda one: one.sampling.presence_penalty),
    _number(inspector.FREQUENCY, lambda one: one.sampling.frequency_penalty),
)


def differences(replies: Sequence[MessageNode]) -> list[str]:
    """Return for each reply the options that it was generated with and that differ between them.

    A reply without a generation, such as one that the user wrote, has none.
    """
    known = [one.generation for one in replies if one.generation is not None]
    differing = [option for option in _OPTIONS if len(set(map(option, known))) > 1]
    return [
        "" if one.generation is None else " · ".join(option(one.generation) for option in differing)
        for one in replies
    ]


def differing_words(
    base: Sequence[str], other: Sequence[str], steps: ComparisonSteps
) -> list[list[Span]]:
    """Return for each text of `other` the spans of words that the texts of `base` lack there.

    steps: the steps that the comparison may take.
    """
    parts = compare_texts("\n".join(base), "\n".join(other), steps)
    marks: list[Span] = []
    at = 0
    for part in parts:
        marks += [(at + begin, at + end) for begin, end in part.second.marks]
        at += len(part.second.text)
    spans: list[list[Span]] = []
    start = 0
    for text in other:
        end = start + len(text)
        spans.append(
            [
                (max(begin, start) - start, min(stop, end) - start)
                for begin, stop in marks
                if begin < end and stop > start
            ]
        )
        start = end + 1
    return spans
