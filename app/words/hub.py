"""Texts about the search and the download of models on Hugging Face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NOTHING_FOUND: Final = "No MLX or GGUF model has these words in its name."
GATED: Final = "access on request"
KEPT_SO_FAR: Final = "What has arrived is kept: the same command goes on from there."
PROCESS_ENDED: Final = "Its process ended."
SEARCH_FAILED: Final = "Hugging Face could not be searched."
DOWNLOAD_FAILED: Final = "The model could not be downloaded."

_RESUMES: Final = "The download goes on where it stopped as soon as it can."
_TRY_LATER: Final = "Try again in a while. What has arrived is kept."

# Cause and advice of each kind of failure (app.hub.failures.FailureKind).
SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "offline": ("There is no connection to Hugging Face.", _RESUMES),
    "proxy": (
        "The proxy of this network refuses the connection.",
        "Check the proxy in the system’s network settings.",
    ),
    "slow": ("Hugging Face did not answer in time.", _RESUMES),
    "cut": ("The connection ended before the file was complete.", _RESUMES),
    "server": ("Hugging Face has a problem of its own.", _TRY_LATER),
    "busy": ("Hugging Face asks to wait, because it had many requests.", _TRY_LATER),
    "token": (
        "Hugging Face does not accept the access token.",
        "Set another token: in a terminal, hf auth login.",
    ),
    "forbidden": (
        "The access token may not read this model.",
        "Use a token of an account that has access.",
    ),
    "gated": ("The owner of this model gives access on request.", ""),
    "not_found": (
        "There is no such model on Hugging Face, or it is private.",
        "Check the name, or set an access token that may read it.",
    ),
    "no_model": (
        "This repository has no weights that Rejoinder can use.",
        "Look for an MLX or a GGUF version of the model.",
    ),
    "disk_full": ("The disk is full.", "Free some space, then resume. What has arrived is kept."),
    "damaged": ("", "Try again later, or choose another model."),
    "file": ("A file could not be written.", "Check the disk and the folder’s permissions."),
    "other": ("The request failed.", "Try again. The details say more."),
}


def kind(*, is_mlx: bool) -> str:
    return "MLX" if is_mlx else "GGUF"


def downloads(number: int) -> str:
    """Return the downloads of a month, such as "12k downloads"."""
    shown = f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number / 1e3:.0f}k"
    return f"{number if number < 1_000 else shown} downloads"


def progress(done_bytes: int, total_bytes: int) -> str:
    share = done_bytes / max(1, total_bytes)
    return f"{share:4.0%}  {done_bytes / 1e9:.2f} of {total_bytes / 1e9:.2f} GB"


def downloaded(name: str, num_bytes: int) -> str:
    return f"{name} is complete: {num_bytes / 1e9:.2f} GB. rejoinder models lists it."


def ask_for_access(repo_id: str) -> str:
    return (
        f"Accept its terms on huggingface.co/{repo_id}, set the access token of that account with "
        "hf auth login in a terminal, then try again."
    )


def damaged(file: str) -> str:
    return f"{file} arrived damaged three times."


def needs_room(needed_bytes: int, free_bytes: int) -> str:
    return f"It needs {needed_bytes / 1e9:.1f} GB of room, and {free_bytes / 1e9:.1f} GB are free."
