"""`rejoinder models search` and `download`, as a person types them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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


def rejoinder(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "app", *arguments, "--data-dir", str(tmp_path / "data")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_downloaded_model_is_listed_and_can_be_loaded(hub: FakeHub, tmp_path: Path) -> None:
    found = rejoinder(tmp_path, "models", "search", "tiny", "--json")
    assert json.loads(found.stdout)["repo_id"] == REPO
    done = rejoinder(tmp_path, "models", "download", REPO)
    assert (done.returncode, done.stderr.count("%")) == (0, 1), done.stderr
    listed = rejoinder(tmp_path, "models", "--json")
    cards = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [card["name"] for card in cards if not card["problem"]] == ["Tiny-Qwen3.5-9B-4bit"]


def test_failed_download_is_one_sentence_and_status_1(hub: FakeHub, tmp_path: Path) -> None:
    hub.faults = [
        Fault("GET /api/models/", times=9, status=403, headers={"X-Error-Code": "GatedRepo"})
    ]
    failed = rejoinder(tmp_path, "models", "download", REPO)
    assert failed.returncode == 1
    assert "Accept its terms" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_text_of_the_hub_is_printable(hub: FakeHub, tmp_path: Path) -> None:
    hub.repositories[REPO].tags = ("mlx", "license:\x1b]0;owned\x07")
    found = rejoinder(tmp_path, "models", "search", "tiny")
    assert "\x1b" not in found.stdout
    assert "\x07" not in found.stdout
