"""Texts about the search and the download of models on Hugging Face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.words import computer, units

# Texts of the Models window.
TITLE: Final = "Models"
RECOMMENDED: Final = "Recommended"
SEARCH: Final = "Search"
LOCAL: Final = f"On {computer.IN_TITLES}"
DOWNLOADS: Final = "Downloads"
SEARCH_FIELD: Final = "A name, such as Qwen3.5 9B, or an address"
LOCAL_NOTE: Final = (
    "Models that Hugging Face, LM Studio and Ollama keep here, and models in your own folders."
)
NO_DOWNLOADS: Final = "Nothing is being downloaded."
NO_LOCAL: Final = "There is no model here yet."
SEARCHING: Final = "Searching…"
CHECKING: Final = "Asking for its size…"
CHECKING_FIT: Final = "Checking if it fits…"
ON_THIS_COMPUTER: Final = f"On {computer.THIS_COMPUTER}"
# Purpose and rank of a recommended model.
RANKS: Final[Mapping[tuple[str, str], str]] = {
    ("chat", "best"): f"Best for {computer.THIS_COMPUTER}",
    ("chat", "balanced"): "Balanced",
    ("chat", "fast"): "Fast",
    ("code", "best"): "Best for code",
    ("code", "balanced"): "Balanced, for code",
    ("code", "fast"): "Fast, for code",
}
STATES: Final[Mapping[str, str]] = {
    "queued": "Waiting",
    "running": "Starting",
    "waiting": "Waiting",
    "paused": "Paused",
    "failed": "Failed",
    "done": "Complete",
}
DETAILS: Final = "Details"
ASK_AGAIN: Final = "Try Again"
DOWNLOAD: Final = "Download"
CHOOSE_FILE: Final = "Download…"
PAUSE: Final = "Pause"
RESUME: Final = "Resume"
TRY_NOW: Final = "Try Now"
CANCEL: Final = "Cancel"
CLEAR: Final = "Clear"
USE: Final = "Use"
UNLOAD: Final = "Unload"
DEFAULTS: Final = "Defaults…"
MORE: Final = "More"
REVEAL: Final = "Show Folder"
UNUSABLE: Final = "Can’t be loaded"
INCOMPLETE: Final = "Files of it are missing. Download it again, or remove it."
REMOVE: Final = "Remove…"
# Reasons why a model cannot be removed, shown behind the verb.
IS_A_PART: Final = "a part of Rejoinder"
IS_BEING_LOADED: Final = "it is being loaded"
IS_ANSWERING: Final = "it is answering"
STOP_FIRST: Final = "It is answering. Stop the answer, then try again."
UNLOADED_FIRST: Final = "It is in use now, and is unloaded first."
TO_TRASH: Final = "Move to Trash"
DELETE_NOW: Final = "Delete Immediately"
NO_UNDO: Final = "You can’t undo this."
KEEP: Final = "Keep"

# Problems with the access token and the address of a mirror.
NOT_SET: Final = "This can’t be used."
NO_ACCESS_WORD: Final = "A token is a single word, which usually begins with hf_."
ACCESS_PLACE: Final = "Copy it from huggingface.co/settings/tokens."
NO_ADDRESS: Final = "The address of a mirror begins with https:// and names a host."
ADDRESS_FORM: Final = "Enter one such as https://hf-mirror.com, or nothing."
GIVE_ID: Final = "Give the id of a repository, such as mlx-community/Qwen3.5-4B-MLX-4bit."

GGUF_NOT_COPIED: Final = "No smaller copy can be made of a GGUF file, which is quantized already."
NOTHING_FOUND: Final = "No model that Rejoinder can use has these words in its name."
GATED: Final = "its owner must allow it"
KEPT_SO_FAR: Final = "What has arrived is kept: the same command continues from there."
PROCESS_ENDED: Final = "Its process ended."
ASKING_FAILED: Final = "The request to {hub} failed."
HUGGING_FACE: Final = "Hugging Face"
DOWNLOAD_FAILED: Final = "The model could not be downloaded."
RESUMES: Final = "The download resumes as soon as it can."

_CHECK_CONNECTION: Final = "Check the network, then try again."
_TRY_LATER: Final = "Try again in a while."
_CHOOSE_ANOTHER: Final = "Try other words or another model."

# Cause and advice of each kind of failure (app.hub.failures.FailureKind). {hub}: the server.
SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "offline": ("There is no connection to {hub}.", _CHECK_CONNECTION),
    "proxy": (
        "The proxy of this network refuses the connection.",
        "Check the proxy in the system’s network settings.",
    ),
    "slow": ("{hub} did not answer in time.", _CHECK_CONNECTION),
    "cut": ("The connection broke before everything had arrived.", _CHECK_CONNECTION),
    "server": ("{hub} has a problem right now.", _TRY_LATER),
    "busy": ("{hub} is busy.", _TRY_LATER),
    "token": (
        "{hub} does not accept the access token.",
        "Set another token in Settings, under Models.",
    ),
    "forbidden": (
        "{hub} does not allow access to this model.",
        "Set the access token of an account that has access in Settings, under Models.",
    ),
    "gated": ("The owner of this model gives access on request.", ""),
    "not_found": (
        "{hub} has no such model, version or file, or it is private.",
        "Check the name, or set an access token that may read it.",
    ),
    "no_model": (
        "It has no files that Rejoinder can use.",
        "Look for an MLX or a GGUF version of the model.",
    ),
    "disk_full": ("The disk is full.", "Free some space, then resume. What has arrived is kept."),
    "damaged": ("", "Try again later, or choose another model."),
    "file": ("A file could not be written.", "Check the disk and the folder’s permissions."),
    "link": ("", "Replace the link with a folder, then try again."),
    "answer": (
        "The answer of {hub} cannot be used.",
        "Try again later. If a mirror is set in Settings, under Models, check its address.",
    ),
    "long": ("The answer of {hub} is longer than Rejoinder accepts.", _CHOOSE_ANOTHER),
    "name": ("", "Choose another model."),
    "memory": ("The request took too much memory, so it was ended.", _CHOOSE_ANOTHER),
    "other": ("The request failed.", "Try again. Details has more."),
}


def joined(*parts: str) -> str:
    """Return the parts of a description that are not empty, such as "9B · 4-bit"."""
    return " · ".join(part for part in parts if part)


def lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def spaced(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def copied(name: str, place: str) -> str:
    return f"{name} is complete: {place}"


def search_note(host: str) -> str:
    return (
        f"A search asks {host} for models, and for the sizes of those on show. Nothing else leaves "
        f"{computer.THIS_COMPUTER}."
    )


def recommended_note(host: str) -> str:
    return (
        f"Models that suit the memory of {computer.THIS_COMPUTER} come first. A download comes from"
        f" {host}, into a folder that other apps use too."
    )


def token_not_stored(why: str | None) -> str:
    """Return the sentence; `why` is the operating system's reason, without a full stop."""
    return f"The access token could not be stored: {why}."


def fetching(download: str, num_more: int) -> str:
    """Return the line about downloads in the model picker. `download` describes the first one."""
    return joined(f"Downloading {download}", f"{num_more} more" if num_more else "")


def fetching_short(download: str, num_more: int) -> str:
    """Return the line about downloads in the sidebar. `download` describes the first one."""
    return joined(f"↓ {download}", f"{num_more} more" if num_more else "")


def failed_line(name: str) -> str:
    """Return the line about a download that has failed."""
    return f"{name} could not be downloaded"


def in_one(cause: str, advice: str) -> str:
    """Return cause and advice as one sentence. Both are sentences; the advice may be empty."""
    end = f"; {advice[:1].lower()}{advice[1:]}" if advice else "."
    return f"{cause.removesuffix('.')}{end}"


def fit_of(verdict: str, speed: str, file: str = "") -> str:
    """Return the sentence about the fit of a model, or of one file of it. `speed` may be empty."""
    fit = "; ".join(part for part in (verdict, speed) if part)
    return f"{file}: {fit}." if file else f"{fit}."


def for_memory(gigabytes: int) -> str:
    return f"For {gigabytes} GB of memory"


def make_copy(bits: int) -> str:
    return f"Make {'an' if bits == 8 else 'a'} {bits}-bit Copy"


def copying(bits: int, percent: str) -> str:
    return f"Making {'an' if bits == 8 else 'a'} {bits}-bit copy: {percent}"


def bits(number: str) -> str:
    return f"{number}-bit" if number else ""


def rate(size: str) -> str:
    """Return the text for the bytes of a second, such as "48 MB/s"."""
    return f"{size}/s"


def left(duration: str) -> str:
    return f"{duration} left"


def action_on(action: str, title: str) -> str:
    """Return the name of a row's button for screen readers."""
    return f"{action} {title}"


def kept(verb: str, reason: str) -> str:
    """Return the text of a menu entry that cannot be chosen. reason: one of those above."""
    return f"{verb} ({reason})"


def ask_to_remove(name: str) -> str:
    return f"Move {name} to the Trash?"


def ask_to_delete(name: str) -> str:
    """Return the question after the Trash has refused the files of a model."""
    return f"The Trash can’t take {name}. Delete it immediately?"


def frees(size: str) -> str:
    return f"Emptying the Trash frees {size}."


def frees_now(size: str) -> str:
    return f"This frees {size}."


def in_question(title: str) -> str:
    """Return a chat's title in quotation marks, cut to a length that leaves room for others."""
    return f"“{title if len(title) <= 40 else title[:39].rstrip() + '…'}”"


def answered_chats(number: int, titles: tuple[str, ...]) -> str:
    """Return the sentence about the chats that a model has answered.

    Args:
        number: their number.
        titles: the first titles, in quotation marks.
    """
    chats = "1 chat was" if number == 1 else f"{number:,} chats were"
    more = number - len(titles)
    listed = (*titles, *((f"{more:,} more",) if more else ()))
    end = "It stays" if number == 1 else "They stay"
    return (
        f"{chats} answered by it: {', '.join(listed)}. {end}, and another model can continue "
        f"{'it' if number == 1 else 'them'}."
    )


def updated(days: str) -> str:
    """Return the text for the last change of a model, such as "updated 3 weeks ago"."""
    return f"updated {days}"


def importing(percent: str) -> str:
    return f"Importing {percent}"


def tries_again(seconds: str) -> str:
    """Return the state of a download that the network has stopped."""
    return f"tries again in {seconds}"


def retry(cause: str, seconds: str) -> str:
    """Return the sentence about a download that the network has stopped. `cause` is a sentence."""
    return f"{cause.removesuffix('.')}; {tries_again(seconds)}."


def complete(name: str) -> str:
    return f"{name} is ready to use."


def not_removed(name: str) -> str:
    return f"{name} could not be removed."


def kind(*, is_mlx: bool) -> str:
    return "MLX" if is_mlx else "GGUF"


def downloads(number: int) -> str:
    """Return the downloads of a month, such as "12k downloads"."""
    shown = f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number / 1e3:.0f}k"
    return f"{number if number < 1_000 else shown} downloads"


def progress(done_bytes: int, total_bytes: int) -> str:
    share = done_bytes / max(1, total_bytes)
    return f"{share:4.0%}  {done_bytes / 1e9:.2f} of {total_bytes / 1e9:.2f} GB"


def is_path(text: str) -> str:
    return f"“{text}” is not the id of a repository."


def downloaded(name: str, num_bytes: int) -> str:
    return f"{name} is complete: {num_bytes / 1e9:.2f} GB. rejoinder models lists it."


def ask_for_access(repo_id: str) -> str:
    return (
        f"Accept its terms on huggingface.co/{repo_id}, set the access token of that account in "
        "Settings, under Models, then try again."
    )


def damaged(file: str) -> str:
    return f"{file} arrived damaged three times."


def unusable_name(file: str) -> str:
    return f"A file of this model has a name that cannot be used: {file}."


def linked_folder(path: str) -> str:
    return f"A folder in the cache of models is a link to another place: {path}."


def needs_room(needed_bytes: int, free_bytes: int) -> str:
    return f"It needs {units.gigabytes(needed_bytes)}, and {units.gigabytes(free_bytes)} are free."
