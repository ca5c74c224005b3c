"""An engine without model and thread. A test emits its events by hand.

Tests of controllers and of the window use FakeEngine instead of engine.engine.Engine. It records
each command of the app in `commands`. The test then calls `write("text")`, `finish()` or
`fail(problem)`, which emit the events of the running request in the calling thread. Like the real
engine, FakeEngine queues requests and refuses them while no model is loaded. Unlike the real
engine, it answers only one request at a time, and those that follow it (`turn_to`). Models and requests start at once, unless the test
sets `hold_load` or `hold_start`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeVar

from typing_extensions import override

from engine.commands import EngineCommands
from engine.config import EngineConfig
from engine.errors import ContextFullError, NoModelError, PictureError, TextTooLongError
from engine.events import (
    Answered,
    Cancel,
    Command,
    Event,
    IdleKind,
    IdleStopped,
    IdleWorking,
    LoadModel,
    LoadStage,
    ModelFacts,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    PrefillProgress,
    PreviewProgress,
    PreviewStage,
    ReadAhead,
    RequestFailed,
    RequestFinished,
    RequestQueued,
    RequestStarted,
    Submit,
    TextDelta,
    UnloadModel,
    Want,
    Withdraw,
)
from engine.hosts.hostfile import Hosts
from engine.problem import Problem
from engine.questions import (
    Answer,
    AnyQuestion,
    Ask,
    CountPictures,
    CountTokens,
    MakePreview,
    MakeTitle,
    NextPrompt,
    PicturesCounted,
    Preview,
    QuestionId,
    TokensCounted,
)
from engine.types import (
    Channel,
    ConversationId,
    FinishReason,
    Message,
    ReplyTokens,
    Request,
    RequestId,
    Role,
    SamplingParams,
)
from engine.usage import PromptPlan, Usage
from engine.wanted import Wanted

T = TypeVar("T")

FACTS = ModelFacts(
    path="/models/tiny",
    name="Tiny 9B 4-bit",
    model_type="qwen3_5",
    context_len=32768,
    weight_bytes=5_200_000_000,
    has_thinking=True,
    can_keep_thinking=True,
    tokenizer_hash="tok-1",
    template_hash="tmpl-1",
    kv_bytes_per_token=32768,
    snapshot_bytes=51_000_000,
    default_sampling=SamplingParams(temperature=0.6),
)


@dataclass(slots=True, eq=False)
class _FakeAnswer:
    request: Request
    plan: PromptPlan
    content: str = ""
    reasoning: str = ""
    num_tokens: int = 0
    answer_start: int = 0


@dataclass(slots=True, eq=False)
class FakeEngine(EngineCommands):
    """An engine that records the app's commands. The test emits its events by method calls."""

    config: EngineConfig
    on_event: Callable[[Event], None]
    hold_load: bool = False  # if True, loading lasts until finish_load() or fail_load()
    hold_counts: bool = False  # if True, a CountTokens question waits for finish_counts()
    hold_start: bool = False  # if True, a request stays queued until begin()
    facts: ModelFacts = FACTS  # facts of the model that finish_load() reports
    # Plan (restored and fed tokens) of the next requests; if None, _plan_of() estimates it.
    plan: PromptPlan | None = None
    chars_per_token: int = 4  # of attached files
    num_cached: int = 0  # number of tokens that a CountTokens question finds in the cache
    is_busy: bool = (
        False  # True: requests of other clients run while a CountTokens question is answered
    )
    restore_ms: float = 6.0
    started: bool = False
    closed: bool = False
    loaded: bool = False
    hosts: Hosts | None = None  # the hosts that use_hosts() was called with last
    wanted: Wanted = field(default_factory=Wanted)
    commands: list[Command] = field(default_factory=list[Command])  # every command received
    _loading: str | None = None  # path of the model that is being loaded, or None
    _queue: list[Request] = field(default_factory=list[Request])
    _held_counts: list[tuple[QuestionId, NextPrompt | Request]] = field(
        default_factory=list[tuple[QuestionId, NextPrompt | Request]]
    )
    _running: _FakeAnswer | None = None
    # Answers that are written at the same time as that of _running
    _beside: list[_FakeAnswer] = field(default_factory=list[_FakeAnswer])

    # Methods of engine.engine.Engine. The app calls them.

    def use_hosts(self, hosts: Hosts | None) -> None:
        self.hosts = hosts

    def start(self) -> None:
        self.started = True

    @override
    def send(self, command: Command) -> None:
        assert not self.closed, "the engine got a command after close()"
        self.commands.append(command)
        match command:
            case LoadModel(path=path):
                self._load(path)
            case UnloadModel(until_needed):
                self.loaded = False
                self.on_event(ModelUnloaded(loads_again=until_needed))
            case Submit(request=request):
                self._submit(request)
            case Cancel(request_id=request_id):
                self._cancel(request_id)
            case Ask(CountTokens(prompt), question_id):
                self._count_tokens(question_id, prompt)
            case Ask(CountPictures(sizes), question_id):
                self._count_pictures(question_id, sizes)
            case _:
                pass

    @override
    def want(self, change: Callable[[Wanted], Wanted]) -> None:
        wanted = change(self.wanted)
        if wanted != self.wanted:
            self.wanted = wanted
            self.send(Want(wanted))

    def close(self, timeout_s: float = 30.0) -> None:
        if not self.closed and self._running is not None:
            self.finish(FinishReason.CANCELLED)
        self.closed = True

    # Methods and properties for the test.

    @property
    def submitted(self) -> list[Request]:
        return [command.request for command in self.commands if isinstance(command, Submit)]

    def changes(self, setting: Callable[[Wanted], T]) -> list[T]:
        """Return the values that a setting was given, without those that changed nothing."""
        sent = [command.wanted for command in self.commands if isinstance(command, Want)]
        return [value for value, _ in groupby(map(setting, sent))]

    @property
    def read_aheads(self) -> list[ReadAhead]:
        return [command for command in self.commands if isinstance(command, ReadAhead)]

    @property
    def questions(self) -> list[AnyQuestion]:
        return [command.question for command in self.commands if isinstance(command, Ask)]

    @property
    def titles(self) -> list[NextPrompt]:
        return [one.prompt for one in self.questions if isinstance(one, MakeTitle)]

    @property
    def counts(self) -> list[NextPrompt | Request]:
        return [one.prompt for one in self.questions if isinstance(one, CountTokens)]

    @property
    def num_withdrawn(self) -> int:
        return sum(isinstance(command, Withdraw) for command in self.commands)

    def answer(self, kind: type[AnyQuestion], answer: Answer | Problem) -> None:
        """Answer the newest question of a kind."""
        asks = [one for one in self.commands if isinstance(one, Ask)]
        newest = next(one for one in reversed(asks) if isinstance(one.question, kind))
        self.on_event(Answered(newest.question_id, answer))

    @property
    def running(self) -> Request | None:
        return None if self._running is None else self._running.request

    def load_progress(self, fraction: float) -> None:
        assert self._loading is not None
        total = self.facts.weight_bytes
        loaded = int(total * fraction)
        self.on_event(ModelLoading(self._loading, LoadStage.LOADING, fraction, loaded, total))

    def check_model(self) -> None:
        """Report that all weights are loaded, and that the tests of the model begin."""
        assert self._loading is not None
        total = self.facts.weight_bytes
        self.on_event(ModelLoading(self._loading, LoadStage.CHECKING, 1.0, total, total))

    def finish_load(self) -> None:
        assert self._loading is not None
        self.loaded, path, self._loading = True, self._loading, None
        self.facts = replace(self.facts, path=path)
        self.on_event(ModelLoaded(self.facts))

    def fail_load(self, problem: Problem) -> None:
        assert self._loading is not None
        path, self._loading = self._loading, None
        self.on_event(ModelFailed(path, problem))

    def lose_model(self, problem: Problem) -> None:
        """Report that the loaded model was lost, as the real engine does when its thread ends."""
        self.loaded = False
        self.on_event(ModelFailed(self.facts.path, problem))

    def begin(self) -> None:
        """Start the request at the head of the queue, and those that follow it."""
        assert self._running is None
        self.begin_first()
        self._begin_followers()

    def turn_to(self, number: int) -> None:
        """Write the answer with a number, from 1, of those that are written at the same time."""
        answers = sorted(
            (self._current, *self._beside), key=lambda one: one.request.conversation_id
        )
        self._running = answers.pop(number - 1)
        self._beside = answers

    def _begin_followers(self) -> None:
        while self._queue and self._running is not None:
            running = self._running
            answers = (running, *self._beside)
            if self._queue[0].follows not in [one.request.request_id for one in answers]:
                return
            self.begin_first()
            self._beside.append(self._current)
            self._running = running

    def begin_first(self) -> None:
        """Start the request at the head of the queue, and none that follows it."""
        request = self._queue.pop(0)
        plan = self.plan or _plan_of(request)
        self._running = _FakeAnswer(request, plan)
        last = request.messages[-1]
        if last.role is Role.ASSISTANT:  # the request continues a reply, which keeps its old text
            self._running.content, self._running.reasoning = last.content, last.reasoning
        self.on_event(RequestStarted(request.request_id, plan, self.restore_ms))

    def prefill(self, done: int, total: int, eta_s: float | None = None) -> None:
        self.on_event(PrefillProgress(self._current.request.request_id, done, total, eta_s))

    def think(self, text: str) -> None:
        self._current.reasoning += text
        self._emit(Channel.REASONING, text)
        self._current.answer_start = self._current.num_tokens

    def write(self, text: str) -> None:
        self._current.content += text
        self._emit(Channel.ANSWER, text)

    def work_idly(
        self,
        done: int,
        total: int,
        kind: IdleKind = IdleKind.READ_AHEAD,
        shown: ConversationId | None = None,
    ) -> None:
        self.on_event(IdleWorking(shown, kind, done, total))

    def write_title(self, text: str) -> None:
        """Answer the newest question for a title."""
        self.answer(MakeTitle, text)

    @property
    def previewed(self) -> list[Request]:
        """The requests of which previews were asked for."""
        return [one.request for one in self.questions if isinstance(one, MakePreview)]

    def wait_with_preview(self, stage: PreviewStage, num_to_read: int = 0) -> None:
        """Report a stage of the newest preview without text."""
        self.on_event(PreviewProgress(self._newest_preview, stage, num_to_read))

    def write_preview(self, content: str, reasoning: str = "", num_tokens: int = 3) -> None:
        """Report the text so far of the newest preview."""
        preview = self._preview(content, reasoning, num_tokens)
        self.on_event(PreviewProgress(self._newest_preview, PreviewStage.WRITING, 0, preview))

    def finish_preview(
        self, content: str, reasoning: str = "", num_tokens: int = 5, *, is_whole: bool = False
    ) -> None:
        """Answer the newest question for a preview."""
        preview = self._preview(content, reasoning, num_tokens)
        self.answer(MakePreview, replace(preview, is_whole=is_whole))

    @property
    def _newest_preview(self) -> QuestionId:
        asks = [one for one in self.commands if isinstance(one, Ask)]
        return next(
            one.question_id for one in reversed(asks) if isinstance(one.question, MakePreview)
        )

    def _preview(self, content: str, reasoning: str, num_tokens: int) -> Preview:
        reply = ReplyTokens.of(
            range(num_tokens), answer_start=0, tokenizer_hash=self.facts.tokenizer_hash
        )
        return Preview(content=content, reasoning=reasoning, reply=reply)

    def stop_idle_work(self) -> None:
        self.on_event(IdleStopped())

    def finish(self, reason: FinishReason = FinishReason.STOP) -> None:
        running = self._current
        self._running = self._beside.pop(0) if self._beside else None
        reply = ReplyTokens.of(
            range(running.num_tokens),
            answer_start=running.answer_start,
            tokenizer_hash=self.facts.tokenizer_hash,
        )
        self.on_event(
            RequestFinished(
                running.request.request_id,
                reason,
                running.content,
                running.reasoning,
                reply,
                _usage(running),
                prompt_ids=(),
            )
        )
        self._begin_next()

    def fail(self, problem: Problem) -> None:
        """Fail the running request. If no request is running, refuse the first queued request."""
        if self._running is None:
            request = self._queue.pop(0)
        else:
            request = self._running.request
            self._running = self._beside.pop(0) if self._beside else None
        self.on_event(RequestFailed(request.request_id, problem))
        self._begin_next()

    @property
    def _current(self) -> _FakeAnswer:
        assert self._running is not None, "no request is running"
        return self._running

    def _emit(self, channel: Channel, text: str) -> None:
        running = self._current
        running.num_tokens += max(1, len(text) // 4)
        self.on_event(TextDelta(running.request.request_id, channel, text, running.num_tokens))

    def _load(self, path: str) -> None:
        self.loaded, self._loading = False, path
        self.on_event(ModelLoading(path, LoadStage.LOADING, 0.0, 0, self.facts.weight_bytes))
        if not self.hold_load:
            self.finish_load()

    def finish_counts(self) -> None:
        """Answer the CountTokens questions that were held."""
        self.hold_counts = False
        for question_id, prompt in self._held_counts:
            self._count_tokens(question_id, prompt)
        self._held_counts.clear()

    def _count_tokens(self, question_id: QuestionId, prompt: NextPrompt | Request) -> None:
        if self.hold_counts:
            self._held_counts.append((question_id, prompt))
            return
        num_tokens = sum(_costs(prompt.messages))
        counted = TokensCounted(
            num_tokens=num_tokens,
            num_cached=min(self.num_cached, num_tokens),
            is_busy=self.is_busy,
            refusal=self._refusal(prompt),
            part_ends=_part_ends(prompt.messages, self.chars_per_token),
        )
        self.on_event(Answered(question_id, counted))

    def _count_pictures(self, question_id: QuestionId, sizes: tuple[tuple[int, int], ...]) -> None:
        """Answer with one token for each 32 x 32 pixels, as Qwen3.5 takes."""
        if not self.facts.sees:
            problem = NoModelError("The fake model does not see pictures.").problem
            self.on_event(Answered(question_id, problem))
            return
        if any(max(size) > 200 * min(size) for size in sizes):
            self.on_event(Answered(question_id, PictureError("The picture is too narrow.").problem))
            return
        counted = tuple(max(1, width * height // 1024) for width, height in sizes)
        self.on_event(Answered(question_id, PicturesCounted(counted)))

    def _refusal(self, prompt: NextPrompt | Request) -> Problem | None:
        """Return the problem of a prompt that is too long, as the engine words it."""
        facts, costs = self.facts, _costs(prompt.messages)
        is_text = costs[-1] >= facts.context_len and prompt.messages[-1].role is Role.USER
        num_tokens, error = (
            (costs[-1], TextTooLongError) if is_text else (sum(costs), ContextFullError)
        )
        cause = (
            f"It needs {num_tokens:,} tokens and {facts.title} reads at most {facts.context_len:,}."
        )
        return error(cause, num_tokens).problem if num_tokens >= facts.context_len else None

    def _submit(self, request: Request) -> None:
        if not self.loaded:
            problem = NoModelError("The request came before a model was loaded.").problem
            self.on_event(RequestFailed(request.request_id, problem))
            return
        self._queue.append(request)
        ahead = len(self._queue) - 1 + (self._running is not None)
        if ahead:
            self.on_event(RequestQueued(request.request_id, ahead))
        self._begin_next()

    def _begin_next(self) -> None:
        if self._queue and self._running is None and not self.hold_start:
            self.begin()
        elif not self.hold_start:
            self._begin_followers()

    def _cancel(self, request_id: RequestId) -> None:
        if self._running is not None and self._running.request.request_id == request_id:
            self.finish(FinishReason.CANCELLED)
            return
        for beside in self._beside:
            if beside.request.request_id == request_id:
                self._beside.remove(beside)
                before, self._running = self._current, beside
                others, self._beside = self._beside, []
                self.finish(FinishReason.CANCELLED)
                self._running, self._beside = before, others
                return
        for request in self._queue:
            if request.request_id == request_id:
                self._queue.remove(request)
                problem = Problem(title="Cancelled before it began.", cause="", advice="")
                self.on_event(RequestFailed(request_id, problem))
                return


def _part_ends(messages: tuple[Message, ...], chars_per_token: int) -> tuple[int, ...]:
    """Return TokensCounted.part_ends for messages."""
    ends = messages[-1].part_ends
    start = sum(_costs(messages[:-1])) + 4
    return tuple(start + end // chars_per_token for end in (0, *ends)) if ends else ()


def _costs(messages: tuple[Message, ...]) -> list[int]:
    """Return the tokens of each message: one for four characters, and those of its pictures."""
    return [
        len(message.content) // 4
        + 4
        + sum(one.width * one.height // 1024 for one in message.pictures)
        for message in messages
    ]


def _plan_of(request: Request) -> PromptPlan:
    """Return a made-up plan for a request: all messages but the new ones are restored."""
    costs = _costs(request.messages)
    read = sum(cost for index, cost in enumerate(costs) if index in request.new_messages)
    restored = sum(costs) - read
    return PromptPlan(
        prompt_tokens=sum(costs), restored=restored, replayed=0, read=read, matched=restored
    )


def _usage(running: _FakeAnswer) -> Usage:
    return Usage(
        plan=running.plan,
        output_tokens=running.num_tokens,
        queue_ms=1.0,
        render_ms=1.0,
        restore_ms=6.0,
        prefill_ms=100.0,
        ttft_ms=110.0,
        total_ms=3700.0,
        decode_tok_s=58.0,
        cache_bytes=400_000_000,
    )
