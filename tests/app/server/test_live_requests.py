"""The requests as the user of the server sees them, and the button that ends one."""

from __future__ import annotations

import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import Any
from unittest.mock import Mock

import pytest

from app.server.answer import DeliveredAnswer
from app.server.chat_request import Called, ChatRequest, Ended, Said, SignOfLife, Thought
from app.server.errors import invalid
from app.server.live_requests import (
    MAX_BARRED,
    MAX_CHARS,
    MAX_ENDED,
    LiveRequests,
    RequestState,
    SeenRequest,
)
from app.words import server as words
from engine.events import PrefillProgress, RequestQueued, RequestStarted, TextDelta
from engine.types import Channel, ForcedReply, Message, RequestId, Role, ToolCall
from engine.usage import PromptPlan
from tests.fakes.served_model import KEY, ServedModel

PATH = "/v1/chat/completions"
LONG = ForcedReply(text="boat " * 2000)
PROMPT = "Write a short story about a small boat. " * 20
ASKED = RequestId("a")
PLAN = PromptPlan(prompt_tokens=4400, restored=90, replayed=0, read=4310)


def asked(text: str = PROMPT, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


@contextmanager
def streamed(served: ServedModel, **body: Any) -> Generator[HTTPResponse]:
    """Ask for a stream."""
    connection = served.connect()
    sent = json.dumps(asked(**body, stream=True))
    connection.request("POST", PATH, sent, {"authorization": f"Bearer {KEY}", "user-agent": "x/1"})
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def newest(served: ServedModel) -> SeenRequest:
    return max(served.look().requests, key=lambda one: one.number)


def writing(served: ServedModel) -> SeenRequest | None:
    found = (one for one in served.look().requests if one.state is RequestState.WRITES)
    return next(found, None)


def test_stopped_stream_ends_with_the_reason_and_what_was_read_stays(served: ServedModel) -> None:
    served.replies.append(LONG)
    with streamed(served) as response:
        while not (one := writing(served)):
            pass
        assert (one.client, one.is_open) == ("x", True)
        assert one.num_written > 0
        served.server.stop_answer(one.number)
        rest = response.read().decode()
    again = served.post(PATH, **asked(max_tokens=1))

    assert words.STOPPED_BY_USER in rest
    assert int(again.headers["x-rejoinder-restored"]) > 100
    assert int(again.headers["x-rejoinder-read"]) <= 1
    ended = next(seen for seen in served.look().requests if seen.number == one.number)
    assert ended.state is RequestState.ENDED
    assert ended.report is not None
    assert ended.report.line == words.failed("x", words.STOPPED_BY_USER)


@pytest.mark.parametrize("num_answers", [1, 2])
def test_stopped_whole_answer_gets_an_error_after_which_clients_do_not_ask_again(
    served: ServedModel, num_answers: int
) -> None:
    served.replies.extend([LONG] * num_answers)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(served.post, PATH, **asked(n=num_answers))
        while not (one := writing(served)):
            assert not answer.done()
        served.server.stop_answer(one.number)
        response = answer.result()

    assert response.status == 400
    assert response.body["error"]["message"] == words.STOPPED_BY_USER
    assert newest(served).state is RequestState.ENDED


def test_request_that_waits_for_its_turn_can_be_stopped(served: ServedModel) -> None:
    def wait_for(number: int, state: RequestState) -> None:
        while not any(
            one.number == number and one.state is state for one in served.look().requests
        ):
            pass

    # more requests than are answered at the same time
    served.replies.extend([LONG] * 40)
    with ThreadPoolExecutor(max_workers=40) as pool:
        answers = [pool.submit(served.post, PATH, **asked(f"{PROMPT} {n}")) for n in range(40)]
        while not (
            waiting := [one for one in served.look().requests if one.state is RequestState.WAITS]
        ):
            assert not any(answer.done() for answer in answers)
        number = waiting[0].number
        served.server.stop_answer(number)
        wait_for(number, RequestState.ENDED)
        seen = served.look().requests
        while not all(answer.done() for answer in answers):  # some may come only now
            for one in served.look().requests:
                served.server.stop_answer(one.number)
        statuses = {answer.result().status for answer in answers}

    ended = next(one for one in seen if one.number == number)
    assert ended.report is not None
    assert words.STOPPED_BY_USER in ended.report.line
    assert statuses == {400}


def test_refused_request_is_seen_with_its_reason_and_without_texts(served: ServedModel) -> None:
    served.post(PATH, **asked(temperature="hot secret"))
    (refused, *_) = served.look(newest(served).number).requests

    assert refused.state is RequestState.ENDED
    assert refused.report is not None
    assert "temperature" in refused.report.line
    assert "secret" not in refused.report.line
    assert not refused.has_texts
    assert served.look(refused.number).texts is None


@pytest.mark.parametrize(
    ("path", "key", "line"),
    [
        (PATH, "wrong", words.WRONG_KEY),
        (PATH, "", words.WRONG_KEY),
        ("/v1/none", KEY, words.NO_ROUTE),
    ],
)
def test_request_with_a_wrong_key_or_address_is_seen_without_texts(
    served: ServedModel, path: str, key: str, line: str
) -> None:
    headers = {"authorization": f"Bearer {key}", "user-agent": "x/1"}
    served.send("POST", path, asked("secret"), headers)
    seen = newest(served)

    assert seen.state is RequestState.ENDED
    assert seen.report is not None
    assert seen.report.line == words.failed("x", line)
    assert not seen.has_texts
    assert served.look(seen.number).texts is None


def test_requests_with_a_wrong_key_do_not_displace_the_others(served: ServedModel) -> None:
    served.post(PATH, **asked(temperature="hot"))
    kept = newest(served).number
    for _ in range(2 * MAX_ENDED):
        served.send("GET", "/v1/models", headers={"authorization": "Bearer wrong"})
    numbers = [one.number for one in served.look().requests]

    assert kept in numbers
    assert sum(number > kept for number in numbers) == MAX_BARRED


def test_client_that_left_is_named(served: ServedModel) -> None:
    served.replies.append(LONG)
    with streamed(served):
        while not (written := writing(served)):
            pass
    while (one := newest(served)).is_open:
        pass

    assert (one.number, one.state, one.report) == (written.number, RequestState.GONE, None)


def test_bug_in_an_answer_is_an_error_and_no_client_that_left(
    served: ServedModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(DeliveredAnswer, "add", Mock(side_effect=KeyError))
    served.replies.append(LONG)
    before = served.get("/metrics").text
    with streamed(served) as response:
        sent = response.read().decode()
    one = newest(served)

    assert words.BROKEN in sent
    assert one.report is not None
    assert one.report.line == words.failed("x", words.BROKEN)
    failed = 'requests_total{outcome="failed"}'
    assert count_of(served.get("/metrics").text, failed) == count_of(before, failed) + 1
    assert any(record.exc_info for record in caplog.records)


def count_of(metrics: str, name: str) -> int:
    (line,) = (line for line in metrics.splitlines() if name in line)
    return int(line.rpartition(" ")[2])


def test_texts_are_those_of_the_last_message_and_of_the_answer(served: ServedModel) -> None:
    served.replies.append(ForcedReply(text="A boat.", reasoning="Well."))
    served.post(PATH, **asked("Go\u202eod \x1b[2J"))
    one = newest(served)
    texts = served.look(one.number).texts

    assert served.look().texts is None
    assert texts is not None
    assert (texts.role, texts.message) == (Role.USER, "Go\ufffdod \ufffd[2J")
    assert texts.reply.endswith("A boat.")
    assert one.report is not None
    assert one.num_written > 0


def chat(text: str = "Hi.", num_answers: int = 1) -> ChatRequest:
    message = Message(role=Role.USER, content=text)
    return ChatRequest(messages=(message,), client="x", num_answers=num_answers)


def ended(index: int = 0) -> Ended:
    return Ended(
        index=index,
        at_limit=False,
        stop=None,
        prompt_tokens=4,
        restored=0,
        replayed=0,
        read=4,
        output_tokens=3,
        reasoning_tokens=0,
        first_word_ms=1,
    )


def test_progress_follows_the_events_of_the_engine() -> None:
    live = LiveRequests(lambda _request: None)
    with live.opened(chat()) as one:
        seen: list[tuple[RequestState, int, int, int]] = []
        for event in (
            RequestQueued(ASKED, 1),
            RequestStarted(ASKED, PLAN, 0.0),
            PrefillProgress(ASKED, 1200, 4310, None),
            TextDelta(ASKED, Channel.ANSWER, "A", 85),
            None,
        ):
            one.note_event(event)
            now = one.seen()
            seen.append((now.state, now.num_read, now.num_to_read, now.num_written))

    assert seen == [
        (RequestState.WAITS, 0, 0, 0),
        (RequestState.READS, 0, 4310, 0),
        (RequestState.READS, 1200, 4310, 0),
        (RequestState.WRITES, 1200, 4310, 85),
        (RequestState.WRITES, 1200, 4310, 85),
    ]


def test_long_texts_are_cut_and_their_lengths_are_kept() -> None:
    live = LiveRequests(lambda _request: None)
    with live.opened(chat("m" * 9000)) as one:
        for _ in range(90):
            one.note_piece(Said("r" * 100))
        one.note_piece(Said("end"))
    texts = live.seen(one.number).texts

    assert texts is not None
    assert (len(texts.message), texts.message_len) == (MAX_CHARS, 9000)
    assert (len(texts.reply), texts.reply_len) == (MAX_CHARS, 9003)
    assert texts.reply.endswith("end")


def test_reasoning_calls_and_several_answers_are_paragraphs() -> None:
    live = LiveRequests(lambda _request: None)
    with live.opened(chat(num_answers=2)) as one:
        for piece in (
            SignOfLife(),
            Thought("Well."),
            Said("A boat."),
            Called(ToolCall(name="read", arguments='{"at": 1}')),
            Said("No boat.", index=1),
            ended(),
        ):
            one.note_piece(piece)
        texts = one.texts()

    assert texts.reply == 'Well.\n\nA boat.\n\nread {"at": 1}\n\n\nNo boat.'
    assert live.seen(None).requests[0].state is RequestState.GONE  # one answer has not ended


def test_open_requests_come_first_and_only_the_last_ended_ones_are_kept() -> None:
    live = LiveRequests(lambda _request: None)
    with live.opened(chat()) as first:
        done: list[int] = []
        for _ in range(MAX_ENDED + 3):
            with live.opened(chat()) as one:
                one.note_piece(ended())
                done.append(one.number)
        with live.opened(chat()) as last:
            numbers = [one.number for one in live.seen(None).requests]

    assert numbers == [last.number, first.number, *reversed(done[3:])]
    assert live.seen(done[0]).texts is None


def test_failed_request_has_its_reason() -> None:
    live = LiveRequests(lambda _request: None)
    with pytest.raises(Exception, match="No"), live.opened(chat()):
        raise invalid("No.")

    (one,) = live.seen(None).requests
    assert one.report is not None
    assert one.report.line == words.failed("x", "No.")


def test_stop_cancels_each_request_to_the_engine_that_runs() -> None:
    cancelled: list[RequestId] = []
    live = LiveRequests(cancelled.append)
    with live.opened(chat()) as one:
        one.running |= {ASKED, RequestId("b")}
        live.stop(one.number + 1)
        assert not cancelled
        live.stop(one.number)
    live.stop(one.number)

    assert sorted(cancelled) == ["a", "b"]
    assert one.is_stopped


def test_stop_for_an_earlier_server_ends_no_request_of_the_next() -> None:
    earlier, later = (LiveRequests(lambda _request: None) for _ in range(2))
    with earlier.opened(chat()) as late, later.opened(chat()) as one:
        later.stop(late.number)

    assert not one.is_stopped
