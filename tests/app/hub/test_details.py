"""Details of the rows on show, by the real client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.controllers.hub_details import HubDetails
from app.hub.values import RepoDetails
from engine.problem import Problem
from tests.fakes.hub_calls import call_in_process
from tests.fakes.hub_server import FakeHub, Repository, running_hub
from tests.fakes.rig import FakeCatalog

pytestmark = pytest.mark.slow
IDS = [f"owner/Model-{number}-4bit" for number in range(3)]
FILES = {"config.json": b"{}", "model.safetensors": b"x" * 1000}


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    call_in_process(monkeypatch)


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with running_hub() as hub:
        hub.repositories = {repo_id: Repository(dict(FILES)) for repo_id in IDS}
        yield hub


@pytest.fixture
def make_details(qapp: QApplication) -> Iterator[Callable[[str], HubDetails]]:
    made: list[HubDetails] = []
    parent = QObject()

    def make(address: str) -> HubDetails:
        made.append(HubDetails(FakeCatalog(), lambda: address, parent))
        return made[-1]

    yield make
    for details in made:
        details.close()


def asked(hub: FakeHub) -> list[str]:
    paths = (path.partition("?")[0].removeprefix("/api/models/") for _, path in hub.requests)
    return [path for path in paths if path in IDS]


def test_rows_that_are_no_longer_on_show_are_not_asked_for(
    hub: FakeHub, make_details: Callable[[str], HubDetails], qtbot: QtBot
) -> None:
    details = make_details(hub.address)
    for repo_id in IDS:
        details.want([repo_id])
    assert set(details.all) == {IDS[0], IDS[2]}, "the first one is being asked for"
    qtbot.waitUntil(lambda: isinstance(details.all.get(IDS[2]), RepoDetails), timeout=60_000)
    details.want(IDS[2:])

    assert asked(hub) == [IDS[0], IDS[2]], "a repository is asked for twice, or unseen"


def test_only_one_row_is_asked_for_without_a_connection(
    make_details: Callable[[str], HubDetails], qtbot: QtBot
) -> None:
    details = make_details("http://127.0.0.1:9")  # the port of the discard protocol
    details.want(IDS)
    qtbot.waitUntil(lambda: isinstance(details.all.get(IDS[0]), Problem), timeout=60_000)
    details.want(IDS)

    assert set(details.all) == {IDS[0]}, "each row fails, after its own time"
