"""The access token and the mirror: where they are stored, what is refused, what goes first."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.hub.access import (
    AccessError,
    has_token,
    host_of,
    mirror_address,
    remove_token,
    store_token,
    token_file,
)
from app.hub.failures import FailureKind, HubError
from app.hub.process import details, fetch
from tests.fakes.hub_server import FakeHub, Repository, running_hub

REPO = "owner/Tiny-4bit"
SECRET = "hf_a_secret_word"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("HF_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT", "HF_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def hub(home: Path) -> Iterator[FakeHub]:
    with running_hub() as hub:
        files = {"config.json": b"{}", "model.safetensors": b"0" * 1000}
        hub.repositories[REPO] = Repository(files, gated=True)
        yield hub


def test_token_is_stored_for_its_owner_only_and_can_be_removed(home: Path) -> None:
    assert not has_token()
    store_token(f"  {SECRET}\n")

    assert token_file() == home / "token"
    assert (home / "token").read_text() == SECRET
    assert (home / "token").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.iterdir()] == ["token"]
    assert has_token()
    remove_token()
    remove_token()
    assert not has_token()


@pytest.mark.parametrize("text", ["", "two words", "hf_\x1b[31m", "ä", "x" * 501])
def test_text_that_is_no_token_is_refused(home: Path, text: str) -> None:
    with pytest.raises(AccessError):
        store_token(text)

    assert not has_token()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", ""),
        (" https://hf-mirror.com/ ", "https://hf-mirror.com"),
        ("https://mirror.example:8443/hub", "https://mirror.example:8443/hub"),
        ("http://localhost:8080", "http://localhost:8080"),
    ],
)
def test_mirror_address_is_cleaned(text: str, address: str) -> None:
    assert mirror_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "hf-mirror.com",
        "http://hf-mirror.com",
        "ftp://hf-mirror.com",
        "https://",
        "https://user:word@hf-mirror.com",
        "https://[::1",
        "https://host:99999",
        "https://hf-mirror.com?x=1",
        "file:///etc/passwd",
    ],
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(AccessError):
        mirror_address(text)


def test_host_is_that_of_the_variable_then_of_the_mirror() -> None:
    assert host_of("", {}) == "huggingface.co"
    assert host_of("https://mirror.example", {}) == "mirror.example"
    variables = {"HF_ENDPOINT": "http://127.0.0.1:80"}
    assert host_of("https://mirror.example", variables) == "127.0.0.1:80"


@pytest.mark.slow
def test_stored_token_opens_a_gated_model_of_the_mirror(
    hub: FakeHub, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(HubError) as caught, caplog.at_level(logging.DEBUG):
        fetch(REPO, endpoint=hub.address).run()
    assert caught.value.failure.kind is FailureKind.GATED
    store_token(SECRET)
    fetch(REPO, endpoint=hub.address).run()

    assert ("Bearer " + SECRET) in {value for _, value in hub.authorizations}
    assert SECRET not in caplog.text


@pytest.mark.slow
def test_variables_go_before_the_stored_token_and_the_mirror(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_token(SECRET)
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_variable")
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    details(REPO, endpoint="http://127.0.0.1:9").run()

    assert {value for _, value in hub.authorizations} == {"Bearer hf_of_the_variable"}
