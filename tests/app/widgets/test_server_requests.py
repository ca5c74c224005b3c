"""The requests on the Server page of the settings, used with the mouse and the keyboard.

Programs connect for real, and the engine is a fake whose events the tests emit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.controllers import server as controller
from app.server.live_requests import RequestState, SeenRequest, SeenRequests
from app.theme.icons import Icon
from app.widgets.commands import CommandId
from app.widgets.server_requests import RequestRow
from app.widgets.settings_server import ServerPage
from app.widgets.settings_window import SettingsWindow
from app.words import server as server_words, server_page as words
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
LEFT = Qt.MouseButton.LeftButton
Send = Callable[..., "Future[tuple[int, dict[str, Any]]]"]


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "LOOK_MS", 10)


def opened(stage: Stage) -> ServerPage:
    stage.run(CommandId.SETTINGS)
    settings = stage.window.findChild(SettingsWindow)
    assert isinstance(settings, SettingsWindow)
    QTest.mouseClick(settings.tabs[Icon.SERVER], LEFT)
    return settings.server


@pytest.fixture
def page(stage: Stage, quick_looks: None, qtbot: QtBot) -> ServerPage:
    """Return the page of a server that is on."""
    page = opened(stage)
    stage.core.preferences.change(server_port=0, server_needs_key=False)
    QTest.mouseClick(page.switch, LEFT, pos=page.switch.rect().center())
    qtbot.waitUntil(lambda: bool(stage.core.server.state.url))
    return page


@pytest.fixture
def send(stage: Stage, page: ServerPage) -> Iterator[Send]:
    """Return a function that sends messages as a program. Its result has status and body."""
    pool = ThreadPoolExecutor()

    def post(messages: list[dict[str, str]]) -> tuple[int, dict[str, Any]]:
        url = urlsplit(stage.core.server.state.url).netloc
        connection = HTTPConnection(url, timeout=PATIENCE_S)
        try:
            body = json.dumps({"messages": messages})
            connection.request("POST", "/v1/chat/completions", body, {"user-agent": "codex/1"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def submit(*texts: str, system: str = "") -> Future[tuple[int, dict[str, Any]]]:
        roles = [{"role": "system", "content": system}] if system else []
        return pool.submit(post, [*roles, *({"role": "user", "content": one} for one in texts)])

    yield submit
    pool.shutdown(cancel_futures=True)


def only_row(page: ServerPage, qtbot: QtBot, line: str) -> RequestRow:
    """Wait until the list has one row, whose line begins with a text."""

    def is_shown() -> bool:
        rows = list(page.requests.rows.values())
        # A layout shows a new widget only at the next turn of the event loop.
        are_shown = len(rows) == 1 and rows[0].toggle.isVisible()
        return are_shown and rows[0].line.text().startswith(line)

    qtbot.waitUntil(is_shown)
    return next(iter(page.requests.rows.values()))


def test_row_follows_a_request_from_its_wait_to_its_end(
    stage: Stage, page: ServerPage, send: Send, qtbot: QtBot
) -> None:
    assert page.requests.empty.isVisible()
    stage.engine.hold_start = True
    answer = send("Hi.")
    row = only_row(page, qtbot, words.open_request("codex", words.WAITS, ""))
    stage.engine.begin()
    stage.engine.prefill(1200, 4310)
    only_row(page, qtbot, words.open_request("codex", words.reads(1200, 4310), ""))
    stage.engine.write("A boat.")
    only_row(page, qtbot, words.open_request("codex", words.writes(1), ""))
    assert row.stop.isVisible()
    assert row.stop.accessibleName() == words.stop_name("codex")
    assert row.stop.accessibleDescription() == row.line.text()
    stage.engine.finish()
    only_row(page, qtbot, "codex: restored")

    assert answer.result(PATIENCE_S)[0] == 200
    assert row.stop.isHidden()
    assert page.requests.empty.isHidden()


@pytest.mark.parametrize("is_waiting", [True, False])
def test_stop_ends_the_answer_and_both_sides_say_who_stopped_it(
    stage: Stage, page: ServerPage, send: Send, qtbot: QtBot, is_waiting: bool
) -> None:
    stage.engine.hold_start = is_waiting
    answer = send("Hi.")
    row = only_row(page, qtbot, "codex")
    QTest.mouseClick(row.stop, LEFT)
    only_row(page, qtbot, server_words.failed("codex", server_words.STOPPED_BY_USER))
    status, body = answer.result(PATIENCE_S)

    assert status == 400  # programs ask again after other errors
    assert body["error"]["message"] == server_words.STOPPED_BY_USER


@pytest.mark.parametrize("is_waiting", [True, False])
def test_server_that_is_switched_off_says_so_and_keeps_the_lines_without_texts(
    stage: Stage, page: ServerPage, send: Send, qtbot: QtBot, is_waiting: bool
) -> None:
    stage.engine.hold_start = is_waiting
    answer = send("Hi.")
    row = only_row(page, qtbot, "codex")
    QTest.mouseClick(row.toggle, LEFT)
    QTest.mouseClick(page.switch, LEFT, pos=page.switch.rect().center())
    status, body = answer.result(PATIENCE_S)
    assert status == 503
    assert body["error"]["message"] == server_words.SERVER_STOPPED

    line = server_words.failed("codex", server_words.SERVER_STOPPED)
    qtbot.waitUntil(lambda: row.line.text() == line)
    assert page.requests.rows == {next(iter(page.requests.rows)): row}
    assert page.requests.empty.isHidden()
    assert row.toggle.isHidden()
    assert row.pane is None
    QTest.mouseClick(page.switch, LEFT, pos=page.switch.rect().center())
    qtbot.waitUntil(lambda: bool(stage.core.server.state.url))
    stage.settle()
    assert [one.line.text() for one in page.requests.rows.values()] == [line]


def test_texts_are_shown_on_demand_and_follow_the_answer(
    stage: Stage, page: ServerPage, send: Send, qtbot: QtBot
) -> None:
    answer = send("Read\u202ethis \x1b[2J" + "m" * 5000)
    row = only_row(page, qtbot, "codex")
    assert row.pane is None
    QTest.mouseClick(row.toggle, LEFT)
    pane = row.pane
    assert pane is not None
    qtbot.waitUntil(pane.message.isVisible)
    assert pane.message.toPlainText().startswith("Read\ufffdthis \ufffd[2Jmmm")
    assert pane.message.accessibleName() == words.message_title("user", words.first_of(4000, 5014))
    assert pane.reply.toPlainText() == words.NOTHING_YET
    stage.engine.write("A boat.")
    qtbot.waitUntil(lambda: pane.reply.toPlainText() == "A boat.")
    assert pane.reply.accessibleName() == words.ANSWER_SO_FAR
    assert pane.change.isHidden()
    stage.engine.finish()
    qtbot.waitUntil(lambda: pane.reply.accessibleName() == words.ANSWER)
    assert answer.result(PATIENCE_S)[0] == 200
    QTest.mouseClick(row.toggle, LEFT)

    assert row.pane is None
    qtbot.waitUntil(lambda: stage.core.server.requests.texts is None)


def test_line_that_differed_is_shown_cut_around_the_difference(
    stage: Stage, page: ServerPage, send: Send, qtbot: QtBot
) -> None:
    start, end = "a" * 900, "b" * 900
    for number, word in enumerate(("old", "new"), start=1):
        answer = send("Hi.", system=f"{start}{word}{end}")
        qtbot.waitUntil(lambda: stage.engine.running is not None)
        stage.engine.write("A boat.")
        stage.engine.finish()
        assert answer.result(PATIENCE_S)[0] == 200
        qtbot.waitUntil(lambda count=number: len(page.requests.rows) == count)
    row, before = page.requests.rows.values()
    assert row.line.text().endswith(words.with_change("", 1, "system"))
    assert not before.line.text().endswith(words.with_change("", 1, "system"))
    QTest.mouseClick(row.toggle, LEFT)
    assert row.pane is not None
    qtbot.waitUntil(row.pane.change.isVisible)
    old, new = row.pane.change.toPlainText().splitlines()

    assert old.startswith("- …aaa")
    assert new.startswith("+ …aaa")
    assert ("old" in old, "new" in new) == (True, True)
    assert max(len(old), len(new)) < 130
    assert row.pane.change.accessibleName() == words.changed_title(1, "system")


def test_texts_of_one_request_are_shown_at_a_time(
    stage: Stage, page: ServerPage, send: Send, qtbot: QtBot
) -> None:
    answers = [send("One."), send("Two.")]
    qtbot.waitUntil(lambda: len(page.requests.rows) == 2)
    first, second = page.requests.rows.values()
    QTest.mouseClick(first.toggle, LEFT)
    QTest.mouseClick(second.toggle, LEFT)

    assert first.pane is None
    assert second.pane is not None
    for row in (first, second):
        QTest.mouseClick(row.stop, LEFT)
    assert [answer.result(PATIENCE_S)[0] for answer in answers] == [400, 400]


def test_keys_reach_all_parts_of_a_row_and_stop_hands_its_focus_on(
    stage: Stage, page: ServerPage, send: Send, qtbot: QtBot
) -> None:
    answer = send("Hi.")
    row = only_row(page, qtbot, "codex")
    window = page.window()
    page.program_text.button.setFocus()
    assert window.focusWidget() is page.program_text.button

    def tab() -> QWidget | None:
        QTest.keyClick(window.focusWidget() or window, Qt.Key.Key_Tab)
        return window.focusWidget()

    assert tab() is row.toggle
    QTest.keyClick(row.toggle, Qt.Key.Key_Space)
    pane = row.pane
    assert pane is not None
    qtbot.waitUntil(pane.message.isVisible)
    assert tab() is row.stop
    assert tab() is pane.message
    assert tab() is pane.reply
    row.stop.setFocus()
    QTest.keyClick(row.stop, Qt.Key.Key_Return)
    only_row(page, qtbot, server_words.failed("codex", server_words.STOPPED_BY_USER))

    assert window.focusWidget() is row.toggle
    assert answer.result(PATIENCE_S)[0] == 400


def seen(num_requests: int, num_written: int) -> SeenRequests:
    return SeenRequests(
        tuple(
            SeenRequest(
                number=number,
                client="codex",
                state=RequestState.WRITES,
                came_at=time.monotonic(),
                num_read=0,
                num_to_read=0,
                num_written=num_written,
                report=None,
                change=None,
            )
            for number in range(num_requests, 0, -1)
        )
    )


def test_many_requests_get_rows_in_parts_and_new_figures_need_no_layout(
    stage: Stage, qtbot: QtBot
) -> None:
    class Layouts(QObject):
        number = 0

        @override
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            self.number += event.type() is QEvent.Type.LayoutRequest
            return False

    page = opened(stage)
    page.requests.show_requests(seen(64, 85))
    assert 0 < len(page.requests.rows) < 10
    qtbot.waitUntil(lambda: len(page.requests.rows) == 64)
    assert list(page.requests.rows) == list(range(64, 0, -1))
    stage.settle()
    layouts = Layouts()
    page.requests.installEventFilter(layouts)
    page.requests.show_requests(seen(64, 1085))
    stage.settle()

    assert words.writes(1085) in page.requests.rows[1].line.text()
    assert layouts.number == 0


def test_hidden_page_looks_at_nothing_and_a_server_that_stops_forgets_all_texts(
    stage: Stage, page: ServerPage, send: Send, qtbot: QtBot
) -> None:
    answer = send("Hi.")
    row = only_row(page, qtbot, "codex")
    QTest.mouseClick(row.toggle, LEFT)
    qtbot.waitUntil(lambda: stage.core.server.requests.texts is not None)
    looking = [one.isActive() for one in stage.core.server.findChildren(QTimer)]
    page.window().close()
    assert looking == [True]
    assert not any(one.isActive() for one in stage.core.server.findChildren(QTimer))
    stage.core.preferences.change(server_on=False)
    qtbot.waitUntil(lambda: not stage.core.server.state.url)

    assert not any(one.has_texts for one in stage.core.server.requests.requests)
    assert stage.core.server.requests.texts is None
    assert row.pane is None
    assert answer.result(PATIENCE_S)[0] >= 400


def test_selected_text_stays_selected_while_the_answer_grows(
    stage: Stage, page: ServerPage, send: Send, qtbot: QtBot
) -> None:
    answer = send("Hi.")
    row = only_row(page, qtbot, "codex")
    QTest.mouseClick(row.toggle, LEFT)
    pane = row.pane
    assert pane is not None
    stage.engine.write("A boat.")
    qtbot.waitUntil(lambda: pane.reply.toPlainText() == "A boat.")
    pane.reply.selectAll()
    stage.engine.write(" And two.")
    only_row(page, qtbot, words.open_request("codex", words.writes(3), ""))

    assert pane.reply.textCursor().selectedText() == "A boat."
    stage.engine.finish()
    assert answer.result(PATIENCE_S)[0] == 200
