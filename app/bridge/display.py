"""Whether a window can be opened here, and the sentence when it can't. Imports no Qt: that may be what fails."""

from __future__ import annotations

from collections.abc import Mapping

from app.words import problems as words

MISSING_LIBRARY = "cannot open shared object file"


def missing_display(platform: str, environment: Mapping[str, str]) -> str | None:
    """Why no window can appear, before Qt tries; None when it may."""
    if platform != "linux" or environment.get("QT_QPA_PLATFORM"):
        return None
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return None
    return words.NO_DISPLAY
