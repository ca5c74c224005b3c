"""A check for a display. It imports no Qt, because importing Qt may fail without a display."""

from __future__ import annotations

from collections.abc import Mapping

from app.words import problems as words

# Part of the dynamic loader's message when a system library that Qt needs is missing.
MISSING_LIBRARY = "cannot open shared object file"


def missing_display(platform: str, environment: Mapping[str, str]) -> str | None:
    """Return the reason why no window can be shown, or None if there may be a display."""
    if platform != "linux" or environment.get("QT_QPA_PLATFORM"):
        return None
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return None
    return words.NO_DISPLAY
