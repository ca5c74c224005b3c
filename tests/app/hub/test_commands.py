"""`rejoinder models search` and `download`, as a person types them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.cli.main import run
from tests.fakes.hub_server import FakeHub, Fault, running_hub
from tests.fakes.tiny_model import Template, build_tiny

REPO = "mlx-community/Tiny-Qwen3.5-9B-4bit"

pytestmark = pytest.mark.slow


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        folder = build_tiny("qwen3_5", tmp_path / "tiny", Template.KEEPING)
        hub.add_folder(REPO, folder)
        yield hub


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of a command: its exit status and what it printed."""

    status: int
    out: str
    errors: str


@pytest.fixture
def rejoinder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def command(*arguments: str) -> Ended:
        status = run([*arguments, "--data-dir", str(tmp_path / "data")])
        printed = capsys.readouterr()
        return Ended(status=status, out=printed.out, errors=printed.err)

    return command


@pytest.mark.usefixtures("hub")
def test_downloaded_model_is_listed_and_can_be_loaded(rejoinder: Callable[..., Ended]) -> None:
    found = rejoinder("models", "search", "tiny", "--json")
    assert json.loads(found.out)["repo_id"] == REPO
    done = rejoinder("models", "download", REPO)
    assert (done.status, done.errors.count("%")) == (0, 1), done.errors
    listed = rejoinder("models", "--json")
    cards = [json.loads(line) for line in listed.out.splitlines()]
    assert [card["name"] for card in cards if not card["problem"]] == ["Tiny-Qwen3.5-9B-4bit"]


def test_search_says_which_models_see_pictures(
    hub: FakeHub, rejoinder: Callable[..., Ended]
) -> None:
    assert "Sees pictures" not in rejoinder("models", "search", "tiny").out
    hub.repositories[REPO].tags, hub.repositories[REPO].task = ("mlx", "qwen3_5"), "any-to-any"
    assert "MLX · Sees pictures · 10 downloads" in rejoinder("models", "search", "tiny").out


def test_failed_download_is_one_sentence_and_status_1(
    hub: FakeHub, rejoinder: Callable[..., Ended]
) -> None:
    hub.faults = [
        Fault("GET /api/models/", times=9, status=403, headers={"X-Error-Code": "GatedRepo"})
    ]
    failed = rejoinder("models", "download", REPO)
    assert failed.status == 1
    assert "Accept its terms" in failed.errors


def test_text_of_the_hub_is_printable(hub: FakeHub, rejoinder: Callable[..., Ended]) -> None:
    hub.repositories[REPO].tags = ("mlx", "license:\x1b]0;owned\x07")
    found = rejoinder("models", "search", "tiny")
    assert found.out
    assert "\x1b" not in found.out
    assert "\x07" not in found.out
