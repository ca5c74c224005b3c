"""Repositories of the Hub and downloads, as frozen values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from engine.model_titles import model_title
from engine.problem import Problem

_USUAL = ("Q4_K_M", "Q4_K", "Q4_0", "Q8_0")  # quantisations, the most usual one first
_PART = "-00001-of-"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ID = re.compile(
    r"(?:[a-z0-9_][a-z0-9_.-]{0,95}/)?[a-z0-9_][a-z0-9_.-]{0,95}", re.IGNORECASE | re.ASCII
)


def printable(text: str, max_len: int) -> str:
    """Return the first max_len characters of a text of the Hub, without control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:max_len])


def is_commit(text: str) -> bool:
    """Return True if a text is the id of a commit, which is also the name of a folder."""
    return _COMMIT.fullmatch(text) is not None


def is_repo_id(text: str) -> bool:
    """Return True if a text is the id of a repository by the rules of the Hub."""
    return _ID.fullmatch(text) is not None and "--" not in text and ".." not in text


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundModel:
    """A model repository of the Hub, as a search lists it."""

    repo_id: str  # for example "mlx-community/Qwen3.5-9B-MLX-4bit"
    parameters: str = ""  # as in the repository's name, such as "9B"; "" if it has none
    bits: str = ""  # as in the repository's name, such as "4"; "" if it has none
    downloads: int = 0  # number of downloads in the last 30 days
    updated: str = ""  # ISO date of the last change
    licence: str = ""
    is_gated: bool = False  # True if the owner gives access to persons who accept terms
    is_mlx: bool = False  # True for MLX weights, False for GGUF files
    # True if the app can give pictures to the model: a search tells it by tags, details by
    # config.json
    sees: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoFile:
    """A file of a repository."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoDetails:
    """The files and the configuration of a repository at one commit."""

    found: FoundModel
    revision: str  # id of the commit
    files: tuple[RepoFile, ...]  # the files that a download fetches
    choices: tuple[RepoFile, ...] = ()  # GGUF files, of which a download fetches one
    architecture: str = ""  # of the GGUF files, as the Hub has read it; "" if unknown
    config: str = ""  # the text of config.json, "" if there is none

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weight files."""
        return sum(f.size_bytes for f in self.files if f.path.endswith(".safetensors"))


def typical_choice(choices: tuple[RepoFile, ...]) -> RepoFile | None:
    """Return the GGUF file that most people fetch, of those in one part; None if there is none."""
    single = [file for file in choices if _PART not in file.path]
    for bits in _USUAL:
        if found := next((file for file in single if bits in file.path.upper()), None):
            return found
    return min(single, key=lambda file: file.size_bytes, default=None)


class DownloadState(StrEnum):
    """The states of a download."""

    QUEUED = "queued"  # waits for the downloads before it
    RUNNING = "running"
    WAITING = "waiting"  # tries again in a while, because the network failed
    PAUSED = "paused"
    FAILED = "failed"
    DONE = "done"


UNFINISHED = frozenset({DownloadState.QUEUED, DownloadState.RUNNING, DownloadState.WAITING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A download and its progress."""

    repo_id: str
    chosen: str = ""  # the GGUF file to fetch; "" to fetch all needed files
    revision: str = ""  # id of the commit, "" until the Hub has named it
    folder: str = ""  # path of the files, "" until they are complete
    state: DownloadState = DownloadState.QUEUED
    done_bytes: int = 0
    total_bytes: int = 0  # 0 until the Hub has stated it
    bytes_per_s: float = 0.0
    num_tries: int = 0  # failed tries since the last byte arrived
    retry_at: float = 0.0  # time.monotonic() at which a waiting download is tried again
    problem: Problem | None = None  # reason why the download waits or has failed

    @property
    def key(self) -> str:
        """The key that identifies the download in the queue."""
        return f"{self.repo_id}/{self.chosen}" if self.chosen else self.repo_id

    @property
    def title(self) -> str:
        """The name of the model on screen. A chosen file has it in its name."""
        file = self.chosen.rpartition("/")[2].partition(_PART)[0].removesuffix(".gguf")
        return model_title(file or self.repo_id)

    @property
    def fraction(self) -> float:
        """The share of the bytes that are on the disk, 0 to 1."""
        return self.done_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds to the end; None if not running or if the rate is not known yet."""
        if self.state is not DownloadState.RUNNING or self.bytes_per_s <= 0 or not self.total_bytes:
            return None
        return (self.total_bytes - self.done_bytes) / self.bytes_per_s
