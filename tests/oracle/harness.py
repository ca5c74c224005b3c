"""A harness that plays the actions of users on one engine and checks all that the engine promises.

The real engine core runs in the calling thread. Each `step` does one piece of its work. The app's
own conversation code turns actions into messages (people.py). The harness checks:

- every answer: its logits must be those of the bare model with empty caches,
- every prompt: no token that the engine has processed is fed again (account.py),
- the cache at rest: its ledger must be the sum of the bytes of its arrays (holdings.py).

machine.py (random actions), turns.py (a long run) and the fault tests use this harness.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import mlx.core as mx

from app.cli.script_chats import visible_messages
from app.conversation.actions import Turn
from app.conversation.tree import NodeId
from engine.cache.prefix_cache import PrefixCache
from engine.cache_figures import NOTHING_CACHED
from engine.config import EngineConfig
from engine.errors import NoModelError
from engine.events import (
    Answered,
    Cancel,
    Command,
    Event,
    IdleStopped,
    IdleWorking,
    LoadModel,
    ModelLoaded,
    ReadAhead,
    RequestFailed,
    RequestFinished,
    RequestStarted,
    Submit,
    TextDelta,
    UnloadModel,
)
from engine.problem import Problem
from engine.questions import (
    Ask,
    AwaitIdle,
    CheckResult,
    Evict,
    EvictWhat,
    Forget,
    QuestionId,
    Verify,
)
from engine.types import ConversationId, FinishReason, Message, RequestId, Role
from engine.usage import PromptPlan
from tests.fakes.asking import reply_of
from tests.fakes.inline_engine import InlineClient
from tests.oracle.account import Account, ahead_of
from tests.oracle.flight import Flight, How
from tests.oracle.holdings import fingerprint, real_bytes
from tests.oracle.people import People

# Models that give the same bits for a prompt read in one go as for a prompt read in chunks (on a
# CPU, with the reference BLAS).
BITWISE = frozenset({"qwen3_5", "lfm2", "llama"})


@dataclass(frozen=True, slots=True)
class _Begun:
    """The options and the template of a reply, which are needed again to continue the reply."""

    how: How
    template_hash: str


class Harness:
    """The conversations of several users on one engine, with a check of every event."""

    def __init__(self, config: EngineConfig) -> None:
        self.client = InlineClient(config)
        self.people = People()
        self.flights: dict[RequestId, Flight] = {}
        self.account = Account()
        # None in most tests: no request may fail, and all answers are verified. While a test plants
        # faults, this is the list of the problems of failed requests. Answers are then not
        # verified, because the verification would call the faulty code too.
        self.problems: list[Problem] | None = None
        self.num_planted = 0  # number of planted wrong states; the cache must detect each one
        self.num_checked = 0  # number of verified answers
        self._begun: dict[NodeId, _Begun] = {}
        # The cache and its number of evictions, as found by the last call of _is_anything_lost.
        self._known_cache: PrefixCache | None = None
        self._known_evictions = 0
        # Key: id() of a list of caches. Value: number of prompt tokens fed into it.
        self._fed: Counter[int] = Counter()
        # Key: conversation. Value: key (see ahead_of) of the prompt that idle work should read
        # ahead.
        self._read_ahead: dict[str, object] = {}
        self._to_verify: list[Verify] = []  # Verify commands that are not sent yet
        # questions whether answers are exact
        self._unverified: set[QuestionId] = set()
        self._cancelled: set[RequestId] = set()
        self._is_idle_work_on = config.idle_work
        self._pinned: set[ConversationId] = set()
        self._is_working_ahead = False
        self._awaited: set[QuestionId] = set()  # the open question of await_idle
        # False from a load until the next ModelLoaded, because a load discards recorded logits.
        self._has_records = False
        self._model_type = ""
        self._num_requests = 0

    # Actions of users

    def send(self, chat: str, text: str, how: How, *, is_fresh: bool) -> None:
        self._submit(self.people.send(chat, text), how, text if is_fresh else None)

    def edit(self, chat: str, nth: int, text: str, how: How, *, is_fresh: bool) -> None:
        self._submit(self.people.edit(chat, nth, text), how, text if is_fresh else None)

    def regenerate(self, chat: str, nth: int, how: How) -> None:
        turn = self.people.regenerate(chat, nth)
        if turn is not None:
            self._submit(turn, how, None)

    def resume(self, chat: str, how: How) -> None:
        """Continue the last reply if it was cut off and its model's template is still loaded."""
        before = self.people.chat(chat)
        replies = self.people.shown(chat, Role.ASSISTANT)
        begun = self._begun.get(replies[-1].node_id) if replies else None
        if begun is None or begun.template_hash != self._template_hash:
            return
        turn = self.people.resume(chat)
        if turn is not None:
            # A continued reply keeps the thinking option of its first request.
            how = replace(how, thinking=begun.how.thinking)
            self._submit(turn, how, None, visible_messages(before, turn.reply_id))

    @property
    def _template_hash(self) -> str:
        return self.client.core.model.facts.template_hash if self.client.core.model else ""

    def ask_aside(self, chat: str, how: How) -> None:
        """Send a side request. If it is the only request, assert that the cache does not change."""
        asked = self.people.shown(chat, Role.USER)
        content = asked[0].content if asked else "A title, please."
        messages = (Message(role=Role.USER, content=content),)
        is_alone = not self.flights
        if is_alone:
            self._rest()
        before = fingerprint(self.cache)
        request = how.ask(self._name(), chat, messages, (), side=True)
        self._take_off(Flight(request, messages, None, is_fresh=False))
        if is_alone:
            while request.request_id in self.flights:
                assert self.step()
            assert fingerprint(self.cache) == before

    def cancel(self, which: int) -> None:
        if self.flights:
            ids = list(self.flights)
            request_id = ids[which % len(ids)]
            self._cancelled.add(request_id)
            self.tell(Cancel(request_id))

    def delete(self, chat: str) -> None:
        self.people.chats.pop(chat, None)
        self.forget(chat)

    def forget(self, chat: str) -> None:
        self.account.forget(chat)
        self._read_ahead.pop(chat, None)
        self.tell(Ask(Forget(ConversationId(chat))))

    def read_ahead(self, chat: str, how: How, draft: str = "") -> None:
        """Send a ReadAhead of the shown messages, followed by the draft if there is one."""
        if chat in self.busy:
            return
        messages = self.people.upcoming(chat, draft)
        if not draft and (not messages or messages[-1].role is not Role.ASSISTANT):
            return
        self._read_ahead.pop(chat, None)
        if not draft:
            request = how.ask("", chat, messages, (), side=False)
            self._read_ahead[chat] = ahead_of(messages, request)
        self.tell(
            ReadAhead(
                conversation_id=ConversationId(chat),
                messages=messages,
                is_draft=bool(draft),
                thinking=how.thinking,
                keep_thinking=how.keep_thinking,
            )
        )

    def set_idle_work(self, enabled: bool) -> None:
        self._is_idle_work_on = enabled
        self.client.set_idle_work(enabled=enabled)
        self.step()

    def pin(self, chat: str, *, pinned: bool) -> None:
        change = self._pinned.add if pinned else self._pinned.discard
        change(ConversationId(chat))
        self.client.pin(frozenset(self._pinned))
        self.step()

    def show(self, chat: str | None) -> None:
        self.client.show(None if chat is None else ConversationId(chat))
        self.step()

    def evict(self, what: EvictWhat) -> None:
        if what is not EvictWhat.HOT:
            self._note_loss()
        self.tell(Ask(Evict(what)))

    def load(self, *folders: Path) -> None:
        """Send a load command for each folder without waiting. Without folders, send an unload."""
        self._ask_to_verify()
        self._has_records = False
        for folder in folders:
            self.client.send(LoadModel(str(folder)))
        if not folders:
            self.client.send(UnloadModel())
        self.step()

    def tell(self, command: Command) -> None:
        self.client.send(command)
        self.step()

    # The engine's work

    @property
    def cache(self) -> PrefixCache | None:
        return self.client.core.cache

    @property
    def busy(self) -> set[str]:
        """Names of the conversations that have a turn in progress."""
        return {flight.chat for flight in self.flights.values() if flight.turn is not None}

    def step(self) -> bool:
        """Do one piece of the engine's work, check its events and return True if there was work."""
        self._ask_to_verify()
        worked = self.client.step()
        if self._is_anything_lost():
            self._note_loss()
            for flight in self.flights.values():
                flight.has_lost = flight.is_started
        for event in self.client.new_events():
            self._receive(event)
        return worked

    def settle(self) -> None:
        """Work until every request is answered and every answer is verified."""
        while self.flights or (self.problems is None and (self._to_verify or self._unverified)):
            assert self.step(), "the engine is idle although requests wait"

    def await_idle(self) -> None:
        """Work until the engine reports that all idle work is done."""
        ask = Ask(AwaitIdle())
        self._awaited.add(ask.question_id)
        self.tell(ask)
        while self._awaited:
            assert self.step(), "the engine is idle but has not answered"
        assert not self.flights
        statistics = self.cache.statistics() if self.cache else NOTHING_CACHED
        # In a nearly full cache, idle work for hidden conversations reads nothing. So rely on
        # read-aheads only if less than a quarter of the budget is used.
        if self._is_idle_work_on and statistics.total_bytes < statistics.budget_bytes // 4:
            for chat, ahead in self._read_ahead.items():
                self.account.of(chat).read_ahead.add(ahead)

    def check(self) -> None:
        """Check the cache's fault counters and, if the engine is at rest, its ledger."""
        if self.cache is None:
            return
        statistics = self.cache.statistics()
        assert statistics.restore_faults == self.num_planted
        assert statistics.audit_faults == 0
        if not self.flights and not self._is_working_ahead:
            ledger = self.cache.holdings.ledger()
            assert ledger == real_bytes(self.cache, self.people.chats)
            assert ledger.total_bytes <= statistics.budget_bytes

    def close(self) -> None:
        """Finish all requests, forget all conversations and assert that the cache is empty."""
        self.settle()
        self._rest()
        self.check()
        for chat in list(self.people.chats):
            self.forget(chat)
        if self.cache is not None:
            assert not list(self.cache.holdings.tree.nodes())
            assert self.cache.holdings.ledger().total_bytes == 0
        self.load()

    def _rest(self) -> None:
        while self.step():
            pass

    # Requests

    def _submit(
        self,
        turn: Turn,
        how: How,
        fresh: str | None,
        visible: tuple[Message, ...] | None = None,
    ) -> None:
        chat = str(turn.conversation.conversation_id)
        assert chat not in self.busy
        self._begun[turn.reply_id] = _Begun(how, self._template_hash)
        request = how.ask(self._name(), chat, turn.messages, turn.new_messages, side=False)
        visible = visible or visible_messages(turn.conversation, turn.user_id)
        # If the previous message got no answer, the new text is appended to it. The joined message
        # then does not begin with the new text.
        is_fresh = turn.messages[-1].content == fresh
        self._take_off(Flight(request, visible, turn, is_fresh=is_fresh))

    def _take_off(self, flight: Flight) -> None:
        self.flights[flight.request.request_id] = flight
        self.client.send(Submit(flight.request, time.perf_counter()))

    def _name(self) -> str:
        self._num_requests += 1
        return f"{self._num_requests}"

    def _is_anything_lost(self) -> bool:
        """Return True if the cache was replaced or has evicted state since the last call."""
        evictions = self.cache.holdings.counters.evictions if self.cache else 0
        is_lost = self.cache is not self._known_cache or evictions != self._known_evictions
        self._known_cache, self._known_evictions = self.cache, evictions
        return is_lost

    def _note_loss(self) -> None:
        """Forget which tokens must be cached, because evicted tokens may be fed again."""
        self.account.clear()
        self._read_ahead.clear()

    def _ask_to_verify(self) -> None:
        if self.problems is None:
            for verify in self._to_verify:
                self._unverified.add(self.client.ask(verify).question_id)
            self._to_verify.clear()

    # Events

    def _receive(self, event: Event) -> None:
        match event:
            case RequestStarted(request_id, plan):
                self._started(self.flights[request_id], plan)
            case TextDelta(request_id, channel, text):
                self.flights[request_id].streamed[channel] += text
            case RequestFinished(request_id):
                self._finished(self.flights.pop(request_id), event)
            case RequestFailed(request_id):
                self._failed(self.flights.pop(request_id), event)
            case Answered(question_id, CheckResult() as result):
                self._unverified.discard(question_id)
                self._hold(result)
            case Answered(question_id):
                self._awaited.discard(question_id)
            case ModelLoaded(facts):
                self._count_fed()
                self._has_records, self._model_type = True, facts.model_type
            case IdleWorking() | IdleStopped():
                self._is_working_ahead = isinstance(event, IdleWorking)
            case _:
                pass

    def _finished(self, flight: Flight, finished: RequestFinished) -> None:
        flight.check(finished)
        assert flight.prompt_ids in ((), finished.prompt_ids)
        if self._has_records and flight.request.record_logits:
            self._to_verify.append(Verify(finished.request_id, flight.visible))
        self.people.finish(flight, finished)
        if flight.turn is not None:
            self._note(flight, finished)

    def _failed(self, flight: Flight, failed: RequestFailed) -> None:
        self.people.fail(flight, failed)
        if self.problems is not None:
            self.problems.append(failed.problem)
        elif failed.problem.title != NoModelError.title:
            assert failed.request_id in self._cancelled, failed.problem

    def _started(self, flight: Flight, plan: PromptPlan) -> None:
        """Compare the plan of a started request with the account of processed tokens."""
        flight.is_started = True
        flight.fed_before = Counter(self._fed)
        if self.problems is not None:
            # Building the prompt here could trigger the planted fault outside the engine's work.
            return
        assert self.client.core.model is not None
        request = flight.request
        prompt = self.client.core.model.prompts.build(
            request.messages, thinking=request.thinking, keep_thinking=request.keep_thinking
        )
        flight.prompt_ids = prompt.token_ids
        flight.tail = prompt.message_starts[-1]
        flight.fork = max(self.account.known_len(prompt.token_ids), plan.matched)
        if flight.turn is None or not self._has_records:
            return
        starts = prompt.message_starts
        self.account.judge(request, plan, prompt.token_ids, starts, is_fresh=flight.is_fresh)

    def _note(self, flight: Flight, finished: RequestFinished) -> None:
        chat, request, output_ids = flight.chat, flight.request, finished.output_ids
        if finished.reply.num_tokens:
            if not flight.has_lost:
                self.account.add_prompt(
                    chat, finished.prompt_ids, fork=flight.fork, tail=flight.tail
                )
                held = finished.prompt_ids + output_ids
                self.account.add(chat, held)
                if finished.reason is not FinishReason.STOP:
                    # A later request may continue the reply. It must feed no token again.
                    self.account.add_prompt(chat, held, fork=flight.fork, tail=len(held))
            above = request.messages if flight.begun is None else request.messages[:-1]
            messages = (*above, reply_of(finished))
            self._read_ahead[chat] = ahead_of(messages, request)
        parked = self.cache.holdings.parked.get(request.conversation_id) if self.cache else None
        if parked is not None:
            fed = parked.num_tokens - finished.usage.plan.restored
            # _fed counts only tokens of prompts. The drawn tokens except the last were fed in a
            # batch.
            num_drawn = finished.usage.output_tokens + (finished.reason is FinishReason.STOP)
            fed -= max(0, num_drawn - 1)
            name = id(parked.caches)
            is_true = self._fed[name] - flight.fed_before[name] == fed
            assert is_true or self.problems is not None, "the plan hides tokens that were fed"
            if not flight.has_lost:
                self.account.add(chat, parked.token_ids)

    def _hold(self, result: CheckResult) -> None:
        assert result.prompt_equal, result
        assert result.equal, result
        assert result.replay_difference == 0.0, result
        if self._model_type in BITWISE:
            assert result.max_difference == 0.0, result
        self.num_checked += 1

    def _count_fed(self) -> None:
        """Wrap the model's forward pass, to count the tokens that each list of caches gets."""
        assert self.client.core.model is not None
        adapter = self.client.core.model.adapter

        def counted(token_ids: Sequence[int], caches: list[object]) -> mx.array:
            self._fed[id(caches)] += len(token_ids)
            return type(adapter).forward(adapter, token_ids, caches)

        setattr(adapter, "forward", counted)  # noqa: B010 — type checkers refuse an assignment
