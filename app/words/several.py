"""Texts of the settings page about a model on several Macs."""

from __future__ import annotations

from typing import Final

TITLE: Final = "Several Macs"
PURPOSE: Final = "A model that is too large for one Mac can run on several together."
NEEDS: Final = (
    "Each Mac needs Rejoinder, the model in the same folder, and Remote Login without a password."
)
HOSTS_FILE: Final = "List of Macs"
NO_FILE: Final = "None chosen"
CHOOSE: Final = "Choose…"
HOSTS_FILES: Final = "Lists of Macs (*.json);;All files (*)"
FILE_NOTE: Final = (
    "Create the list in Terminal, with the command mlx.distributed_config. This Mac must come first"
    " in it."
)
MACS: Final = "Macs"
NO_MACS: Final = "Choose a list of Macs first"
CHECK: Final = "Check"
CHECK_NAME: Final = "Check the Macs of the list"
CHECKING: Final = "Checking…"
NOT_CHECKED: Final = "Not checked"
SPLIT: Final = "Parts"
START: Final = "Start"
START_NAME: Final = "Start the model on several Macs"
STOP: Final = "Stop"
STOP_NAME: Final = "Stop, and run the model on this Mac only"
LIMITS_NOTE: Final = (
    "On several Macs, chats are not kept on disk and Faster Answers is off. The link"
    " between the Macs is not encrypted: connect them with a cable."
)
START_AGAIN: Final = "Start Again"
STARTING: Final = "Starting"
CONNECTING: Final = "Connecting"


def loading(*, percent: str, share: str) -> str:
    return f"Loading {percent} · {share}"


def layers(count: int) -> str:
    """Return how many layers a Mac holds. A user reads of parts of the model."""
    return "1 part" if count == 1 else f"{count} parts"


def ready(*, layers: str, size: str) -> str:
    return f"Ready · {layers} · {size}"


def checked(*, memory: str, link: str) -> str:
    return f"Ready · {memory} · {link}" if link else f"Ready · {memory}"


def link(*, kind: str, round_trip: str) -> str:
    return f"{kind} {round_trip}" if kind else round_trip


def split_name(parts: str) -> str:
    """Return the spoken text of the bar."""
    return f"Parts of the model: {parts}"


def macs(count: int) -> str:
    return f"{count} Macs"


def ready_on(count: int) -> str:
    return f"Ready · {macs(count)}"
