"""Driver that plays the chat-tree scenario on our engine.

The driver plans requests with the window's conversation code.
"""

from __future__ import annotations

import resource
import sys
from dataclasses import replace

from app.cli.client import EngineClient, ProblemError
from app.cli.processed import ProcessedTokens
from app.cli.tree.measure import StepCost
from app.cli.tree.scenario import (
    OWN_REPLY_TOKENS,
    STOP_AFTER,
    Replies,
    Scenario,
    TreeAction,
    TreeStep,
)
from app.conversation.actions import Turn, TurnIds, plan_edit, plan_regenerate, plan_send
from app.conversation.replies import finish_reply
from app.conversation.tree import (
    Conversation,
    NodeId,
    new_conversation,
    path_to,
    set_system_prompt,
    show_version,
)
from engine.events import ModelFacts, RequestFailed, RequestFinished
from engine.types import (
    ConversationId,
    ForcedReply,
    Message,
    Request,
    RequestId,
    Role,
    SamplingParams,
)

# Token limit for scripted replies. All scripted replies are shorter, so they end by themselves.
_NO_LIMIT = 4096


class OwnEngine:
    """Our engine with a loaded model. Implements app.cli.tree.measure.TreeEngine."""

    def __init__(
        self,
        client: EngineClient,
        facts: ModelFacts,
        scenario: Scenario,
        replies: Replies,
        *,
        awaits_idle: bool,
        max_drafts: int | None = 0,
    ) -> None:
        self._client = client
        self._facts = facts
        self._scenario = scenario
        self._replies = replies
        self._awaits_idle = awaits_idle
        self._max_drafts = max_drafts  # Request.max_drafts of all requests
        self._chats: dict[str, Conversation] = {}
        self._requests: dict[str, Request] = {}
        self._processed = ProcessedTokens()

    def warm_up(self) -> None:
        hello = Message(role=Role.USER, content="Hello.")
        self._ask(
            Request(
                request_id=RequestId("warm up"),
                conversation_id=ConversationId("warm up"),
                messages=(hello,),
                new_messages=frozenset({0}),
                max_tokens=2,
                side=True,
            )
        )

    def play(self, step: TreeStep) -> StepCost:
        turn = self._plan(step)
        request = self._request(step, turn)
        self._requests[step.name] = request
        finished = self._ask(request)
        self._chats[step.chat] = finish_reply(turn.conversation, turn.reply_id, finished)
        if self._awaits_idle:
            self._await_idle()
        usage, plan = finished.usage, finished.usage.plan
        redo = self._processed.add_answer(
            finished.prompt_ids, finished.output_ids, restored=plan.restored
        )
        return StepCost(
            step=step.name,
            chat=step.chat,
            thinking=step.thinking,
            prompt_tokens=plan.prompt_tokens,
            cached_tokens=plan.restored,
            redo=redo,
            replayed=plan.replayed,
            output_tokens=usage.output_tokens,
            ttft_ms=usage.ttft_ms,
            peak_bytes=_peak_bytes(),
        )

    def cold_ttft_ms(self, step: TreeStep, nonce: str) -> float:
        warm = self._requests[step.name]
        system, *others = warm.messages
        system = replace(system, content=f"{nonce} {system.content}")
        cold = replace(
            warm,
            request_id=RequestId(nonce),
            conversation_id=ConversationId(nonce),
            messages=(system, *others),
            stop_after=1,
            side=True,
        )
        return self._ask(cold).usage.ttft_ms

    def _plan(self, step: TreeStep) -> Turn:
        """Plan the turn of a step as the window does when it shows the step's branch."""
        conv = self._chats.get(step.chat) or set_system_prompt(
            new_conversation(ConversationId(step.chat), now=0.0), self._scenario.system
        )
        user, reply = _user(step.name), _reply(step.name)
        match step.action:
            case TreeAction.SEND:
                if step.after is not None:
                    conv = _show(conv, _reply(step.after))
                return plan_send(conv, step.user, TurnIds(user=user, reply=reply), now=0.0)
            case TreeAction.EDIT:
                ids = TurnIds(user=user, reply=reply)
                return plan_edit(conv, _user(step.target), step.user, ids, now=0.0)
            case TreeAction.REGENERATE:
                return plan_regenerate(conv, _reply(step.target), reply, now=0.0)

    def _request(self, step: TreeStep, turn: Turn) -> Request:
        thinks = step.thinking and self._facts.has_thinking
        forced = ForcedReply(text=step.reply.text, reasoning=step.reply.reasoning if thinks else "")
        is_scripted = self._replies is Replies.SCRIPTED
        return Request(
            request_id=RequestId(step.name),
            conversation_id=turn.conversation.conversation_id,
            messages=turn.messages,
            new_messages=turn.new_messages,
            sampling=SamplingParams(temperature=0.0, top_p=1.0),
            max_tokens=_NO_LIMIT if is_scripted else OWN_REPLY_TOKENS,
            thinking=step.thinking,
            forced=forced if is_scripted else None,
            stop_after=STOP_AFTER if step.stops else None,
            max_drafts=self._max_drafts,
        )

    def _ask(self, request: Request) -> RequestFinished:
        self._client.submit(request)
        while True:
            match self._client.next_event():
                case RequestFinished(request.request_id) as finished:
                    return finished
                case RequestFailed(request.request_id, problem):
                    raise ProblemError(problem)
                case _:
                    pass

    def _await_idle(self) -> None:
        self._client.answer(self._client.await_idle())


def _user(step: str) -> NodeId:
    return NodeId(f"{step} user")


def _reply(step: str) -> NodeId:
    return NodeId(f"{step} reply")


def _show(conv: Conversation, node_id: NodeId) -> Conversation:
    for node in path_to(conv, node_id):
        conv = show_version(conv, node.node_id)
    return conv


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
