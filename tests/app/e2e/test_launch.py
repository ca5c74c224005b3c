"""Tests of app processes that start while a first one runs, or after it has crashed."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl

from app.bridge.callers import Callers
from app.hand_over import SOCKET_NAME, hand_over, listening
from app.main import listen_to_others
from app.store.lock import InstanceLock
from app.widgets import folders
from app.widgets.application import Application
from engine.types import ConversationId
from tests.app.conftest import MakeStage
from tests.fakes.app_process import (
    environment,
    run_app,
    wait_for,
    wait_for_line,
    wait_for_window,
)
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.stage import Stage

# The offscreen platform warns when a window is brought to the front.
pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)


@pytest.fixture
def first(stage: Stage, qapp: Application, tmp_path: Path) -> Iterator[Stage]:
    """Return an open window of a first app. It listens for apps that run_app() starts later."""
    (tmp_path / "data").mkdir()
    with ExitStack() as stack:
        stack.enter_context(InstanceLock(tmp_path / "data"))
        listener = stack.enter_context(listening(tmp_path / "data"))
        assert listener is not None
        callers = Callers(listener)
        listen_to_others(qapp, callers, stage.window, stage.rig.core)
        yield stage
        callers.close()
        qapp.files_opened.disconnect()


def end_of(process: subprocess.Popen[str], first: Stage) -> tuple[int, str]:
    """Run the first window until `process` ends. Return the exit status and output of `process`."""
    first.wait_until(lambda: process.poll() is not None)
    out, errors = process.communicate()
    return process.returncode, out + errors


@pytest.mark.slow
@pytest.mark.parametrize("state", ["closed", "minimised", "shown"])
def test_second_start_brings_the_window_to_the_front_and_ends_quietly(
    first: Stage, tmp_path: Path, state: str
) -> None:
    match state:
        case "closed":  # on a Mac the app keeps running after its window is closed
            first.window.hide()
        case "minimised":
            first.window.showMinimized()
        case _:
            pass
    assert end_of(run_app(tmp_path), first) == (0, "")
    assert first.window.isVisible()
    assert not first.window.isMinimized()


@pytest.mark.slow
def test_second_start_hands_its_files_over(
    first: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models: list[Path] = []
    monkeypatch.setattr(first.rig.core.opening, "open", models.extend)
    files: list[Path] = []

    def attach(_chat: ConversationId, paths: Sequence[Path]) -> None:
        files.extend(paths)

    monkeypatch.setattr(first.rig.core.attachments, "attach", attach)
    folder = tmp_path / "Ω odd name"
    second = run_app(tmp_path, folder, "relative.gguf")
    assert end_of(second, first) == (0, "")
    assert models == [Path.cwd() / "relative.gguf"]
    assert files == [tmp_path / "none", folder]


@pytest.mark.slow
def test_second_start_reports_a_first_app_that_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    # Simulate a first app that ends a connection without an answer. test_hand_over.py has one that
    # never accepts a connection.
    with InstanceLock(tmp_path / "data"), listening(tmp_path / "data") as listener:
        assert listener is not None
        listener.settimeout(30)
        process = run_app(tmp_path)
        listener.accept()[0].close()
        _out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "already running" in errors


@pytest.mark.slow
def test_start_after_a_kill_takes_hand_overs_and_ends_on_sigterm_with_status_0(
    tmp_path: Path,
) -> None:
    data_dir = tmp_path / "data"
    killed = run_app(tmp_path)
    log = wait_for_window(data_dir / "logs", killed)
    killed.kill()
    killed.communicate()
    assert (data_dir / SOCKET_NAME).is_socket()
    assert not hand_over(data_dir, ())
    log.unlink()
    following = run_app(tmp_path)
    try:
        wait_for_window(data_dir / "logs", following)
        third = run_app(tmp_path, tmp_path / "notes.gguf")
        assert third.wait(timeout=PATIENCE_S) == 0
        third.communicate()
        wait_for_line(log, "notes.gguf", following)
        assert log.stat().st_mode & 0o077 == 0
        following.send_signal(signal.SIGTERM)
        assert following.wait(timeout=PATIENCE_S) == 0
    finally:
        following.kill()
        following.communicate()
    assert not (data_dir / SOCKET_NAME).exists()
    # The folder contains no crash report.
    assert [one.name for one in (data_dir / "logs").iterdir()] == ["rejoinder.log"]


CLOSING = """
import sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from app.controllers.core import Core
from app.launch import launch
from app.options import Options

close = Core.close

def close_later(core, engine_s):
    print("closing", flush=True)
    sys.stdin.read()
    close(core, engine_s)

Core.start = lambda core: QApplication.quit()
Core.close = close_later
sys.exit(launch(Path(sys.argv[1]), Options()))
"""

WAITING = """
import os
import sys
from pathlib import Path
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from app.controllers.core import Core
from app.launch import launch
from app.options import Options
from app.widgets import closing_note
from app.widgets.lone_sheet import LoneSheet

Core.start = lambda core: None  # this test needs no engine, which takes seconds to import
closing_note._NOTE_MS = 0
opened = LoneSheet.open

def open_note(sheet):
    opened(sheet)
    print(sheet.windowTitle(), flush=True)
    if sys.argv[2] == "cancel":
        QTest.keyClick(sheet, Qt.Key.Key_Escape)

LoneSheet.open = open_note
os._exit(launch(Path(sys.argv[1]), Options(model=Path(sys.argv[1]) / "none")))
"""


def run_program(home: Path, program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a program with the data folder of `home` as its first argument."""
    return subprocess.Popen(
        [sys.executable, "-c", program, str(home / "data"), *arguments],
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.slow
def test_start_while_the_app_closes_waits_with_a_note_and_opens_then(tmp_path: Path) -> None:
    with ExitStack() as stack:
        closing = stack.enter_context(run_program(tmp_path, CLOSING))
        stack.callback(closing.kill)
        assert first_line(closing) == "closing\n"
        (tmp_path / "data/logs/rejoinder.log").unlink()
        waiting = stack.enter_context(run_program(tmp_path, WAITING, "wait"))
        stack.callback(waiting.kill)
        cancelled = stack.enter_context(run_program(tmp_path, WAITING, "cancel"))
        stack.callback(cancelled.kill)
        assert first_line(cancelled) == first_line(waiting) == "Rejoinder is still closing.\n"
        assert cancelled.wait(timeout=PATIENCE_S) == 0
        assert closing.stdin is not None
        closing.stdin.close()
        assert closing.wait(timeout=PATIENCE_S) == 0
        wait_for_window(tmp_path / "data/logs", waiting)
        waiting.send_signal(signal.SIGTERM)
        assert waiting.wait(timeout=PATIENCE_S) == 0


REFUSED = """
import sys
from pathlib import Path
from app.launch import launch
from app.options import Options
from app.widgets.lone_sheet import LoneSheet

LoneSheet.exec = lambda sheet: print(sheet.windowTitle(), sheet.text)
sys.prefix = sys.argv[2]
sys.exit(launch(Path(sys.argv[1]), Options()))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "prefix", ["/R.app/Contents/Resources/python", sys.prefix], ids=["bundle", "checkout"]
)
def test_failed_start_of_a_bundle_also_shows_a_sheet(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "data").touch()
    ended = subprocess.run(
        [sys.executable, "-c", REFUSED, str(tmp_path / "data"), prefix],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    sentence = f"The folder {tmp_path / 'data'} can’t be used: File exists."
    assert sentence in ended.stderr
    assert (sentence in ended.stdout) == prefix.startswith("/R.app")


NOTICE = """
import json, sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from app.controllers.core import Core
from app.launch import launch
from app.options import Options

def report(core):
    (window,) = [one for one in QApplication.topLevelWidgets() if hasattr(one, "pane")]
    notice = window.pane.app_notice
    details = notice.copy_button.copied_text if notice.isVisible() else ""
    print(json.dumps([notice.isVisible(), notice.text, details]))
    QApplication.quit()

Core.start = report  # called once the window is painted
sys.exit(launch(Path(sys.argv[1]), Options()))
"""


def said_at_the_start(home: Path) -> tuple[bool, str, str]:
    """Start the app. Return if its notice is visible, the notice's text, and its details."""
    ended = subprocess.run(
        [sys.executable, "-c", NOTICE, str(home / "data")],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return tuple(json.loads(ended.stdout))


@pytest.mark.slow
def test_next_start_reports_a_crash_of_the_last_run(tmp_path: Path) -> None:
    logs = tmp_path / "data" / "logs"
    crashing = run_app(tmp_path)
    wait_for_window(logs, crashing)
    assert (logs / "crash.log").stat().st_mode & 0o077 == 0
    crashing.send_signal(signal.SIGSEGV)
    crashing.communicate(timeout=PATIENCE_S)
    assert crashing.returncode == -signal.SIGSEGV

    visible, text, details = said_at_the_start(tmp_path)
    assert visible
    assert text.startswith("Rejoinder quit unexpectedly last time.")
    assert details.startswith("Fatal Python error: Segmentation fault")
    # All threads but the crashed one run on, so Python can fail to write more than the first lines.
    assert "(most recent call first)" in details
    assert (logs / "crash.kept-1.log").read_text("utf-8").strip() == details
    # A later start has nothing to report; see test_abort_is_reported_once_by_next_run.
    assert not (logs / "crash.log").exists()


def test_crash_notice_stays_when_another_chat_is_shown(
    make_stage: MakeStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[QUrl] = []

    class Desktop:
        openUrl = shown.append  # noqa: N815 (Qt's)

    monkeypatch.setattr(folders, "QDesktopServices", Desktop)
    stage = make_stage()
    stage.chat("Hello", "Hi")
    notice = stage.pane.app_notice
    notice.show_crash(tmp_path / "crash.kept-1.log")
    assert "can’t be read" in notice.copy_button.copied_text
    stage.window.sidebar.list.chosen.emit(stage.current)
    stage.rig.library.new_chat()
    stage.settle()
    assert notice.isVisible()
    notice.button.click()
    assert shown == [QUrl.fromLocalFile(str(tmp_path))]
    assert not notice.isVisible()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "darwin", reason="the places are Linux's")
def test_start_without_data_folder_uses_the_folders_of_linux(tmp_path: Path) -> None:
    process = run_app(tmp_path, data_dir=None)
    logs = tmp_path / ".local/state/Rejoinder/log"
    try:
        wait_for_window(logs, process)
        database = tmp_path / ".local/share/Rejoinder/conversations.db"
        wait_for(database.exists, process)
        assert database.exists()
        assert (tmp_path / ".cache/Rejoinder").is_dir()
        assert hand_over(tmp_path / ".local/share/Rejoinder", (), timeout_s=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()


THREADS = """
import sys, threading
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

seen = {}

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("mlx.core", "mlx_lm", "transformers"):
            seen.setdefault(name, threading.current_thread().name)

sys.meta_path.insert(0, Watch())
from app.controllers.models import ModelsController
from app.launch import launch
from app.options import Options
from app.viewmodels.models import ModelPhase

started = ModelsController.start

def start(models):
    started(models)
    models.status_changed.connect(
        lambda: models.status.phase is ModelPhase.FAILED and QApplication.quit()
    )

ModelsController.start = start
status = launch(Path(sys.argv[1]), Options(model=Path(sys.argv[1]) / "none"))
print(sorted(seen.items()))
sys.exit(status)
"""


@pytest.mark.slow
def test_libraries_of_the_engine_are_imported_on_its_own_thread(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", THREADS, str(tmp_path / "data")],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = dict(ast.literal_eval(ended.stdout))
    assert found["mlx.core"] == found["mlx_lm"] == "engine"
    assert set(found.values()) == {"engine"}
