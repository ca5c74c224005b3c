"""Mutated weight files: bytes of a valid file that were changed, removed, repeated or cut off."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from engine.errors import EngineError
from engine.gguf.importer import import_into
from engine.gguf.reader import TensorKind
from engine.problem import Problem
from tests.fakes.gguf_writer import tiny_llama
from tests.hostile.folders import trial

_EXTREMES = (0, 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)


def mutated(content: bytes, seed: int) -> bytes:
    """Return a copy of a file with one to four random changes, most of them in its first half."""
    rng = random.Random(seed)
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = int(len(changed) * rng.random() ** 3)
        length = min(rng.choice((1, 4, 8, 100)), len(changed) - at)
        match rng.randrange(6):
            case 0:
                changed[at : at + 1] = rng.randbytes(1)
            case 1:
                changed[at : at + length] = rng.randbytes(length)
            case 2:
                changed[at : at + 8] = struct.pack("<Q", rng.choice(_EXTREMES))
            case 3:
                del changed[at : at + length]
            case 4:
                changed[at:at] = changed[at : at + length]
            case _:
                del changed[max(at, 9) :]
    return bytes(changed)


def gguf_content() -> bytes:
    """Return the bytes of a valid GGUF file."""
    return tiny_llama((TensorKind.Q4_1, TensorKind.Q6_K)).to_bytes()


def import_trial(place: Path, content: bytes) -> Problem | None:
    """Import a GGUF file in the folder `place` and ask the model. Return the problem, or None."""
    source = place / "mutated.gguf"
    source.write_bytes(content)
    try:
        folder = import_into(place / "models", source, lambda _: None)
    except EngineError as error:
        return error.problem
    return trial(folder)


def weights_trial(folder: Path, content: bytes) -> Problem | None:
    """Replace the weights of a model folder and ask the model. Return the problem, or None."""
    (folder / "model.safetensors").write_bytes(content)
    return trial(folder)
