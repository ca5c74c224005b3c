"""Judge if a model fits into this machine's memory, and how fast it may answer.

This module only compares numbers. `engine/fitting.py` measures them, without reading any weight.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from engine.config import EngineConfig
from engine.errors import BugError

CHAT_LEN: Final = 8_000  # number of tokens of the conversations that a fit counts
# K/V buffers have an eighth more room than tokens, so that a chat can grow without a copy.
_ROOM: Final = 9 / 8
# States of one conversation: the live one, and the newest resume point.
_NUM_STATES: Final = 2
# Share of the published bandwidth that decoding reaches. llama.cpp's table of Apple chips
# (https://github.com/ggml-org/llama.cpp/discussions/4167, 7B in Q4_0) has 0.79 for the M1, 0.63 for
# the M2 Max and 0.45 for the M2 Ultra.
_REACHED: Final = 0.6
_CHIPS_FILE: Final = Path(__file__).parents[2] / "resources" / "chips.toml"


class FitVerdict(StrEnum):
    """The verdict on a model and this machine's memory."""

    FITS = "fits"
    TIGHT = "tight"  # it runs, but without the head room: other apps lose memory
    TOO_LARGE = "too large"  # one chat of CHAT_LEN tokens would be refused


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMemory:
    """The memory that a model will take once it is loaded, in bytes."""

    weight_bytes: int
    # Bytes of weights that one token of an answer reads: less than all, if there are experts.
    read_bytes: int
    kv_bytes_per_token: int  # K/V of all layers that keep every token
    # State of the other layers: recurrent, convolution, and sliding windows (counted as full).
    snapshot_bytes: int

    def chat_bytes(self, num_tokens: int) -> int:
        """Return the bytes of the cached state of one conversation."""
        kv_bytes = int(num_tokens * _ROOM) * self.kv_bytes_per_token
        return kv_bytes + _NUM_STATES * self.snapshot_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The device that runs models."""

    memory_bytes: int  # bytes that models and cached state may take together
    chip: str  # such as "Apple M3 Max"; "" if it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The verdict on a model, and the numbers behind it."""

    verdict: FitVerdict
    memory: ModelMemory
    needed_bytes: int  # bytes for the model, one pass and one chat of CHAT_LEN tokens
    device_bytes: int  # bytes that this machine can give
    num_chats: int  # chats of CHAT_LEN tokens that can stay cached at the same time
    tokens_per_s: float | None  # an estimate; None if the chip is not known

    def can_hold(self, num_tokens: int) -> bool:
        """Return True if the machine can hold the model and one conversation of num_tokens."""
        more = self.memory.chat_bytes(num_tokens) - self.memory.chat_bytes(CHAT_LEN)
        return self.needed_bytes + more <= self.device_bytes


def judge(memory: ModelMemory, device: Device, config: EngineConfig) -> Fit:
    """Return the verdict on a model.

    The budget of the cache is computed as in engine/memory.py. A chat is refused on the same terms
    as in engine/runner/request_memory.py.
    """
    chat_bytes = memory.chat_bytes(CHAT_LEN)
    least_bytes = memory.weight_bytes + config.pass_bytes + chat_bytes
    budget = device.memory_bytes - memory.weight_bytes - config.head_room_bytes
    num_chats = max(0, budget) // max(1, chat_bytes)
    if least_bytes > device.memory_bytes:
        verdict = FitVerdict.TOO_LARGE
    elif num_chats < 1:
        verdict = FitVerdict.TIGHT
    else:
        verdict = FitVerdict.FITS
    return Fit(
        verdict=verdict,
        memory=memory,
        needed_bytes=least_bytes,
        device_bytes=device.memory_bytes,
        num_chats=num_chats,
        tokens_per_s=_tokens_per_s(memory, device),
    )


def _tokens_per_s(memory: ModelMemory, device: Device) -> float | None:
    bandwidth = _bandwidths().get(device.chip)
    if bandwidth is None or not memory.read_bytes:
        return None
    # A token also reads the K/V of all tokens before it. The estimate is for half of a chat.
    kv_bytes = CHAT_LEN // 2 * memory.kv_bytes_per_token
    return _REACHED * bandwidth / (memory.read_bytes + kv_bytes + memory.snapshot_bytes)


@functools.cache
def _bandwidths() -> Mapping[str, int]:
    """Return the memory bandwidth in bytes per second, by the name of the chip."""
    try:
        content = tomllib.loads(_CHIPS_FILE.read_text(encoding="utf-8"))
        return {str(row["name"]): int(row["bandwidth"]) for row in content["chips"]}
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise BugError(f"{_CHIPS_FILE} can’t be used: {error}.") from error
