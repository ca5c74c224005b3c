"""A check for a display, made without importing Qt, which may fail on a machine without one."""

from __future__ import annotations

from collections.abc import Mapping

from app.words import problems as words

# Part of the loader's message when a system library that Qt needs is not installed.
MISSING_LIBRARY = "cannot open shared object file"


def missing_display(platform: str, environment: Mapping[str, str]) -> str | None:
    """Return the reason why no window can be shown, or None if there may be a display."""
    if platform != "linux" or environment.get("QT_QPA_PLATFORM"):
        return None
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return None
    return words.NO_DISPLAY
