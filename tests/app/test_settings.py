from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from app.settings import Appearance, Settings, load_settings, remove_leftovers, save_settings
from engine.errors import DiskError
from engine.types import ConversationId

CHANGED = Settings(
    appearance=Appearance.DARK,
    model_path="/models/a",
    model_folders=("/models", "/more \ud800"),
    window_geometry="AdnQywAD",
    sidebar_visible=False,
    inspector_visible=True,
    selected_conversation=ConversationId("A"),
    text_zoom=120,
    read_ahead=False,
    new_chat_prompt="Be brief.",
    new_chat_options={"temperature": 0.2, "thinking": True},
)


def test_load_settings_without_file_returns_defaults(tmp_path: Path) -> None:
    loaded = load_settings(tmp_path / "settings.json")

    assert loaded.settings == Settings()
    assert loaded.problem is None


def test_load_settings_returns_saved_settings(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"

    save_settings(path, CHANGED)

    assert load_settings(path).settings == CHANGED
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_unknown_keys_survive_load_and_save(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"text_zoom": 110, "from_the_future": {"a": [1]}}')

    settings = load_settings(path).settings
    save_settings(path, replace(settings, text_zoom=90))

    stored = json.loads(path.read_text())
    assert stored["from_the_future"] == {"a": [1]}
    assert stored["text_zoom"] == 90


@pytest.mark.parametrize("text", ['{"appearance": "dark"', "", "[1]", "\x00\x01", "[" * 100_000])
def test_broken_settings_file_is_renamed_and_defaults_are_used(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)

    with caplog.at_level(logging.WARNING):
        loaded = load_settings(path)

    assert loaded.settings == Settings()
    assert loaded.problem is not None
    assert "settings.broken-1.json" in loaded.problem.advice
    assert (tmp_path / "settings.broken-1.json").read_text() == text
    assert not path.exists()


def test_invalid_values_are_replaced_by_defaults(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    senseless = {
        "appearance": "pink",
        "model_path": 3,
        "model_folders": ["/models", 4],
        "window_geometry": None,
        "sidebar_visible": 0,
        "inspector_visible": "yes",
        "selected_conversation": [],
        "text_zoom": True,
        "read_ahead": "off",
    }
    path.write_text(json.dumps(senseless))

    assert load_settings(path).settings == Settings(model_folders=("/models",))


@pytest.mark.parametrize(("stored", "zoom"), [(10, 80), (500, 200), (115, 115)])
def test_text_zoom_is_limited_to_its_range(tmp_path: Path, stored: int, zoom: int) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"text_zoom": stored}))

    assert load_settings(path).settings.text_zoom == zoom


def test_failed_save_leaves_target_and_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.mkdir()

    with pytest.raises(DiskError) as refused:
        save_settings(path, Settings())
    with pytest.raises(DiskError):
        load_settings(path)

    assert str(path) in refused.value.problem.cause
    assert list(tmp_path.iterdir()) == [path]


def test_save_settings_in_missing_folder_raises_disk_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="No such file"):
        save_settings(tmp_path / "missing" / "settings.json", Settings())


def test_leftovers_of_a_killed_save_are_removed_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    save_settings(path, Settings())
    for name in ("settings.jsonx3_k9a0b", "settings.json.part"):
        (tmp_path / name).write_text("{}")
    kept = {path, tmp_path / "settings.json.kept", tmp_path / "settings.json-my-copy"}
    for other in kept - {path}:
        other.write_text("{}")

    remove_leftovers(path)

    assert set(tmp_path.iterdir()) == kept


def test_damaged_options_of_new_chats_are_left_out_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    options = {"top_p": 0.5, "top_k": "many", "min_p": float("inf"), "seed": 10**400, "x": [1]}
    path.write_text(json.dumps({"new_chat_options": options, "text_zoom": 120}))

    loaded = load_settings(path).settings

    assert loaded.new_chat_options == {"top_p": 0.5}
    assert loaded.text_zoom == 120


@pytest.mark.parametrize("stored", [3, -1, "4", True, 10**30])
def test_memory_limit_that_is_no_choice_is_automatic(tmp_path: Path, stored: object) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"memory_gb": stored}))

    assert load_settings(path).settings.memory_gb == 0
