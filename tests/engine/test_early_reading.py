"""The weight files of a model, read before the engine thread can read them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from engine.early_reading import EarlyReading, read_through
from engine.worker.process import Worker


def test_reading_covers_all_plain_weight_files(tmp_path: Path) -> None:
    (tmp_path / "model-1.safetensors").write_bytes(b"a" * 5_000_000)
    (tmp_path / "model-2.safetensors").write_bytes(b"b" * 10)
    (tmp_path / "config.json").write_bytes(b"{}")
    (tmp_path / "gone.safetensors").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.safetensors")

    assert read_through(tmp_path, threading.Event()) == 5_000_010


def test_stopped_reading_reads_no_more(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"a" * 10)
    is_stopped = threading.Event()
    is_stopped.set()

    assert read_through(tmp_path, is_stopped) == 0


def test_missing_folder_reads_nothing(tmp_path: Path) -> None:
    assert read_through(tmp_path / "nowhere", threading.Event()) == 0


def test_start_after_the_stop_starts_no_thread(tmp_path: Path) -> None:
    early = EarlyReading()
    early.stop()
    early.start(tmp_path)

    assert "early reading" not in {thread.name for thread in threading.enumerate()}


def test_worker_that_cannot_start_early_is_only_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Worker) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    monkeypatch.setattr(Worker, "start", fail)
    early = EarlyReading()
    early.start(tmp_path)
    for thread in threading.enumerate():
        if thread.name == "early reading":
            thread.join()

    assert reported == []
    assert "starting the worker process early failed" in caplog.text
