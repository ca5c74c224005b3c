"""Each question to an engine is answered once, whatever happens to the engine thread."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import get_args

import pytest

from engine.config import EngineConfig
from engine.core import EngineCore
from engine.engine import Engine
from engine.events import Answered, Command, Event, Withdraw
from engine.questions import (
    AnyQuestion,
    Ask,
    AwaitIdle,
    ClearDisk,
    CountPictures,
    CountTokens,
    Evict,
    EvictWhat,
    Forget,
    ForgetUnknown,
    MakePreview,
    MakeTitle,
    MoveToDisk,
    NextPrompt,
    ParseCalls,
    QuestionId,
    ReportCache,
    ReportChats,
    Verify,
)
from engine.types import ConversationId, Request, RequestId

A = ConversationId("A")
QUESTIONS: tuple[Callable[[], AnyQuestion], ...] = (
    AwaitIdle,
    ClearDisk,
    lambda: CountPictures(((640, 480),)),
    lambda: CountTokens(NextPrompt(conversation_id=A)),
    lambda: ParseCalls("x"),
    lambda: Evict(EvictWhat.ALL),
    lambda: Forget(A),
    lambda: ForgetUnknown(frozenset()),
    lambda: MakeTitle(NextPrompt(conversation_id=A)),
    lambda: MakePreview(
        Request(request_id=RequestId("r"), conversation_id=A, messages=(), new_messages=frozenset())
    ),
    lambda: MoveToDisk((A,)),
    ReportCache,
    ReportChats,
    lambda: Verify(RequestId("r"), ()),
)


class Panic(BaseException):
    """An error that ends the engine thread."""


def test_questions_of_this_module_are_all_that_there_are() -> None:
    assert {type(make()) for make in QUESTIONS} == set(get_args(AnyQuestion))


@pytest.mark.parametrize("seed", range(3))
def test_each_question_is_answered_once_by_threads_that_end_and_block(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    harms = rng.sample(["end"] * 6 + ["block"] + [""] * 23, k=30)
    released = threading.Event()
    obey = EngineCore._obey  # pyright: ignore[reportPrivateUsage]

    def harmed(core: EngineCore, command: Command) -> None:
        harm = harms.pop(0) if harms and isinstance(command, Ask) else ""
        if harm == "end":
            raise Panic
        if harm == "block":
            released.wait()
        obey(core, command)

    monkeypatch.setattr(EngineCore, "_obey", harmed)
    events: SimpleQueue[Event] = SimpleQueue()
    engine = Engine(EngineConfig(use_openblas=False, blocked_after_s=0.1), events.put)
    engine.start()
    asks = [Ask(make()) for make in rng.choices(QUESTIONS, k=30)]
    for ask in asks:
        engine.send(ask)
        if rng.random() < 0.2:
            engine.send(Withdraw(rng.choice(asks).question_id))
    answers = Counter[QuestionId]()
    # A title and a preview wait until a model is loaded.
    others = [one for one in asks if not isinstance(one.question, MakePreview | MakeTitle)]
    while not answers >= ids(others):
        count(answers, events.get(timeout=60))

    # The engine is closed while its thread is blocked. It answers when all is over.
    harms.append("block")
    late = [Ask(AwaitIdle()), Ask(ReportCache())]
    for ask in late:
        engine.send(ask)
    engine.close(0.0)
    released.set()
    join_engines()
    while not events.empty():
        count(answers, events.get())

    assert answers == ids([*asks, *late])


def join_engines() -> None:
    for thread in threading.enumerate():
        if thread.name == "engine":
            thread.join()


def ids(asks: Iterable[Ask]) -> Counter[QuestionId]:
    return Counter(ask.question_id for ask in asks)


def count(answers: Counter[QuestionId], event: Event) -> None:
    if isinstance(event, Answered):
        answers[event.question_id] += 1
