"""The command `serve`: its arguments and what it prints."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from app.cli import serve
from app.cli.main import run
from app.paths import Paths
from app.server.access import Access, ServerAddress
from app.server.errors import invalid
from app.server.report import Report
from app.settings import Settings, save_settings
from engine.catalog.card import ModelCard
from tests.fakes.app_process import environment
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.engine_fixtures import TinyModel, tiny_model
from tests.fakes.fake_engine import FACTS
from tests.fakes.model_folder import make_model
from tests.fakes.tiny_model import Template

__all__ = ["tiny_model"]


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_impossible_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    serve.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--port", port])

    assert "--port" in capsys.readouterr().err


@pytest.mark.parametrize(("key", "says"), [("k", "that has the key"), ("", "without a key")])
def test_open_server_says_who_can_use_it(
    key: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address = ServerAddress(host="192.168.1.5", access=Access(key=key))
    serve.announce("http://192.168.1.5:1", FACTS, address)

    assert says in capsys.readouterr().out


def test_report_for_a_closed_pipe_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(sys.stdout, "write", fail)

    serve.Terminal(is_verbose=True).report(Report(client="curl", ended=invalid("No.")))


@contextmanager
def serving(home: Path, model: Path, *options: str) -> Generator[int]:
    """Run `rejoinder serve` without a key. Yield its port."""
    command = [sys.executable, "-P", "-m", "app", "serve", "--model", str(model), "--no-key"]
    command += ["--data-dir", str(home / "data"), "--port", "0", *options]
    process = subprocess.Popen(command, env=environment(home), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert found is not None
        yield int(found[1])
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        process.stdout.close()


def ask(port: int, model: str) -> tuple[int, str]:
    """Return the status of an answer and the model that wrote it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        messages = [{"role": "user", "content": "Hi."}]
        body = json.dumps({"model": model, "messages": messages, "max_tokens": 1})
        connection.request("POST", "/v1/chat/completions", body)
        response = connection.getresponse()
        return response.status, json.loads(response.read()).get("model", "")
    finally:
        connection.close()


@pytest.mark.parametrize(("options", "names"), [((), []), (("--choose-models",), ["other"])])
def test_requests_choose_from_the_models_of_the_folders_only_with_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], names: list[str]
) -> None:
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    make_model(tmp_path / "models" / "other")
    (tmp_path / "data").mkdir()
    settings = Settings(model_folders=(str(tmp_path / "models"),))
    save_settings(tmp_path / "data" / "settings.json", settings)
    offered: list[ModelCard] = []

    def serve_no_request(
        _args: Namespace, _model: Path, cards: tuple[ModelCard, ...], _paths: Paths
    ) -> int:
        offered.extend(cards)
        return 0

    monkeypatch.setattr(serve, "run", serve_no_request)
    arguments = ("serve", "--model", str(tmp_path / "first"), "--data-dir", str(tmp_path / "data"))

    assert run([*arguments, *options]) == 0
    assert [card.name for card in offered if not card.problem] == names


@pytest.mark.slow
def test_serve_loads_named_models_and_returns_to_its_own_after_a_failure(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    first, folder = tiny_model("qwen3_5", Template.KEEPING), tmp_path / "models"
    for name in ("other", "broken"):
        shutil.copytree(tiny_model("llama", Template.KEEPING), folder / name)
    (tmp_path / "data").mkdir()
    settings = Settings(model_folders=(str(folder),))
    save_settings(tmp_path / "data" / "settings.json", settings)
    with serving(tmp_path, first, "--choose-models") as port:
        assert ask(port, "other") == (200, "other")
        assert ask(port, first.name) == (200, first.name)
        shutil.rmtree(folder / "broken")
        assert ask(port, "broken") == (503, "")
        # Requests get an error until serve begins to load its own model again.
        later = (ask(port, "any") for _ in range(1000))
        assert next(answer for answer in later if answer[0] == 200) == (200, first.name)
