"""The weight files of a model, read before the engine thread can read them."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
from pathlib import Path

import pytest

from engine.early_reading import EarlyReading, read_through
from engine.worker.process import shared_worker
from tests.fakes.tiny_model import train_tokenizer


def join_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "early reading":
            thread.join()


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


def test_tokenizer_is_read_in_the_worker_process(tmp_path: Path) -> None:
    train_tokenizer().save(str(tmp_path / "tokenizer.json"))
    EarlyReading().start(tmp_path)
    join_threads()
    worker = shared_worker()
    worker.close()
    worker.rehearse_tokenizer(tmp_path / "tokenizer.json")

    assert worker.process_id is None, "the file is read again"


def test_worker_that_cannot_start_early_is_only_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    caplog.set_level(logging.INFO)
    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    shared_worker().close()
    monkeypatch.setattr(subprocess, "Popen", fail)
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    EarlyReading().start(tmp_path)
    join_threads()

    assert reported == []
    assert "the tokenizer is not read early: BlockingIOError" in caplog.text
