"""The engine in a process of its own: the same answers, faults with a sentence, and a new start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from app.cli.client import QueuedEngine, load_model
from engine.cache_figures import NOTHING_CACHED, CacheReport
from engine.config import EngineConfig
from engine.events import (
    Answered,
    ModelFailed,
    ModelLoaded,
    ModelUnloaded,
    RequestFailed,
    RequestFinished,
    TextDelta,
    UnloadModel,
)
from engine.hosts.group import Limits
from engine.hosts.hostfile import local_stages
from engine.problem import Problem
from engine.questions import NextPrompt
from engine.types import ConversationId, FinishReason, RequestId
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.staged import LONG, StagedRig, harm, sentence_of
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


@pytest.fixture
def rig() -> Iterator[StagedRig]:
    made = StagedRig(local_stages(1), Limits(silent_s=2.0, blame_s=0.5))
    yield made
    made.close()
    assert made.processes == []


@pytest.fixture
def model(tiny_model: TinyModel) -> Path:
    return tiny_model("llama", Template.KEEPING)


def test_stage_answers_as_this_process_and_its_unload_finishes_the_running_request(
    rig: StagedRig, model: Path
) -> None:
    config = EngineConfig(use_openblas=False, cache_budget_bytes=1 << 28)
    assert isinstance(rig.load(model), ModelLoaded)
    rig.submit("first")
    in_stage = rig.wait(RequestFinished)
    rig.submit("second")
    again = rig.wait(RequestFinished)
    rig.submit("long", forced=LONG)
    rig.wait(TextDelta)
    rig.engine.send(UnloadModel())
    finished = rig.wait(RequestFinished)
    rig.wait(ModelUnloaded)

    assert finished.reason is FinishReason.CANCELLED
    assert "boat ".startswith(finished.content[:5])
    assert finished.content
    assert rig.processes == []

    with QueuedEngine(config) as client:
        load_model(client, model, lambda _: None)
        rig.engine, staged = client, rig.engine  # type: ignore[assignment]
        rig.submit("third")
        rig.engine = staged
        while not isinstance(here := client.next_event(), RequestFinished):
            pass

    assert in_stage.reply == here.reply
    assert in_stage.prompt_ids == here.prompt_ids
    assert again.reply == here.reply
    assert again.usage.plan.restored > 0


@pytest.mark.parametrize(
    "harms",
    [
        (signal.SIGSTOP, signal.SIGKILL),
        pytest.param((signal.SIGTERM, signal.SIGKILL), marks=pytest.mark.soak),
    ],
)
def test_fault_of_a_stage_is_a_sentence_and_the_next_load_works(
    rig: StagedRig, model: Path, harms: Sequence[signal.Signals]
) -> None:
    for harmful in harms:
        assert isinstance(rig.load(model), ModelLoaded)
        rig.submit("next")
        assert rig.wait(RequestFinished).content
        rig.submit("long", forced=LONG)
        rig.wait(TextDelta)
        asked = rig.engine.await_idle()
        (process,) = rig.processes
        harm(process, harmful)
        unloaded = rig.wait(ModelFailed)
        failed = rig.wait(RequestFailed)
        assert rig.wait(Answered) == Answered(asked.question_id, None)

        assert "this " in sentence_of(failed).title.lower()
        assert sentence_of(failed) == sentence_of(unloaded)
        assert "Start Again" in sentence_of(failed).advice
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_fault_while_the_stage_starts_fails_the_model(rig: StagedRig, model: Path) -> None:
    rig.engine.load_model(str(model))
    rig.submit("early")
    while not rig.processes:
        time.sleep(0.01)  # noqa: TID251 — the process is about to start
    harm(rig.processes[0], signal.SIGKILL)
    rig.wait(ModelFailed)
    failed = rig.wait(RequestFailed)

    assert "stop" in sentence_of(failed).title or "start" in sentence_of(failed).title


def test_unused_stages_are_ended_and_the_next_request_before_an_unload_starts_them_again(
    rig: StagedRig, model: Path
) -> None:
    rig.load(model)
    rig.submit("long", forced=LONG)
    rig.wait(TextDelta)
    rig.engine.set_unload_after(0.3)
    rig.wait(TextDelta)
    rig.engine.cancel(RequestId("long"))
    rig.wait(RequestFinished)
    unloaded = rig.wait(ModelUnloaded)
    num_left = len(rig.processes)
    rig.engine.set_unload_after(None)
    rig.submit("next")
    finished = rig.wait(RequestFinished)

    assert unloaded == ModelUnloaded(loads_again=True)
    assert num_left == 0
    assert finished.content
    assert len(rig.processes) == 1

    rig.engine.set_unload_after(0.0)
    rig.wait(ModelUnloaded)
    rig.engine.send(UnloadModel())
    rig.submit("late")

    assert sentence_of(rig.wait(RequestFailed)).title == "No model is loaded."


def test_questions_without_stages_are_answered(rig: StagedRig) -> None:
    idle = rig.engine.await_idle()
    figures = rig.engine.report_cache()
    title = rig.engine.make_title(NextPrompt(conversation_id=ConversationId("a")))
    rig.submit("none")

    assert rig.wait(Answered) == Answered(idle.question_id, None)
    assert rig.wait(Answered) == Answered(figures.question_id, CacheReport(NOTHING_CACHED))
    refused = rig.wait(Answered)
    assert refused.question_id == title.question_id
    assert isinstance(refused.answer, Problem)
    assert sentence_of(rig.wait(RequestFailed)).title == "No model is loaded."


def test_state_on_disk_is_deleted_without_stages(rig: StagedRig, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    rig.engine.set_disk(str(tmp_path), enabled=True, budget_bytes=None)

    rig.engine.clear_disk()
    rig.wait(Answered)

    assert not (tmp_path / "model").exists()


def test_missing_model_fails_with_the_sentence_of_the_engine(
    rig: StagedRig, tmp_path: Path
) -> None:
    failed = rig.load(tmp_path / "none")

    assert isinstance(failed, ModelFailed)
    assert failed.problem.title == "This model can’t be loaded."


@pytest.mark.parametrize(
    "harmful", rest_in_soak([signal.SIGKILL, signal.SIGTERM, signal.SIGINT], signal.SIGKILL)
)
def test_end_of_the_starter_ends_its_stages(model: Path, harmful: signal.Signals) -> None:
    if harmful is signal.SIGINT and signal.getsignal(harmful) is signal.SIG_IGN:
        pytest.skip(
            "this run ignores SIGINT, as a job in the background does, and so do its children"
        )
    command = [sys.executable, "-P", "-m", "app", "chat", "--stages", "1", "--model", str(model)]
    starter = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert starter.stdin is not None
    assert starter.stdout is not None
    starter.stdin.write(b"hello\n")
    starter.stdin.flush()
    starter.stdout.readline()
    stages = psutil.Process(starter.pid).children(recursive=True)
    os.kill(starter.pid, harmful)
    starter.wait(60)
    _, alive = psutil.wait_procs(stages, timeout=60)
    starter.stdin.close()
    starter.stdout.close()

    assert len(stages) >= 1
    assert alive == []
