"""The Server page of the settings, with a program that uses a real model."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.controllers.server import ServerController
from app.server.live_requests import RequestState
from app.theme.icons import Icon
from app.widgets.commands import CommandId
from app.widgets.settings_window import SettingsWindow
from app.words import server as words
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template

Answer = tuple[int, dict[str, str], str]  # status, headers and body
LEFT = Qt.MouseButton.LeftButton
PROMPT = "Write a short story about a small boat. " * 20

pytestmark = [pytest.mark.slow, pytest.mark.qt_log_ignore("does not support raise", extend=True)]


def post(url: str, content: str, max_tokens: int) -> Answer:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    try:
        messages = [{"role": "user", "content": content}]
        body = json.dumps({"messages": messages, "max_tokens": max_tokens})
        connection.request("POST", "/v1/chat/completions", body)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


def is_written_or_done(server: ServerController, answer: Future[Answer]) -> bool:
    is_written = any(one.state is RequestState.WRITES for one in server.requests.requests)
    return is_written or answer.done()


def test_stop_on_the_page_ends_a_real_answer_and_keeps_what_was_read(
    tiny_model: TinyModel, tmp_path: Path, qtbot: QtBot
) -> None:
    with closing(RealWindow(tmp_path)) as real, ThreadPoolExecutor() as pool:
        real.launch(tiny_model("qwen3_5", Template.KEEPING))
        server = real.core.server
        real.core.preferences.change(server_on=True, server_port=0, server_needs_key=False)
        qtbot.waitUntil(lambda: bool(server.state.url and real.core.models.status.facts))
        real.window.commands[CommandId.SETTINGS].trigger()
        settings = real.window.findChild(SettingsWindow)
        assert isinstance(settings, SettingsWindow)
        QTest.mouseClick(settings.tabs[Icon.SERVER], LEFT)
        status, body, content = 0, "", ""
        # Random weights may end an answer early. Try again until one is stopped.
        for attempt in range(20):
            content = f"{PROMPT} {attempt}"
            answer = pool.submit(post, server.state.url, content, 30_000)
            qtbot.waitUntil(partial(is_written_or_done, server, answer))
            for row in settings.server.requests.rows.values():
                if row.stop.isVisible():
                    QTest.mouseClick(row.stop, LEFT)
            qtbot.waitUntil(answer.done)
            status, _, body = answer.result()
            if status == 400:
                break
        again = pool.submit(post, server.state.url, content, 1)
        qtbot.waitUntil(again.done)
        headers = again.result()[1]

        assert status == 400
        assert words.STOPPED_BY_USER in body
        assert int(headers["x-rejoinder-restored"]) > 100
        assert int(headers["x-rejoinder-read"]) <= 1
