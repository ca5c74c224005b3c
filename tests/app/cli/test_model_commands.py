"""`rejoinder models fit` and `rejoinder models remove`, as a user runs them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_extensions import override

from app.cli.main import run
from engine.config import EngineConfig
from engine.fitting import FitMeter
from tests.architectures.configs.every import CONFIGS
from tests.fakes.hub_calls import call_in_process
from tests.fakes.hub_server import running_hub
from tests.fakes.model_folder import make_repository
from tests.fakes.model_stores import add_ollama_model, write_gguf
from tests.fakes.seeing_model import build_seeing
from tests.fakes.tiny_model import Template, build_tiny

MEASURED = ("weight_bytes", "kv_bytes_per_token", "snapshot_bytes")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def one_meter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let all commands of a test measure in one process, which takes half a second to start."""

    class KeptMeter(FitMeter):
        @override
        def close(self) -> None:
            pass

    meter = KeptMeter(EngineConfig())

    def kept_meter(_config: EngineConfig) -> FitMeter:
        return meter

    monkeypatch.setattr("engine.local_models.FitMeter", kept_meter)
    yield
    FitMeter.close(meter)


def models(home: Path, *arguments: str) -> int:
    return run(["--data-dir", str(home / "app"), "models", *arguments])


def lm_studio(home: Path) -> Path:
    return home / ".lmstudio" / "models" / "owner"


@pytest.mark.slow
@pytest.mark.usefixtures("one_meter")
def test_fit_of_a_folder_gives_the_verdict_and_the_numbers_of_its_repository(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    folder = lm_studio(home) / "Tiny"
    build_tiny("qwen3_5", folder, Template.KEEPING, CONFIGS)
    unlisted = shutil.copytree(folder, home / "Documents" / "Tiny")

    assert models(home, "fit", str(unlisted)) == 0
    assert capsys.readouterr().out.startswith("Fits, with room for about ")
    assert models(home, "remove", str(unlisted), "--yes") == 1
    assert "is not a model in the folders that Rejoinder searches" in capsys.readouterr().err
    assert models(home, "fit", "Tiny", "--json") == 0
    local = json.loads(capsys.readouterr().out)["memory"]
    assert local["kv_bytes_per_token"] == 256
    assert local["snapshot_bytes"] == 10496
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("HF_HOME", str(home / "hf"))
        call_in_process(monkeypatch)
        hub.add_folder("owner/Tiny-MLX", folder)
        assert models(home, "fit", "owner/Tiny-MLX", "--json") == 0
        fetched = [path for _, path in hub.requests if "safetensors" in path]
    remote = json.loads(capsys.readouterr().out)["memory"]
    assert fetched == []
    assert [remote[name] for name in MEASURED] == [local[name] for name in MEASURED]


@pytest.mark.slow
@pytest.mark.usefixtures("one_meter")
def test_fit_says_that_a_model_sees_pictures(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    folder = build_seeing(lm_studio(home) / "Seeing")

    assert models(home, "fit", "Seeing") == 0
    assert capsys.readouterr().out.endswith("\nSees pictures.\n")
    assert models(home, "fit", "Seeing", "--json") == 0
    assert json.loads(capsys.readouterr().out)["sees"] is True
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("HF_HOME", str(home / "hf"))
        call_in_process(monkeypatch)
        hub.add_folder("owner/Seeing-MLX", folder)
        assert models(home, "fit", "owner/Seeing-MLX") == 0
    assert capsys.readouterr().out.endswith("\nSees pictures.\n")


def test_fit_of_a_gguf_file_says_that_it_must_be_imported(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    write_gguf(lm_studio(home) / "Big.gguf", 100)

    assert models(home, "fit", "Big") == 1
    assert "GGUF" in capsys.readouterr().err


def test_refusal_of_a_mirror_names_its_host(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        assert models(home, "fit", "owner/Nothing") == 1
        host = hub.address.removeprefix("http://")
    error = capsys.readouterr().err
    assert f"The request to {host} failed. {host} has no such model" in error
    assert "Hugging Face" not in error


@pytest.mark.parametrize("action", ["fit", "quantize", "remove", "download"])
def test_command_with_a_path_sends_nothing_and_tells_of_the_path(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, action: str
):
    (home / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(home)
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        for path in ("a/b/missing", "./b", "~/b", *(() if action == "download" else ("a/b",))):
            assert models(home, action, path) == 1
            error = capsys.readouterr().err
            assert path in error
            assert "Hugging Face" not in error
        assert hub.requests == []


def test_remove_in_a_pipe_needs_yes(home: Path, capsys: pytest.CaptureFixture[str]):
    snapshot = make_repository(home / ".cache" / "huggingface" / "hub", "owner/Tiny", "a" * 40)

    assert models(home, "remove", "owner/Tiny") == 1
    assert "--yes" in capsys.readouterr().err
    assert snapshot.is_dir()
    assert models(home, "remove", "owner/Tiny", "--yes") == 0
    assert "Tiny is in the Trash" in capsys.readouterr().out
    assert not snapshot.parent.parent.exists()


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_remove_on_a_terminal_asks(
    answer: str,
    status: int,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    file = write_gguf(lm_studio(home) / "Big.gguf", 5_000_000)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: answer, raising=False)

    assert models(home, "remove", "Big") == status
    assert "Move Big" in (printed := capsys.readouterr().out)
    assert "5 MB" in printed
    assert file.exists() is (status == 1)


def test_remove_finds_ollama_models_by_name(home: Path):
    manifest = add_ollama_model(home / ".ollama" / "models", "library/qwen3", "4b", weights=b"GGUF")

    assert models(home, "remove", "qwen3:4b", "--yes") == 0
    assert not manifest.exists()


def test_remove_of_an_unknown_or_ambiguous_name_removes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    files = [write_gguf(lm_studio(home) / place / "Big.gguf", 100) for place in ("a", "b")]

    assert models(home, "remove", "Nothing", "--yes") == 1
    assert "no model" in capsys.readouterr().err
    assert models(home, "remove", "Big", "--yes") == 1
    assert "2 models" in capsys.readouterr().err
    assert models(home, "remove", str(files[0]), "--yes") == 0
    assert [file.exists() for file in files] == [False, True]


def test_remove_of_a_path_outside_the_places_of_models_removes_nothing(home: Path):
    outside = write_gguf(home / "Documents" / "a.gguf", 100)

    assert models(home, "remove", str(outside), "--yes") == 1
    assert outside.exists()


@pytest.mark.slow
def test_quantize_makes_a_copy_that_is_listed(home: Path, capsys: pytest.CaptureFixture[str]):
    build_tiny("qwen3_5", lm_studio(home) / "Tiny-bf16", Template.KEEPING)

    assert models(home, "quantize", "Tiny-bf16", "--bits", "6") == 0
    assert capsys.readouterr().out == (
        f"Tiny-6bit is complete: {home / 'app' / 'models' / 'Tiny-6bit'}\n"
    )
    assert models(home, "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["bits"] for row in rows if row["name"] == "Tiny-6bit"] == [6]
    assert models(home, "quantize", "Tiny-6bit") == 1
    assert capsys.readouterr().err == (
        "rejoinder: No smaller copy can be made of this model. Tiny 6-bit is already quantized, to 6 "
        "bits. Choose a model in full precision (16-bit).\n"
    )


def test_quantize_refuses_a_gguf_file_in_one_sentence(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    write_gguf(lm_studio(home) / "Big.gguf", 100)

    assert models(home, "quantize", "Big") == 1
    assert "GGUF" in capsys.readouterr().err
