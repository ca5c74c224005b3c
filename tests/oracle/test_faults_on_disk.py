"""Wrong state in records whose checksum is right: refused, or reported by the check of the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from app.cli.step_report import StepReport
from engine.cache.disk.record import SUFFIX, RecordKey, read_record, write_record
from engine.config import EngineConfig
from engine.events import Shutdown
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import CONFIGS, Template
from tests.oracle.faults import (
    FIRST,
    OTHER,
    PLANTS,
    SECOND,
    VISIBLE,
    plant_one_ahead,
    plant_other_chat,
    plant_zeros,
    play,
)

MODELS = list(CONFIGS)


def restarted(
    model: Path,
    folder: Path,
    *,
    plant: Callable[[InlineClient], None] = lambda _: None,
    change: Callable[[Path], None] = lambda _: None,
) -> tuple[StepReport, InlineClient]:
    """Play a turn, restart the engine, and return the report of the second turn.

    Args:
        model: folder of the model.
        folder: folder of cached state on disk.
        plant: changes the state in memory before it is written.
        change: changes each record that was written.
    """
    config = EngineConfig(
        use_openblas=False,
        idle_work=False,
        saves_battery=False,
        disk_folder=folder,
        disk_rest_s=0.0,
    )
    clients = [InlineClient(config)]

    def restart() -> InlineClient:
        _end(clients[-1])
        for path in folder.glob(f"*/*{SUFFIX}"):
            change(path)
        for path in folder.glob("*/index"):
            path.unlink()  # every header is read again
        clients.append(InlineClient(config))
        return clients[-1]

    player = ScriptPlayer(clients[0], model, check=False, restart=restart)
    clients[0].load_model(str(model))
    for step in (FIRST, OTHER):
        play(player, step)
    plant(clients[0])
    player.check = True
    list(player.play(parse_step(json.dumps({"op": "restart"}))))
    report = play(player, SECOND)
    assert report.check is not None
    return report, clients[-1]


def _end(client: InlineClient) -> None:
    client.send(Shutdown())
    client.core.run()


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_soak(MODELS, "qwen3_5", "gemma3"))
def test_right_state_from_disk_passes_check(
    tiny_model: TinyModel, tmp_path: Path, name: str
) -> None:
    report, client = restarted(tiny_model(name, Template.KEEPING), tmp_path)

    assert report.holds
    assert report.restored_disk == report.restored > 10
    _end(client)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "plant"),
    rest_in_soak(
        product(MODELS, PLANTS),
        ("qwen3_5", plant_zeros),
        ("gemma3", plant_one_ahead),
        ("mamba2", plant_one_ahead),
        ("llama", plant_other_chat),
    ),
)
def test_wrong_state_in_valid_record_is_reported(
    tiny_model: TinyModel, tmp_path: Path, name: str, plant: Callable[[InlineClient], None]
) -> None:
    report, client = restarted(tiny_model(name, Template.KEEPING), tmp_path, plant=plant)

    assert report.restored_disk > 10
    assert not report.holds
    assert report.check is not None
    assert report.check.max_difference > VISIBLE
    _end(client)


def _of_another_model(path: Path) -> None:
    """Replace a record by one with the same content and name, written for another model."""
    namespace = path.parent.name
    record = read_record(path, namespace)
    key = replace(record.header.key, namespace="another model")
    write_record(path.parent, key, record.header.notes, record.tensors)
    (path.parent / (key.address + SUFFIX)).rename(path)


def _of_another_position(path: Path) -> None:
    """Replace a record by that of a path whose first token is another one."""
    namespace = path.parent.name
    record = read_record(path, namespace)
    key = record.header.key
    other = RecordKey(namespace, key.kind, key.parent, replace(key.run, start=key.run.start + 1))
    write_record(path.parent, other, record.header.notes, record.tensors)
    (path.parent / (other.address + SUFFIX)).rename(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    rest_in_soak(
        product(MODELS, [_of_another_model, _of_another_position]),
        ("qwen3_5", _of_another_position),
        ("gemma3", _of_another_model),
    ),
)
def test_record_of_another_model_or_position_is_fed_again(
    tiny_model: TinyModel, tmp_path: Path, name: str, change: Callable[[Path], None]
) -> None:
    report, client = restarted(tiny_model(name, Template.KEEPING), tmp_path, change=change)

    assert report.holds
    assert report.restored_disk == 0
    _end(client)
