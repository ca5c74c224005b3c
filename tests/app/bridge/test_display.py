from __future__ import annotations

import pytest

from app.bridge.display import missing_display
from app.words.problems import no_window


@pytest.mark.parametrize(
    "environment",
    [{"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}, {"QT_QPA_PLATFORM": "offscreen"}],
)
def test_missing_display_returns_none_if_a_display_variable_is_set(
    environment: dict[str, str],
) -> None:
    assert missing_display("linux", environment) is None


def test_missing_display_on_mac_returns_none() -> None:
    assert missing_display("darwin", {}) is None


def test_missing_display_message_names_variable_and_cli() -> None:
    cause = missing_display("linux", {"DISPLAY": ""})
    assert cause is not None
    assert "DISPLAY" in no_window(cause)
    assert "rejoinder chat" in no_window(cause)
