from __future__ import annotations

import pytest

from app.bridge.display import missing_display
from app.words.problems import no_window


@pytest.mark.parametrize(
    "environment",
    [{"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}, {"QT_QPA_PLATFORM": "offscreen"}],
)
def test_a_display_is_found(environment: dict[str, str]) -> None:
    assert missing_display("linux", environment) is None


def test_a_mac_needs_no_variable() -> None:
    assert missing_display("darwin", {}) is None


def test_without_a_display_the_sentence_says_so() -> None:
    cause = missing_display("linux", {"DISPLAY": ""})
    assert cause is not None
    assert "DISPLAY" in no_window(cause)
    assert "rejoinder chat" in no_window(cause)
