"""A conversation that tests change by user actions. Ids are consecutive numbers."""

from __future__ import annotations

from dataclasses import replace

from app.conversation.actions import Turn, TurnIds, plan_edit, plan_regenerate, plan_send
from app.conversation.filed import FiledConversation
from app.conversation.replies import finish_reply, set_generation
from app.conversation.tree import Conversation, Generation, NodeId, new_conversation
from engine.events import RequestFinished
from engine.types import ConversationId, FinishReason, ReplyTokens, RequestId, SamplingParams
from engine.usage import PromptPlan, Reason, ReasonKind, Usage

GENERATION = Generation(
    model_path="/models/tiny",
    model_name="Tiny 1B",
    template_hash="template",
    thinking=None,
    sampling=SamplingParams(temperature=0.25, seed=7),
    max_tokens=64,
)

REPLAYED = Reason(kind=ReasonKind.FAULT, num_tokens=1, at=8, text="A saved state was wrong.")
READ = Reason(
    kind=ReasonKind.NEW_MESSAGE, num_tokens=3, at=9, text="Message 3 is new: 3 tokens.", message=3
)

USAGE = Usage(
    plan=PromptPlan(
        prompt_tokens=12, restored=8, replayed=1, read=3, matched=8, reasons=(REPLAYED, READ)
    ),
    output_tokens=3,
    queue_ms=0.25,
    render_ms=0.5,
    restore_ms=1.5,
    prefill_ms=20.125,
    ttft_ms=22.0,
    total_ms=123.75,
    decode_tok_s=60.5,
    cache_bytes=4096,
    saved_ms=1500.5,
)


def finished(
    content: str,
    *,
    reasoning: str = "",
    reason: FinishReason = FinishReason.STOP,
    token_ids: tuple[int, ...] = (5, 300, 4_000_000_000),
) -> RequestFinished:
    reply = ReplyTokens.of(token_ids, answer_start=1, tokenizer_hash="tokenizer")
    return RequestFinished(
        request_id=RequestId("request"),
        reason=reason,
        content=content,
        reasoning=reasoning,
        reply=reply,
        usage=USAGE,
        prompt_ids=(),
    )


def generated(turn: Turn, generation: Generation) -> Turn:
    """Return a turn whose reply has its model and options, as if it was submitted."""
    return replace(turn, conversation=set_generation(turn.conversation, turn.reply_id, generation))


class ConversationWriter:
    """A conversation and the actions on it. `conv` is its value after the last action."""

    def __init__(self, name: str = "A") -> None:
        self.conv: Conversation = new_conversation(ConversationId(name), now=0.0)
        self._count = 0

    def send(self, text: str, answer: str = "Yes.") -> Turn:
        return self._answer(plan_send(self.conv, text, self.ids(), now=self.now()), answer)

    def edit(self, node_id: NodeId, text: str, answer: str = "Yes.") -> Turn:
        turn = plan_edit(self.conv, node_id, text, self.ids(), now=self.now())
        return self._answer(turn, answer)

    def regenerate(self, reply_id: NodeId, answer: str = "No.") -> Turn:
        turn = plan_regenerate(self.conv, reply_id, self.ids().reply, now=self.now())
        return self._answer(turn, answer)

    def ids(self) -> TurnIds:
        self._count += 1
        name = f"{self.conv.conversation_id}{self._count}"
        return TurnIds(user=NodeId(f"{name}u"), reply=NodeId(f"{name}r"))

    def now(self) -> float:
        return float(self._count)

    def _answer(self, turn: Turn, answer: str) -> Turn:
        self.conv = finish_reply(turn.conversation, turn.reply_id, finished(answer))
        return turn


def filed(conversation: Conversation) -> FiledConversation:
    """Return a conversation as an import finds it: not pinned, and in no folder."""
    return FiledConversation(conversation=conversation)
