"""The player of bench scripts: plays steps on the engine and measures every reply.

ScriptPlayer keeps one conversation for each chat name. script_chats.py plans the requests of its
steps. The player yields the report of a reply when the reply has finished. If a step has
wait=False, the player does not wait for the reply, so the report can come during a later step. With
check=True the engine compares each finished reply with new runs of the model without a cache. With
predict=True the player asks the engine before each request what it will read.

`rejoinder bench script` and the engine's tests call play() for each step, then join().
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.cli.attaching import attachments_from
from app.cli.client import EngineClient, ProblemError, load_model
from app.cli.folders import ScriptFolders
from app.cli.processed import ProcessedTokens
from app.cli.script import (
    Attach,
    Continue,
    Documents,
    Edit,
    EvictState,
    ForgetChat,
    GeneratingStep,
    Plain,
    PreviewEdit,
    Regenerate,
    ScriptError,
    ScriptStep,
    Send,
    SwitchBranch,
    System,
)
from app.cli.script_chats import plan_step, switch_branch, visible_messages
from app.cli.step_report import Prediction, StepReport
from app.conversation.actions import (
    Turn,
    TurnIds,
    begin_reply,
)
from app.conversation.answers import with_answers
from app.conversation.prompts import messages_ahead
from app.conversation.replies import finish_reply
from app.conversation.tree import (
    Conversation,
    NodeId,
    new_conversation,
    set_draft_attachments,
    set_system_prompt,
)
from app.store.pictures import PictureFiles
from app.viewmodels.reading import note_usage
from engine.events import Event, RequestFailed, RequestFinished
from engine.questions import NextPrompt, Preview
from engine.reading_pace import ReadingPace
from engine.types import (
    ConversationId,
    Message,
    Request,
    RequestId,
    SamplingParams,
    answer_id,
)


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """The replies of one step."""

    requests: Sequence[Request]
    finished: dict[RequestId, tuple[_Pending, RequestFinished]] = field(
        default_factory=dict[RequestId, "tuple[_Pending, RequestFinished]"]
    )


@dataclass(frozen=True, slots=True)
class _Pending:
    """A submitted request of a step. The step is reported when all its replies have finished."""

    op: str
    chat: str
    turn: Turn
    answers: _Answers
    visible: tuple[Message, ...]  # the messages before the reply, which the check needs
    prediction: Prediction | None


class ScriptPlayer:
    """A player for one script. It keeps the conversations and the requests in flight."""

    def __init__(  # noqa: PLR0913 (settings with defaults)
        self,
        client: EngineClient,
        model: Path,
        *,
        check: bool,
        predict: bool = False,
        max_drafts: int | None = 0,
        restart: Callable[[], EngineClient] | None = None,
        pictures: PictureFiles | None = None,
    ) -> None:
        """Create a player.

        Args:
            client: an engine that has loaded the model.
            model: the model folder.
            check: True to compare each reply with runs of the model without a cache.
            predict: True to ask before each request what the engine will read.
            max_drafts: Request.max_drafts of all requests.
            restart: ends the engine and returns a new one, for the op `restart`.
            pictures: the folder in which the engine finds pictures; None if no step attaches one.
        """
        self._client = client
        self._model = model
        self.check = check  # may be changed between steps
        self._predict = predict
        self._pace = ReadingPace()
        self._max_drafts = max_drafts  # Request.max_drafts of all requests
        self._restart = restart
        self._pictures = pictures
        self._written = 0  # Usage.written_bytes of the last reply
        self.chats: dict[str, Conversation] = {}  # by the name of the chat
        self._pending: dict[RequestId, _Pending] = {}
        # Events that arrived during a request for one answer alone
        self._late = deque[Event]()
        # The request of the newest step `preview`, and its preview. None after the next reply.
        self._previewed: tuple[Request, Preview] | None = None
        self._processed = ProcessedTokens()
        self._folders = ScriptFolders()
        self._num_ids = 0

    def play(self, step: ScriptStep) -> Iterator[StepReport]:
        """Play one step. Yield a report for each reply that finishes during the step.

        Raises:
            ProblemError: a request failed, or the model could not be loaded.
            ScriptError: the step names a message that does not exist.
        """
        match step:
            case PreviewEdit() | ForgetChat() | EvictState() | Plain():
                yield from self.join()
                self._act(step)
            case Send() | Regenerate() | Continue() | Edit():
                yield from self._generate(step)
            case System() | Attach() | SwitchBranch():
                self._change(step)
            case Documents():
                self._folders.add(step, self._client, self._pictures)

    def _act(self, step: PreviewEdit | ForgetChat | EvictState | Plain) -> None:
        """Play a step that needs all replies to have finished."""
        match step:
            case PreviewEdit():
                self._preview(step)
            case ForgetChat(chat=chat):
                self._client.answer(self._client.forget(ConversationId(chat)))
            case EvictState(what=what):
                self._client.answer(self._client.evict(what))
            case Plain.RELOAD:
                load_model(self._client, self._model, lambda _: None)
            case Plain.RESTART:
                self._start_anew()
            case Plain.IDLE:
                self._work_idly()
            case Plain.JOIN:
                pass

    def _chat(self, name: str) -> Conversation:
        return self.chats.get(name) or new_conversation(ConversationId(name), now=0.0)

    def _generate(self, step: GeneratingStep) -> Iterator[StepReport]:
        before = self._chat(step.chat)
        if isinstance(step, Send) and step.folder is not None:
            before = self._folders.begin(before, step.folder)
        more = [NodeId(self._new_id()) for _ in range(1, step.generate.answers)]
        turns = with_answers(plan_step(before, step, TurnIds.new(self._new_id)), more)
        requests = list[Request]()
        for turn in turns:
            follows = requests[0].request_id if requests else None
            request = replace(self._request(step, turn), follows=follows)
            requests.append(replace(request, shares_prompt=bool(more)))
        if len(turns) == 1:
            begun, requests[0] = self._begun(turns[0], requests[0])
            turns = (begun,)
        self.chats[step.chat] = turns[0].conversation
        op, answers = type(step).__name__.lower(), _Answers(requests)
        for turn, request in zip(turns, requests, strict=True):
            visible = (
                visible_messages(before, turn.reply_id)
                if isinstance(step, Continue)
                else visible_messages(turn.conversation, turn.user_id)
            )
            if turn.plain is not None:
                visible = (*visible, turn.messages[-1])
            # The state of the first answer tells nothing about those that follow it.
            prediction = None if request.follows else self._prediction(request)
            pending = _Pending(op, step.chat, turn, answers, visible, prediction)
            self._pending[request.request_id] = pending
        for request in requests:
            self._client.submit(request)
        if step.generate.wait:
            yield from self.join()

    def _preview(self, step: PreviewEdit) -> None:
        """Let the engine preview the answer to an edit, and keep the preview for the next step."""
        request = self._request(
            step, plan_step(self._chat(step.chat), step, TurnIds.new(self._new_id))
        )
        self._previewed = request, self._client.answer(self._client.make_preview(request))

    def _begun(self, turn: Turn, request: Request) -> tuple[Turn, Request]:
        """Let the reply of a request begin with the newest preview if that is of this request."""
        previewed, self._previewed = self._previewed, None
        if previewed is None or request.forced is not None:
            return turn, request
        same, preview = replace(previewed[0], request_id=request.request_id), previewed[1]
        if request != same:
            return turn, request
        turn = begin_reply(turn, preview, request.max_tokens)
        return turn, replace(
            request,
            messages=turn.messages,
            new_messages=turn.new_messages,
            max_tokens=request.max_tokens - turn.num_begun,
            forced=turn.forced,
        )

    def _request(self, step: GeneratingStep, turn: Turn) -> Request:
        generate = step.generate
        return Request(
            request_id=RequestId(self._new_id()),
            conversation_id=answer_id(ConversationId(step.chat), turn.answer),
            messages=turn.messages,
            new_messages=turn.new_messages,
            sampling=SamplingParams(
                temperature=generate.temperature,
                top_p=1.0,
                seed=generate.seed + turn.answer - 1,
            ),
            max_tokens=generate.max_tokens,
            thinking=generate.thinking,
            keep_thinking=generate.keep_thinking,
            forced=generate.reply,
            stop_after=generate.stop_after,
            max_drafts=self._max_drafts,
            record_logits=self.check,
        )

    def _prediction(self, request: Request) -> Prediction | None:
        if not self._predict:
            return None
        counted = self._client.answer(self._client.count_tokens(request))
        expected = self._pace.time(counted.num_cached, counted.num_tokens)
        seconds = None if expected is None else round(expected.seconds, 3)
        return Prediction(counted.num_tokens - counted.num_cached, seconds)

    def _change(self, step: System | Attach | SwitchBranch) -> None:
        """Change a chat without generating a reply."""
        match step:
            case System(chat=chat, text=text):
                self.chats[chat] = set_system_prompt(self._chat(chat), text)
            case Attach():
                self._attach(step)
            case SwitchBranch(chat=chat):
                self.chats[chat] = switch_branch(self._chat(chat), step)

    def _attach(self, step: Attach) -> None:
        """Add a file to the draft of a chat. The next step `idle` reads it ahead."""
        conv = self._chat(step.chat)
        files = (*conv.draft_attachments, *attachments_from([step.file], self._pictures))
        self.chats[step.chat] = set_draft_attachments(conv, files)
        messages = messages_ahead(self.chats[step.chat])
        draft = NextPrompt(
            conversation_id=ConversationId(step.chat), messages=messages, is_draft=True
        )
        self._client.read_ahead(draft)

    def join(self) -> Iterator[StepReport]:
        """Wait until all pending replies have finished. Yield the report of each one."""
        while self._pending:
            event = self._late.popleft() if self._late else self._client.next_event()
            yield from self._receive(event)

    def _receive(self, event: Event) -> Iterator[StepReport]:
        """Yield the reports of a step if an event ends the last of its replies."""
        match event:
            case RequestFailed(request_id, problem) if request_id in self._pending:
                raise ProblemError(problem)
            case RequestFinished(request_id=request_id) if request_id in self._pending:
                pending = self._pending.pop(request_id)
                answers = pending.answers
                answers.finished[request_id] = pending, event
                if len(answers.finished) == len(answers.requests):
                    yield from self._reports(answers)
            case _:
                pass

    def _reports(self, answers: _Answers) -> Iterator[StepReport]:
        """Yield the reports of a step whose replies have all finished, in the order of the replies.

        The chat then takes over the state of all replies, as in the window.
        """
        first, *others = answers.requests
        for request in answers.requests:
            pending, finished = answers.finished[request.request_id]
            report = self._report(pending, finished)
            if self.check and others:
                report = replace(report, alone=self._is_same_alone(request, finished))
            yield report
        for request in others:
            forget = self._client.forget(request.conversation_id, heir=first.conversation_id)
            self._client.answer(forget)

    def _is_same_alone(self, request: Request, finished: RequestFinished) -> bool:
        """Request one of several replies once more, alone, and compare the token ids."""
        request_id = RequestId(self._new_id())
        alone = replace(
            request, request_id=request_id, follows=None, side=True, record_logits=False
        )
        self._client.submit(alone)
        while True:
            match event := self._client.next_event():
                case RequestFailed(request_id=failed, problem=problem) if failed == request_id:
                    raise ProblemError(problem)
                case RequestFinished(request_id=ended, reply=reply) if ended == request_id:
                    return reply == finished.reply
                case _:
                    self._late.append(event)

    def _report(self, pending: _Pending, finished: RequestFinished) -> StepReport:
        conv = self.chats[pending.chat]
        self.chats[pending.chat] = finish_reply(conv, pending.turn.reply_id, finished)
        usage, plan = finished.usage, finished.usage.plan
        note_usage(self._pace, usage, time.perf_counter())
        redo = self._processed.add_answer(
            finished.prompt_ids, finished.output_ids, restored=plan.restored
        )
        written, self._written = usage.written_bytes - self._written, usage.written_bytes
        return StepReport(
            op=pending.op,
            chat=pending.chat,
            text=finished.content,
            finish_reason=finished.reason.value,
            prompt_tokens=plan.prompt_tokens,
            matched=plan.matched,
            restored=plan.restored,
            read=plan.read,
            replayed=plan.replayed,
            redo=redo,
            output_tokens=usage.output_tokens,
            restore_ms=round(usage.restore_ms, 3),
            ttft_ms=round(usage.ttft_ms, 3),
            total_ms=round(usage.total_ms, 3),
            decode_tok_s=round(usage.decode_tok_s, 2),
            passes=usage.passes,
            drafted_tokens=usage.drafted_tokens,
            accepted_tokens=usage.accepted_tokens,
            cache_bytes=usage.cache_bytes,
            restored_disk=plan.restored_disk,
            disk_ms=round(usage.disk_ms, 3),
            written_bytes=written,
            reasons=plan.reasons,
            preview_tokens=pending.turn.num_begun,
            check=self._client.answer(self._client.verify(finished.request_id, pending.visible))
            if self.check
            else None,
            prediction=pending.prediction,
            document_tokens=self._folders.tokens(conv.conversation_id),
        )

    def _start_anew(self) -> None:
        """Let the engine write all cached state, then start a new engine."""
        if self._restart is None:
            raise ScriptError("this player cannot restart its engine")
        self._client.answer(self._client.await_idle())
        self._client = self._restart()
        self._folders.pin(self._client)
        self._written = 0
        load_model(self._client, self._model, lambda _: None)

    def _work_idly(self) -> None:
        """Let the engine do its idle work, such as reading ahead. Return when no work is left."""
        self._client.set_idle_work(enabled=True)
        self._client.answer(self._client.await_idle())
        self._client.set_idle_work(enabled=False)

    def _new_id(self) -> str:
        self._num_ids += 1
        return f"{self._num_ids}"
