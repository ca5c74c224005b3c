"""A model divided over two real processes: faults name the stage, and the next start works."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.events import (
    LoadStage,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    RequestFinished,
    StagePhase,
    StagesReported,
    StageState,
    TextDelta,
)
from engine.hosts import group
from engine.hosts.faults import StagesError
from engine.hosts.group import Group, Limits
from engine.hosts.hostfile import Hosts, local_stages, parse_hosts
from engine.problem import Problem
from tests.e2e.stage_faults import Fault, FaultRun, Moment, Trial
from tests.fakes.asking import ask
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.seeing_engine import seen
from tests.fakes.seeing_model import build_seeing, write_picture
from tests.fakes.ssh import install_ssh
from tests.fakes.staged import LONG, StagedRig, harm, is_stage, sentence_of
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

pytestmark = pytest.mark.slow

LIMITS = Limits(start_s=60.0, join_s=180.0)
TRIALS = (
    Trial(fault=Fault.KILL, moment=Moment.DECODE, rank=1),
    Trial(fault=Fault.EXIT, moment=Moment.PREFILL, rank=0),
    Trial(fault=Fault.MEMORY, moment=Moment.LOADING, rank=1),
)


def hosts_with(name: str, ip: str = "127.0.0.1") -> Hosts:
    return parse_hosts([{"ssh": "localhost"}, {"ssh": name, "ips": [ip]}])


@pytest.fixture
def model(tiny_model: TinyModel) -> Path:
    return tiny_model("qwen3_5", Template.KEEPING)


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_ssh(tmp_path, monkeypatch)


def failed_load(hosts: Hosts, model: Path, limits: Limits = LIMITS) -> ModelFailed:
    rig = StagedRig(hosts, limits)
    try:
        failed = rig.load(model)
    finally:
        rig.close()
    assert isinstance(failed, ModelFailed)
    assert rig.processes == []
    return failed


def test_stages_report_their_layers_and_answer_until_one_is_killed(ssh: None, model: Path) -> None:
    rig = StagedRig(hosts_with("studio"), LIMITS)
    rig.reload(model)
    loading: list[LoadStage] = []
    states: tuple[StageState, ...] = ()
    while not states or any(one.phase < StagePhase.READY for one in states):
        event = rig.wait(StagesReported, ModelLoading, timeout_s=120)
        if isinstance(event, ModelLoading):
            loading.append(event.stage)
        else:
            states = event.stages
    rig.submit("first")
    answered = rig.wait(RequestFinished, timeout_s=120)
    rig.submit("long", forced=LONG)
    rig.wait(TextDelta)
    harm(rig.processes[1], signal.SIGKILL)
    failed = rig.wait(ModelFailed)
    rig.close()

    assert [one.name for one in states] == ["localhost", "studio"]
    assert sum(one.num_layers for one in states) == 2
    assert all(one.total_bytes > 0 for one in states)
    assert answered.content
    assert sentence_of(failed).title.startswith("studio ")
    assert loading[0] is LoadStage.CONNECTING
    assert loading == sorted(loading, key=list(LoadStage).index)
    assert rig.processes == []


def test_picture_over_two_processes_gives_the_answer_of_one(tmp_path: Path) -> None:
    # The first two of three layers add features of the picture.
    model = build_seeing(tmp_path / "model", "qwen3_vl")
    picture = write_picture(tmp_path / "pictures", 192, 128)
    options: dict[str, Any] = {"picture_folder": tmp_path / "pictures", "saves_battery": False}
    client = InlineClient(EngineConfig(use_openblas=False, **options))
    load_model(client, model, lambda _: None)
    wanted = ask(client, seen("one two three", picture)).reply
    rig = StagedRig(local_stages(2), LIMITS, picture_folder=tmp_path / "pictures")
    try:
        loaded = rig.load(model)
        rig.submit("first", pictures=(picture,))
        finished = rig.wait(RequestFinished, timeout_s=120)
        rig.submit("second", text="one two four", pictures=(picture,))
        edited = rig.wait(RequestFinished, timeout_s=120)
    finally:
        rig.close()

    assert isinstance(loaded, ModelLoaded)
    assert loaded.facts.sees
    assert wanted is not None
    assert finished.reply is not None
    assert finished.reply.token_ids[: len(wanted.token_ids)] == wanted.token_ids
    assert edited.usage.plan.restored > 24  # the tokens of the picture


def test_process_that_has_ended_is_no_stage() -> None:
    with subprocess.Popen(["true"]) as process:
        child = psutil.Process(process.pid)

    assert not is_stage(child)


@pytest.mark.parametrize("trial", rest_in_soak(TRIALS), ids=("killed", "ended", "out of memory"))
def test_fault_of_the_follower_or_of_rank_0_names_the_stage(model: Path, trial: Trial) -> None:
    run = FaultRun(model)
    try:
        outcome = run.play(trial, 1)
    finally:
        run.close()

    assert outcome.holds, outcome


def test_fault_that_comes_before_the_command_is_sent_is_reported(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(group: Group, on_fault: Callable[[Problem], None], _on_change: object) -> None:
        group._end_all()  # pyright: ignore[reportPrivateUsage]
        on_fault(StagesError("It failed at once.").problem)

    monkeypatch.setattr(Group, "start", fail)

    assert sentence_of(failed_load(hosts_with("studio"), model)).cause == "It failed at once."


def test_host_without_password_less_login_is_named(ssh: None, model: Path) -> None:
    problem = sentence_of(failed_load(hosts_with("refuses"), model))

    assert problem.title == "refuses refused the login."
    assert "Permission denied" in problem.cause


def test_host_that_never_comes_is_named(ssh: None, model: Path) -> None:
    problem = sentence_of(failed_load(hosts_with("asleep"), model, Limits(start_s=4.0)))

    assert problem.title == "asleep didn’t start."


def test_host_with_another_folder_is_named(ssh: None, model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "elsewhere").write_text(f"s#{model}#{other}#", encoding="utf-8")

    problem = sentence_of(failed_load(hosts_with("elsewhere"), model))

    assert problem.title == "elsewhere doesn’t have the same model."
    assert "config.json" in problem.cause


def test_taken_port_fails_with_the_name_of_the_stage(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()

    def address(ip: str, _port: int) -> str:
        return f"{ip}:{taken.getsockname()[1]}"

    monkeypatch.setattr(group, "_address", address)
    try:
        problem = sentence_of(failed_load(local_stages(2), model))
    finally:
        taken.close()

    assert problem.title.startswith("Stage ")
    assert "stopped" in problem.title
