"""An engine without work sleeps until a command comes, or until the time at which work is due."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.events import Shutdown
from engine.pulse import Pulse
from tests.fakes.asking import ask, user
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template

HOUR_S = 3600.0
CONFIG = EngineConfig(
    use_openblas=False, saves_battery=False, release_after_s=0.0, audit_every_s=10 * HOUR_S
)


def sleep_s(model: Path, config: EngineConfig, unload_after_s: float | None = None) -> float:
    """Return the time for which an engine with one cached chat sleeps without a command."""
    client = InlineClient(config)
    load_model(client, model, lambda _: None)
    client.set_unload_after(unload_after_s)
    ask(client, user("Hello there"), chat="A")
    client.run_until_idle()
    found = client.core.work_in_s
    client.send(Shutdown())
    client.core.run()
    return found


def test_engine_without_work_sleeps_until_something_is_due(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    model = tiny_model("qwen3_5", Template.KEEPING)
    without_audits = replace(CONFIG, idle_work=False)

    assert sleep_s(model, without_audits) == math.inf
    assert sleep_s(model, CONFIG) == pytest.approx(10 * HOUR_S, abs=60)
    assert sleep_s(model, without_audits, HOUR_S) == pytest.approx(HOUR_S, abs=60)
    assert sleep_s(model, without_audits, 1e12) == 24 * HOUR_S, "the longest sleep"
    held = replace(without_audits, release_after_s=HOUR_S)
    assert sleep_s(model, held) == pytest.approx(HOUR_S, abs=60)
    on_disk = replace(without_audits, disk_folder=tmp_path, disk_rest_s=HOUR_S)
    assert sleep_s(model, on_disk) == pytest.approx(HOUR_S, abs=60)
    # The cache could give memory back, so the memory of the machine is looked at.
    large = replace(without_audits, least_budget_bytes=1, memory_check_s=HOUR_S)
    assert sleep_s(model, large) == HOUR_S


def test_watcher_of_a_resting_engine_thread_sleeps_until_work_begins() -> None:
    order: list[str] = []
    pulse = Pulse()

    def watch() -> None:
        for _ in range(2):
            pulse.wait_for_work()
            order.append("watched")
            watched.set()
            rested.wait()

    watched, rested = threading.Event(), threading.Event()
    watcher = threading.Thread(target=watch)
    watcher.start()
    order.append("work")
    pulse.beat()
    watched.wait()
    pulse.rest()
    rested.set()
    order.append("end")
    pulse.dismiss_watcher()
    watcher.join()

    assert order == ["work", "watched", "end", "watched"]
