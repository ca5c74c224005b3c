from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.bridge.tasks import TaskLane
from app.controllers.preferences import Preferences
from app.settings import Settings, load_settings
from engine.types import ConversationId


def test_places_for_the_next_start_are_saved_and_not_announced(
    qapp: QApplication, tmp_path: Path
) -> None:
    lane = TaskLane("files")
    preferences = Preferences(Settings(), tmp_path / "settings.json", lane)
    zooms: list[int] = []
    preferences.changed.connect(lambda: zooms.append(preferences.value.text_zoom))
    preferences.set_selected(ConversationId("a"))
    preferences.set(replace(preferences.value, window_geometry="1 2", sidebar_width=300))
    preferences.set(replace(preferences.value, read_message="m", read_offset=4))
    assert zooms == []
    preferences.zoom_in()
    preferences.set_zoom(110)
    preferences.zoom_in()
    assert zooms == [110, 120]
    preferences.flush()
    lane.stop()
    expected = Settings(
        text_zoom=120,
        selected_conversation=ConversationId("a"),
        window_geometry="1 2",
        sidebar_width=300,
        read_message="m",
        read_offset=4,
    )
    assert load_settings(tmp_path / "settings.json").settings == expected
