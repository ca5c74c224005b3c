"""Sources of timed answers for the speculation benchmark: Rejoinder, or a server."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from typing import Final, Protocol

import psutil

from app.cli.tree.scenario import ChatMessage
from tests.benchmarks.chat_tree_client import Endpoint, EndpointError
from tests.benchmarks.chat_tree_endpoint import peak_bytes
from tests.benchmarks.chat_tree_peers import START_S, free_port, serving
from tests.benchmarks.chat_tree_tokens import ModelTokens
from tests.benchmarks.speculation import Bench, seconds_of
from tests.fakes.asking import user


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    text: str
    num_tokens: int  # number of tokens after the first piece of the text
    seconds: float  # time from the first piece to the end


class AnswerSource(Protocol):
    """An engine with a loaded model, with or without speculation."""

    def ask(self, text: str, max_tokens: int) -> TimedAnswer:
        """Answer a prompt greedily."""
        ...

    def peak_bytes(self) -> int:
        """Return the peak memory of the engine's processes."""
        ...


class _OwnSource:
    """Rejoinder in a process of its own."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def ask(self, text: str, max_tokens: int) -> TimedAnswer:
        return self._pool.submit(_own_answer, text, max_tokens).result()

    def peak_bytes(self) -> int:
        return peak_bytes(self._pool.submit(os.getpid).result())


@contextmanager
def own_source(model: Path, *, speculates: bool) -> Generator[AnswerSource]:
    with ProcessPoolExecutor(
        1, get_context("spawn"), initializer=_load_own, initargs=(model, speculates)
    ) as pool:
        yield _OwnSource(pool)


# The engine of the process that own_source() starts, and its Request.max_drafts.
_own: Final[list[tuple[Bench, int | None]]] = []


def _load_own(model: Path, speculates: bool) -> None:
    _own.append((Bench(model), None if speculates else 0))


def _own_answer(text: str, max_tokens: int) -> TimedAnswer:
    [(bench, max_drafts)] = _own
    finished = bench.ask(text, [(user(text),)], 0.0, max_tokens, max_drafts)
    [answer] = finished
    return TimedAnswer(answer.content, answer.usage.output_tokens - 1, seconds_of(finished))


class _ServerSource:
    """A server with OpenAI's chat protocol. Answers are counted in tokens of `tokens`."""

    def __init__(self, endpoint: Endpoint, tokens: ModelTokens, pid: int) -> None:
        self._endpoint = endpoint
        self._tokens = tokens
        self._pid = pid

    def ask(self, text: str, max_tokens: int) -> TimedAnswer:
        messages = (ChatMessage("user", text),)
        answer = self._endpoint.ask(messages, thinking=False, max_tokens=max_tokens)
        first, whole = (
            len(self._tokens.encode(messages, thinking=False, output=output))
            for output in (answer.first_text, answer.text)
        )
        return TimedAnswer(answer.text, whole - first, (answer.total_ms - answer.ttft_ms) / 1e3)

    def peak_bytes(self) -> int:
        children = psutil.Process(self._pid).children(recursive=True)
        return sum(peak_bytes(pid) for pid in (self._pid, *(child.pid for child in children)))


@contextmanager
def server_source(
    command: list[str], model: Path, options: Mapping[str, object]
) -> Generator[AnswerSource]:
    """Start a server.

    Args:
        command: words of the command that starts it, which may contain {port}.
        model: the folder of the model, which is also its name on the server.
        options: further fields of a request.

    Raises:
        EndpointError: the server did not start.
    """
    port = free_port()
    with serving([word.replace("{port}", str(port)) for word in command], port) as pid:
        endpoint = Endpoint(
            f"http://127.0.0.1:{port}/v1", str(model), needs_usage=False, options=options
        )
        _wait_for_model(endpoint)
        yield _ServerSource(endpoint, ModelTokens(model), pid)


def _wait_for_model(endpoint: Endpoint) -> None:
    """Ask until the server answers: some servers listen before their model is loaded.

    Raises:
        EndpointError: the server did not answer within START_S.
    """
    deadline = time.monotonic() + START_S
    pause = Event()
    while True:
        try:
            endpoint.ask((ChatMessage("user", "Hello."),), thinking=False, max_tokens=8)
        except EndpointError:
            if time.monotonic() > deadline:
                raise
            pause.wait(0.5)
        else:
            return
