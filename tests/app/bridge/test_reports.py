from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path

import pytest

from app.bridge.reports import LOG_BYTES, catch_unexpected, start_log
from engine.errors import DiskError
from engine.problem import Problem


def test_log_file_is_private(tmp_path: Path) -> None:
    start_log(tmp_path)
    logging.getLogger("app.test").info("it works")
    log = tmp_path / "rejoinder.log"
    assert "it works" in log.read_text("utf-8")
    assert log.stat().st_mode & 0o077 == 0


def test_debug_log_has_our_details_and_reaches_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start_log(tmp_path, debug=True)
    logging.getLogger("engine.test").debug("ours")
    logging.getLogger("library").debug("theirs")
    written = (tmp_path / "rejoinder.log").read_text("utf-8")
    assert "DEBUG MainThread engine.test: ours\n" in written
    assert "theirs" not in written
    assert capsys.readouterr().err == written


def test_log_without_debug_leaves_details_out(tmp_path: Path) -> None:
    start_log(tmp_path)
    logging.getLogger("engine.test").debug("ours")
    assert (tmp_path / "rejoinder.log").read_text("utf-8") == ""


def test_log_above_size_limit_is_renamed_at_start(tmp_path: Path) -> None:
    log = tmp_path / "rejoinder.log"
    log.write_bytes(b"x" * (LOG_BYTES + 1))
    start_log(tmp_path)
    assert log.stat().st_size == 0
    assert (tmp_path / "rejoinder.old.log").stat().st_size == LOG_BYTES + 1


def test_start_log_in_missing_folder_raises_disk_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match=r"The log .* can’t be written"):
        start_log(tmp_path / "missing")


def test_uncaught_exception_is_logged_and_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    problems: list[Problem] = []
    catch_unexpected(problems.append)
    error = ValueError("surprise")
    sys.excepthook(ValueError, error, None)
    assert problems[0].title == "Rejoinder made a mistake."
    assert "surprise" in problems[0].cause
    assert "uncaught exception" in caplog.text


def test_uncaught_exception_in_thread_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    catch_unexpected(lambda _problem: None)

    def fail() -> None:
        raise ValueError("surprise")

    thread = threading.Thread(target=fail, name="worker")
    thread.start()
    thread.join()
    assert "uncaught exception in" in caplog.text
    assert "worker" in caplog.text
