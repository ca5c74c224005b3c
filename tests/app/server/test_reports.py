"""Reports of refused and failed requests to the person who runs the server."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from app.server import bodies, generations
from app.server.async_engine import AsyncEngine
from app.server.errors import ErrorKind, ServerError, error_of
from app.server.generations import Generations
from app.server.kept_replies import KeptReplies
from app.server.report import Report
from app.words import server as words
from engine import errors
from engine.clients import Clients
from engine.commands import EngineCommands
from engine.runner.runner import Runner
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.served_model import ServedModel, served_model
from tests.fakes.tiny_model import Template

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hi."}]
AGENT = {"user-agent": "codex/1.0"}


def line_of(served: ServedModel, path: str, **body: object) -> tuple[int, str]:
    """Send a request. Return the status of its answer, and the only reported line."""
    while not served.reports.empty():
        served.reports.get()
    status = served.send("POST", path, body, AGENT).status
    assert served.reports.qsize() == 1
    return status, served.reports.get().line


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        (CHAT, {"messages": HELLO, "n": 9}, words.too_many_choices(8)),
        (CHAT, {"messages": []}, words.NO_MESSAGES),
        (CHAT, {"messages": HELLO, "stream": "yes"}, words.wrong_field("stream", words.A_FLAG)),
        ("/v1/completions", {"prompt": "Hi.", "echo": True}, words.NO_ECHO),
        ("/v1/messages", {"messages": 1}, words.wrong_field("messages", words.A_LIST)),
        ("/v1/messages/count_tokens", {"messages": []}, words.NO_MESSAGES),
        ("/v1/responses", {"input": []}, words.NO_MESSAGES),
        (
            "/api/chat",
            {"messages": HELLO, "logprobs": 1},
            words.wrong_field("logprobs", words.A_FLAG),
        ),
        ("/api/generate", {"prompt": "Hi.", "suffix": "."}, words.NO_SUFFIX),
    ],
)
def test_refused_request_is_reported_with_its_sentence(
    served: ServedModel, path: str, body: dict[str, object], sentence: str
) -> None:
    assert line_of(served, path, **body) == (400, words.failed("codex", sentence))


def test_report_does_not_quote_the_client(served: ServedModel) -> None:
    body = {"messages": [{"role": "my secret", "content": "Hi."}]}
    sentence = words.unsupported_field("messages[0].role")

    assert line_of(served, CHAT, **body) == (400, words.failed("codex", sentence))


@pytest.mark.parametrize("kind", [errors.TemplateError, errors.AnswerFormatError])
def test_neither_a_report_nor_the_log_quotes_a_request(kind: type[errors.EngineError]) -> None:
    problem = kind("It says: my secret.").problem
    refused = error_of(problem)

    assert "my secret" not in problem.log_text
    assert "my secret" in refused.message
    assert "my secret" not in Report(client="codex", ended=refused).line


def test_refusals_because_of_limits_are_reported(
    served: ServedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generations, "_MAX_OPEN", 0)
    assert line_of(served, CHAT, messages=HELLO) == (429, words.failed("codex", words.BUSY))

    monkeypatch.setattr(bodies, "_MAX_BODY_BYTES", 10)
    too_large = words.failed("codex", words.too_large(10))
    assert line_of(served, CHAT, messages=HELLO) == (413, too_large)


@pytest.mark.parametrize("path", [CHAT, "/v1/messages/count_tokens", "/api/show"])
def test_request_without_a_model_is_reported(path: str) -> None:
    with served_model(None) as served:
        line = words.failed("codex", words.NO_MODEL)
        assert line_of(served, path, messages=HELLO) == (503, line)


def test_unknown_address_is_not_reported(served: ServedModel) -> None:
    while not served.reports.empty():
        served.reports.get()
    served.post("/v1/none", messages=HELLO)
    served.send("POST", CHAT, {"messages": HELLO}, {"authorization": ""})

    assert served.reports.empty()


@pytest.mark.parametrize(
    "kind",
    [
        errors.EngineEndedError,
        errors.EngineBlockedError,
        errors.OutOfMemoryError,
        errors.NoModelError,
        errors.NotAnsweredError,
        errors.CancelledWaitingError,
    ],
)
def test_passing_problem_of_the_engine_is_no_fault_of_the_server(
    kind: type[errors.EngineError],
) -> None:
    error = error_of(kind("Because.").problem)

    assert error.status == 503
    assert kind.advice
    assert kind.advice in error.message


def test_engine_that_ends_within_an_answer_is_unavailable(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    class DeathError(BaseException):
        """An exception that the engine thread does not handle."""

    def die(*_arguments: object) -> None:
        monkeypatch.undo()
        raise DeathError

    with served_model(tiny_model("qwen3_5", Template.KEEPING)) as served:
        monkeypatch.setattr(Runner, "decode", die)
        status, line = line_of(served, CHAT, messages=HELLO)

        assert status == 503
        assert errors.EngineEndedError.advice in line
        assert served.post(CHAT, messages=HELLO).status == 503


def test_no_request_begins_while_the_server_stops(served: ServedModel) -> None:
    class NoCommands:
        """An engine that gets no command."""

    async def begin() -> None:
        engine = AsyncEngine(cast("EngineCommands", NoCommands()), Clients(lambda _event: None))
        engine.cancel_all()
        await Generations(engine, KeptReplies(None), served).models.required()

    with pytest.raises(ServerError) as refused:
        asyncio.run(begin())
    assert refused.value.kind is ErrorKind.UNAVAILABLE
    assert refused.value.message == words.SERVER_STOPPED
