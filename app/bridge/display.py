"""Whether a window can be opened here, and the sentence when it can't. Imports no Qt: that may be what fails."""

from __future__ import annotations

from collections.abc import Mapping

MISSING_LIBRARY = "cannot open shared object file"
_ADVICE = (
    "Rejoinder can't open its window: {cause}\n"
    "The README lists what Qt needs. `rejoinder chat` works without a window."
)


def no_window(cause: str) -> str:
    return _ADVICE.format(cause=cause)


def missing_display(platform: str, environment: Mapping[str, str]) -> str | None:
    """Why no window can appear, before Qt tries; None when it may."""
    if platform != "linux" or environment.get("QT_QPA_PLATFORM"):
        return None
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return None
    return "there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set)."
