"""The settings page about several Macs, used with the mouse, and the window while a Mac is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from app.conversation.tree import MessageStatus, shown_path
from app.theme.icons import Icon
from app.viewmodels.several import mac_rows, parts
from app.widgets.commands import CommandId
from app.widgets.settings_several import SeveralPage
from app.widgets.settings_window import SettingsWindow
from app.words import computer, several as words
from engine.events import LoadModel, StagePhase, StagesReported, StageState
from engine.hosts.checking import HostCheck, check_hosts
from engine.hosts.faults import silent
from engine.hosts.hostfile import Hosts, parse_hosts
from tests.fakes.ssh import install_ssh
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
LEFT = Qt.MouseButton.LeftButton
HOSTS = [{"ssh": "localhost"}, {"ssh": "studio", "ips": ["127.0.0.1"]}]
STAGES = (
    StageState(name="localhost", phase=StagePhase.READY, num_layers=10, total_bytes=2 * 10**9),
    StageState(
        name="studio",
        phase=StagePhase.LOADING,
        num_layers=30,
        loaded_bytes=3 * 10**9,
        total_bytes=6 * 10**9,
    ),
)


def opened(stage: Stage) -> SeveralPage:
    stage.run(CommandId.SETTINGS)
    window = stage.window.findChild(SettingsWindow)
    assert isinstance(window, SettingsWindow)
    QTest.mouseClick(window.tabs[Icon.ADVANCED], LEFT)
    return window.advanced.several


@pytest.fixture
def hosts_file(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps(HOSTS), encoding="utf-8")
    return path


def test_page_without_a_file_offers_only_to_choose_one(stage: Stage) -> None:
    page = opened(stage)

    assert page.choose.isEnabled()
    assert not any(button.isEnabled() for button in (page.check, page.start, page.stop))
    assert page.bar.isHidden()


def test_unusable_file_is_refused_with_a_sentence_and_not_kept(
    stage: Stage, tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    path.write_text("[]", encoding="utf-8")
    page = opened(stage)
    stage.core.several.choose_file(path)
    stage.settle()

    assert page.macs.text.startswith("The hosts file can’t be used. It lists no hosts.")
    assert not page.start.isEnabled()
    assert stage.core.preferences.value.hosts_file == ""


@pytest.mark.slow
def test_check_shows_a_line_for_each_mac(
    stage: Stage, hosts_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_ssh(tmp_path, monkeypatch)
    hosts_file.write_text(
        json.dumps([*HOSTS, {"ssh": "refuses", "ips": ["127.0.0.1"]}]), encoding="utf-8"
    )
    page = opened(stage)
    several = stage.core.several
    several.choose_file(hosts_file)

    # The model of the fake catalog is in no folder, so no host could have the same files.
    def check_without_model(hosts: Hosts, _model: Path | None) -> tuple[HostCheck, ...]:
        return check_hosts(hosts, None)

    monkeypatch.setattr(several, "_check_hosts", check_without_model)
    QTest.mouseClick(page.check, LEFT)
    assert "studio: Checking…" in page.macs.text
    assert not page.check.isEnabled()
    stage.wait_until(lambda: not several.is_checking, 30)

    lines = page.macs.text.splitlines()
    memory = several.checks[0].memory_bytes
    assert stage.rig.catalog.counted_bytes == 2 * memory  # the third Mac cannot be reached
    assert len(lines) == 3
    assert lines[2].startswith("refuses: refuses refused the login.")
    assert page.check.isEnabled()


def test_start_and_stop_switch_the_engine_and_load_the_model_again(
    stage: Stage, hosts_file: Path
) -> None:
    page = opened(stage)
    several = stage.core.several
    several.choose_file(hosts_file)
    QTest.mouseClick(page.start, LEFT)
    stage.settle()
    assert stage.engine.hosts == parse_hosts(HOSTS)
    assert any(isinstance(command, LoadModel) for command in stage.engine.commands[-3:])
    assert stage.core.preferences.value.several_macs
    assert not page.choose.isEnabled()

    stage.engine.on_event(StagesReported(STAGES))
    stage.settle()
    assert page.macs.text.splitlines() == [
        f"{computer.IN_TITLES}: Ready · 10 parts · 2 GB",
        "studio: Loading 50% · 3 of 6 GB",
    ]
    assert (
        page.bar.accessibleName()
        == f"Parts of the model: studio 30 parts, {computer.IN_TITLES} 10 parts"
    )

    stage.engine.on_event(StagesReported(()))
    QTest.mouseClick(page.stop, LEFT)
    stage.settle()
    assert stage.engine.hosts is None
    assert not stage.core.preferences.value.several_macs
    assert page.start.isEnabled()


def test_lost_mac_keeps_the_text_as_stopped_and_offers_to_start_again(
    stage: Stage, hosts_file: Path
) -> None:
    several = stage.core.several
    several.choose_file(hosts_file)
    several.start()
    stage.settle()
    stage.send("Tell me more.")
    stage.engine.write("The boat")
    problem = silent(parse_hosts(HOSTS).hosts[1], 10.0)
    stage.engine.lose_model(problem)
    stage.engine.fail(problem)
    stage.settle()

    (*_, answer) = shown_path(stage.rig.current)
    assert (answer.content, answer.status) == ("The boat", MessageStatus.STOPPED)
    assert stage.pane.notice.text.startswith("studio no longer answers.")
    assert stage.pane.notice.button.text() == "Start Again"
    loads = sum(isinstance(command, LoadModel) for command in stage.engine.commands)
    stage.wait_until(lambda: stage.pane.notice.button.height() > 0)
    QTest.mouseClick(stage.pane.notice.button, LEFT)
    stage.settle()
    assert sum(isinstance(command, LoadModel) for command in stage.engine.commands) == loads + 1


def test_lost_mac_gives_an_unstarted_message_back(stage: Stage, hosts_file: Path) -> None:
    several = stage.core.several
    several.choose_file(hosts_file)
    several.start()
    stage.engine.hold_start = True
    stage.settle()
    stage.send("Not begun yet")
    problem = silent(parse_hosts(HOSTS).hosts[1], 10.0)
    stage.engine.lose_model(problem)
    stage.engine.fail(problem)
    stage.settle()

    assert stage.composer.text == "Not begun yet"
    assert stage.pane.notice.button.text() == "Start Again"


def test_rows_and_parts_before_a_check_have_names_only() -> None:
    hosts = parse_hosts(HOSTS)

    assert [row.text for row in mac_rows(hosts, (), (), is_checking=False)] == ["Not checked"] * 2
    assert mac_rows(None, (), (), is_checking=False) == ()
    assert parts((), ()) == ()


def test_rows_have_a_heading_and_one_sentence_about_their_purpose(stage: Stage) -> None:
    page = opened(stage)
    stage.settle()
    places = {label.text(): label.y() for label in page.findChildren(QLabel)}
    assert places["SEVERAL MACS"] < places[words.PURPOSE] < places["List of Macs"]
