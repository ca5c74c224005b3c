"""Texts of the settings page about a model on several Macs."""

from __future__ import annotations

from typing import Final

PURPOSE: Final = (
    "A model that is too large for one Mac can be split across several. Each of them needs Rejoinder"
    " and the model in the same folder, and SSH without a password."
)
HOSTS_FILE: Final = "Hosts file"
NO_FILE: Final = "None chosen"
CHOOSE: Final = "Choose…"
HOSTS_FILES: Final = "Hosts files (*.json);;All files (*)"
FILE_NOTE: Final = "Create this file with mlx.distributed_config. This Mac must be its first host."
MACS: Final = "Macs"
NO_MACS: Final = "Choose a hosts file first"
CHECK: Final = "Check"
CHECK_NAME: Final = "Check the Macs of the hosts file"
CHECKING: Final = "Checking…"
NOT_CHECKED: Final = "Not checked"
SPLIT: Final = "Layers"
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
    return "1 layer" if count == 1 else f"{count} layers"


def ready(*, layers: str, size: str) -> str:
    return f"Ready · {layers} · {size}"


def checked(*, memory: str, link: str) -> str:
    return f"Ready · {memory} · {link}" if link else f"Ready · {memory}"


def link(*, kind: str, round_trip: str) -> str:
    return f"{kind} {round_trip}" if kind else round_trip


def split_name(parts: str) -> str:
    """Return the spoken text of the bar."""
    return f"Layers of the model: {parts}"


def macs(count: int) -> str:
    return f"{count} Macs"


def ready_on(count: int) -> str:
    return f"Ready · {macs(count)}"
