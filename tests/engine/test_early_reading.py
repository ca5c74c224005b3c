"""The weight files of a model, read before the engine thread can read them."""

from __future__ import annotations

import logging
import subprocess
import threading
from pathlib import Path

import pytest

from engine.early_reading import EarlyReading
from engine.worker.process import shared_worker
from tests.fakes.tiny_model import train_tokenizer


def join_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "early reading":
            thread.join()


def test_all_weight_files_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "model-1.safetensors").write_bytes(b"a" * 5_000_000)
    (tmp_path / "model-2.safetensors").write_bytes(b"b" * 1_000_000)
    (tmp_path / "config.json").write_bytes(b"{}" * 5_000_000)
    EarlyReading().start(tmp_path)
    join_threads()

    assert "6 MB of the model were read during the imports" in caplog.text


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
