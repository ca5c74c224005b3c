"""The settings page about the local server, used with the mouse; programs connect for real."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.server.key import KEY_FILE
from app.settings import Settings
from app.theme.icons import Icon
from app.widgets.commands import CommandId
from app.widgets.message_sheet import MessageSheet
from app.widgets.settings_server import ServerPage
from app.widgets.settings_window import SettingsWindow
from app.words import dialogs, server_page as words, window
from engine.catalog.card import ModelCard
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.rig import FakeCatalog, Rig, card
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
LEFT = Qt.MouseButton.LeftButton


def opened(stage: Stage) -> ServerPage:
    stage.run(CommandId.SETTINGS)
    window = stage.window.findChild(SettingsWindow)
    assert isinstance(window, SettingsWindow)
    QTest.mouseClick(window.tabs[Icon.SERVER], LEFT)
    return window.server


def switched_on(stage: Stage, page: ServerPage, qtbot: QtBot) -> str:
    """Switch the server on, at any free port. Return its URL."""
    stage.core.preferences.change(server_port=0)
    QTest.mouseClick(page.switch, LEFT, pos=page.switch.rect().center())
    qtbot.waitUntil(lambda: bool(stage.core.server.state.url))
    return stage.core.server.state.url


def status_of(url: str, key: str) -> int:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/v1/models", headers={"authorization": f"Bearer {key}"})
        return connection.getresponse().status
    finally:
        connection.close()


def test_server_is_off_until_it_is_switched_on(stage: Stage) -> None:
    page = opened(stage)

    assert not page.switch.isChecked()
    assert page.address.label.text() == words.OFF
    assert not page.address.button.isEnabled()
    assert not page.new_key.isEnabled()


def test_program_with_the_copied_key_gets_answers(stage: Stage, qtbot: QtBot) -> None:
    page = opened(stage)
    url = switched_on(stage, page, qtbot)
    QTest.mouseClick(page.key.button, LEFT)
    key = QGuiApplication.clipboard().text()

    assert page.address.code.text() == f"{url}/v1"
    assert key not in page.key.code.text()
    assert status_of(url, key) == 200
    assert status_of(url, "wrong") == 401
    file = stage.core.server.key_file
    assert file.name == KEY_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_new_key_replaces_the_old_one(stage: Stage, qtbot: QtBot) -> None:
    page = opened(stage)
    switched_on(stage, page, qtbot)
    old = stage.core.server.state.key
    QTest.mouseClick(page.new_key, LEFT)
    qtbot.waitUntil(lambda: stage.core.server.state.key != old)

    url = stage.core.server.state.url
    assert status_of(url, old) == 401
    assert status_of(url, stage.core.server.state.key) == 200


def test_settings_of_programs_have_address_and_key(stage: Stage, qtbot: QtBot) -> None:
    page = opened(stage)
    url = switched_on(stage, page, qtbot)
    for action in page.programs.actions():
        action.trigger()
        QTest.mouseClick(page.program_text.button, LEFT)
        copied = QGuiApplication.clipboard().text()
        assert url in copied, action.text()
        assert page.program.text() == action.text()
        assert [one.text() for one in page.programs.actions() if one.isChecked()] == [action.text()]
    next(one for one in page.programs.actions() if one.text() == "opencode").trigger()
    provider = json.loads(page.program_text.button.copied_text)["provider"]["rejoinder"]
    assert provider["options"]["apiKey"] == stage.core.server.state.key
    assert stage.core.server.state.key not in page.program_text.code.text()


def test_used_port_is_said_on_the_page(stage: Stage, qtbot: QtBot) -> None:
    page = opened(stage)
    assert page.port.placeholderText() == "Default: 7710"
    used = urlsplit(switched_on(stage, page, qtbot)).port or 0
    QTest.mouseClick(page.switch, LEFT, pos=page.switch.rect().center())
    qtbot.waitUntil(lambda: not stage.core.server.state.url)
    with closing(socket.create_server(("127.0.0.1", used))):
        stage.core.preferences.change(server_port=used)
        QTest.mouseClick(page.switch, LEFT, pos=page.switch.rect().center())
        qtbot.waitUntil(lambda: stage.core.server.state.problem is not None)

    assert str(used) in page.address.label.text()


@pytest.mark.parametrize("keeps", [False, True])
def test_clear_deletes_replies_that_an_earlier_server_kept(
    stage: Stage, qtbot: QtBot, keeps: bool
) -> None:
    page, core = opened(stage), stage.core
    switched_on(stage, page, qtbot)
    core.preferences.change(keep_on_disk=keeps)
    file = core.server.replies_file
    if not keeps:
        file.write_bytes(b"reply")
    core.storage.clear()

    core.server.close()  # waits for the calls before
    assert file.exists() == keeps


def test_switch_off_ends_the_server(stage: Stage, qtbot: QtBot) -> None:
    page = opened(stage)
    url = switched_on(stage, page, qtbot)
    QTest.mouseClick(page.switch, LEFT, pos=page.switch.rect().center())
    qtbot.waitUntil(lambda: not stage.core.server.state.url)

    with pytest.raises(OSError, match="refused"):
        status_of(url, "any")


def test_answer_to_a_program_is_shown_and_asked_about_at_quit(stage: Stage, qtbot: QtBot) -> None:
    page = opened(stage)
    url = switched_on(stage, page, qtbot)
    key = stage.core.server.state.key
    footer = stage.window.sidebar.footer
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(ask, url, key)
        qtbot.waitUntil(lambda: stage.core.server.num_open == 1)
        assert window.ANSWERS_PROGRAM in footer.accessibleName()
        stage.run(CommandId.QUIT)
        (sheet,) = stage.window.findChildren(MessageSheet)
        assert dialogs.answers_for_programs(1) in sheet.text
        assert dialogs.QUIT_KEEPS not in sheet.text
        sheet.reject()
        stage.engine.write("A boat.")
        stage.engine.finish()
        assert asked.result(PATIENCE_S) == 200
        qtbot.waitUntil(lambda: stage.core.server.num_open == 0)
    assert window.ANSWERS_PROGRAM not in footer.accessibleName()


def ask(url: str, key: str, model: str = "") -> int:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    try:
        messages = [{"role": "user", "content": "Hi."}]
        body = json.dumps({"model": model, "messages": messages})
        headers = {"authorization": f"Bearer {key}"}
        connection.request("POST", "/v1/chat/completions", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


OTHER = card("Other-4B-4bit", num_parameters=4_000_000_000)


@pytest.fixture
def two_models(tmp_path: Path) -> Iterator[Stage]:
    """Open a window with two models, of which the larger one is loaded."""
    with closing(Stage(tmp_path, catalog=FakeCatalog((card(), OTHER)))) as stage:
        yield stage


def test_programs_choose_no_model_until_the_user_lets_them(two_models: Stage, qtbot: QtBot) -> None:
    page = opened(two_models)
    url = switched_on(two_models, page, qtbot)
    status = two_models.core.models.status

    assert not page.chooses.isChecked()
    assert answered(two_models, qtbot, url, OTHER.name) == 200
    assert two_models.core.models.status == status


def test_chosen_model_is_shown_and_not_remembered(two_models: Stage, qtbot: QtBot) -> None:
    core, page = two_models.core, opened(two_models)
    core.preferences.change(model_path=core.models.status.path)
    let_programs_choose(page)
    url = switched_on(two_models, page, qtbot)

    assert answered(two_models, qtbot, url, OTHER.name) == 200
    assert core.models.status.path == str(OTHER.path)
    assert OTHER.title in two_models.window.sidebar.footer.accessibleName()
    assert core.preferences.value.model_path == str(card().path)


def test_answer_in_the_window_keeps_its_model(two_models: Stage, qtbot: QtBot) -> None:
    core, page = two_models.core, opened(two_models)
    let_programs_choose(page)
    url = switched_on(two_models, page, qtbot)
    two_models.send("Hello.")
    with ThreadPoolExecutor() as pool:
        refused = pool.submit(ask, url, core.server.state.key, OTHER.name)
        qtbot.waitUntil(refused.done)
    two_models.answer("Hi.")

    assert refused.result() == 503
    assert core.models.status.path == str(card().path)
    assert "Hi." in two_models.texts
    assert answered(two_models, qtbot, url, OTHER.name) == 200


def test_model_that_appears_can_be_chosen(two_models: Stage, qtbot: QtBot) -> None:
    core, page = two_models.core, opened(two_models)
    let_programs_choose(page)
    url = switched_on(two_models, page, qtbot)
    new = card("New-1B-4bit", num_parameters=1_000_000_000)
    two_models.rig.catalog.cards = (card(), OTHER, new)
    core.models.look_again()
    qtbot.waitUntil(lambda: new in core.models.cards)

    assert answered(two_models, qtbot, url, new.name) == 200
    assert core.models.status.path == str(new.path)


def let_programs_choose(page: ServerPage) -> None:
    QTest.mouseClick(page.chooses, LEFT, pos=page.chooses.rect().center())


def answered(stage: Stage, qtbot: QtBot, url: str, model: str) -> int:
    """Return the status of a request that names a model, after the engine has answered it."""
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(ask, url, stage.core.server.state.key, model)
        qtbot.waitUntil(lambda: asked.done() or stage.engine.running is not None)
        if not asked.done():
            stage.engine.write("A boat.")
            stage.engine.finish()
        qtbot.waitUntil(asked.done)
        return asked.result()


@dataclass(slots=True, eq=False)
class SlowCatalog(FakeCatalog):
    """A catalog whose search for models ends when the test says so."""

    may_end: Event = field(default_factory=Event)

    @override
    def scan(self, folders: tuple[str, ...]) -> tuple[ModelCard, ...]:
        assert self.may_end.wait(PATIENCE_S)
        return FakeCatalog.scan(self, folders)


@pytest.mark.parametrize("has_model", [True, False])
def test_request_waits_while_the_app_searches_for_a_model(
    tmp_path: Path, qtbot: QtBot, has_model: bool
) -> None:
    catalog = SlowCatalog((card(),) if has_model else ())
    settings = Settings(server_on=True, server_port=0, server_needs_key=False)
    rig = Rig(tmp_path, settings=settings, catalog=catalog)
    server = rig.core.server
    with closing(rig), ThreadPoolExecutor() as pool:
        rig.start()
        qtbot.waitUntil(lambda: bool(server.state.url))
        address = urlsplit(server.state.url).netloc
        asked = pool.submit(ask, server.state.url, "")
        for _ in range(20):  # the server gets the request meanwhile
            with closing(HTTPConnection(address, timeout=PATIENCE_S)) as other:
                other.request("GET", "/")
                assert other.getresponse().read()
        catalog.may_end.set()
        if has_model:
            qtbot.waitUntil(lambda: bool(rig.engine.submitted) or asked.done())
            rig.engine.write("A boat.")
            rig.engine.finish()
        qtbot.waitUntil(asked.done)
        assert asked.result() == (200 if has_model else 503)
