from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.tree.measure import StepCost, measure
from app.cli.tree.scenario import STOP_AFTER, Replies, chat_tree
from tests.benchmarks import chat_tree as program
from tests.benchmarks.chat_tree_client import Endpoint, EndpointError
from tests.benchmarks.chat_tree_endpoint import EndpointEngine, peak_bytes
from tests.benchmarks.chat_tree_peers import serving
from tests.benchmarks.chat_tree_tokens import Characters
from tests.fakes.chat_server import ChatServer, Fault, Memory, serve

ROOT = Path(__file__).parents[3]
SCENARIO = chat_tree("x", turns=4, size=0.05)


@pytest.fixture(params=list(Memory))
def server(request: pytest.FixtureRequest) -> Iterator[ChatServer]:
    with serve(ChatServer(request.param)) as server:
        yield server


def play(server: ChatServer, replies: Replies = Replies.SCRIPTED) -> list[StepCost]:
    engine = EndpointEngine(Endpoint(server.url, "m"), SCENARIO, replies, Characters())
    return list(measure(engine, SCENARIO, cold_times=1))


@pytest.mark.parametrize("replies", list(Replies))
def test_redo_counts_known_tokens_that_the_server_fed_again(
    server: ChatServer, replies: Replies
) -> None:
    costs = play(server, replies)

    warm = server.asked[1 : len(costs) + 1]
    for cost, asked in zip(costs, warm, strict=True):
        if cost.step == "stop":
            assert cost.redo is None
        else:
            assert cost.prompt_tokens == len(asked.prompt)
            assert cost.redo == asked.known - asked.cached
    total = sum(cost.redo or 0 for cost in costs)
    assert (total == 0) == (server.memory is Memory.EVERYTHING)


def test_replayed_counts_fed_tokens_before_the_new_message() -> None:
    with serve(ChatServer(Memory.NOTHING)) as server:
        costs = {cost.step: cost for cost in play(server)}

    new = {name: (c.prompt_tokens or 0) - (c.replayed or 0) for name, c in costs.items()}
    steps = {step.name: step for step in SCENARIO.steps}
    header, tail = len("\nuser\n"), len("\nassistant\n")
    assert costs["turn 1"].replayed == costs["second chat"].replayed == 0
    assert new["edit 3"] == len(steps["edit 3"].user) + tail
    # The reply of turn 1 comes from the script, not from the server. The server sees it first in
    # the prompt of turn 2, so its tokens count as new.
    assert (
        new["turn 2"] == len(steps["turn 1"].reply.text) + header + len(steps["turn 2"].user) + tail
    )
    assert new["edit again"] == len(steps["edit again"].user) + tail
    assert new["regenerate"] == 0


def test_reply_written_by_the_server_counts_as_replayed_when_fed() -> None:
    with serve(ChatServer(Memory.NOTHING)) as server:
        costs = {cost.step: cost for cost in play(server, Replies.OWN)}

    user = next(step.user for step in SCENARIO.steps if step.name == "turn 2")
    assert costs["turn 2"].replayed == (costs["turn 2"].prompt_tokens or 0) - len(user) - len(
        "\nassistant\n"
    )


def test_request_bodies_have_the_options_of_each_step() -> None:
    with serve(ChatServer(Memory.EVERYTHING)) as server:
        costs = play(server)

    bodies = {cost.step: a.body for cost, a in zip(costs, server.asked[1:], strict=False)}
    cold = server.asked[len(costs) + 1 :]
    assert bodies["no thinking"]["chat_template_kwargs"] == {"enable_thinking": False}
    assert bodies["turn 1"]["chat_template_kwargs"] == {"enable_thinking": True}
    assert bodies["turn 1"]["stream_options"] == {"include_usage": True}
    assert bodies["stop"]["max_tokens"] > STOP_AFTER
    stopped = next(step.reply for step in SCENARIO.steps if step.stops).stopped
    assert bodies["go on"]["messages"][-2]["content"] == stopped
    # A cold prompt shares only the header of its system message with earlier prompts.
    assert max(asked.known for asked in cold) < len("system\n") + 8


def test_stopped_reply_of_the_server_is_kept_up_to_the_stop() -> None:
    with serve(ChatServer(Memory.EVERYTHING, reply="abcdefghijklmnopqrstuvwxyz")) as server:
        costs = play(server, Replies.OWN)

    bodies = {cost.step: a.body for cost, a in zip(costs, server.asked[1:], strict=False)}
    assert bodies["go on"]["messages"][-2]["content"] == "abcdefghijkl"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault.STATUS_500, "answered 500 Internal Server Error: .*the model fell over"),
        (Fault.NO_USAGE, "reports no usage"),
        (Fault.ERROR_EVENT, "failed: .*out of memory"),
        (Fault.NO_JSON, "sent no JSON object: <html>"),
    ],
)
def test_server_failure_raises_an_error_with_one_sentence(fault: Fault, said: str) -> None:
    with serve(ChatServer(fault=fault)) as server, pytest.raises(EndpointError, match=said):
        play(server)


def test_endpoint_with_an_invalid_address_raises_before_sending() -> None:
    with pytest.raises(EndpointError, match="localhost:80 is no address"):
        Endpoint("localhost:80", "m")


def run_program(monkeypatch: pytest.MonkeyPatch, url: str) -> int:
    options = ["--endpoint", url, "--model", "m", "--size", "0.05", "--cold", "1"]
    monkeypatch.setattr(sys, "argv", ["chat_tree", *options])
    return program.main()


def test_program_prints_one_json_line_per_step_and_the_totals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(ChatServer(Memory.EVERYTHING)) as server:
        status = run_program(monkeypatch, server.url)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert status == 0
    assert [line["step"] for line in lines[:-1]] == [step.name for step in chat_tree("x").steps]
    assert lines[-1]["total"]["redo"] == 0


def test_program_without_a_server_prints_one_error_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(ChatServer()) as gone:
        pass

    assert run_program(monkeypatch, gone.url) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"chat_tree: {gone.url}/chat/completions can't be reached: ")
    assert said.err.count("\n") == 1


def test_program_warns_if_no_cached_tokens_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(ChatServer(Memory.NOTHING)) as server:
        assert run_program(monkeypatch, server.url) == 0

    assert "reported no cached tokens" in capsys.readouterr().err


def test_program_runs_with_the_standard_library_only() -> None:
    # -S: run without installed packages.
    command = [sys.executable, "-S", "-m", "tests.benchmarks.chat_tree", "--help"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert "--endpoint" in ran.stdout


def test_peak_bytes_needs_a_running_process() -> None:
    assert peak_bytes(os.getpid()) > 1_000_000
    with pytest.raises(EndpointError, match="no process"):
        peak_bytes(2**30)


def test_server_that_does_not_start_raises_with_its_stderr() -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such model')"]

    with pytest.raises(EndpointError, match=r"(?s)status 1: .*no such model"), serving(command, 1):
        pass
