"""Make a smaller copy of a model in full precision, in a process of its own. No mlx here.

The process (engine/models/copying.py) quantises the weights with mlx-lm's own conversion. It writes
into a hidden folder, which becomes the copy when it is complete and its files have been inspected.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from engine.catalog.card import ModelCard, ModelSource
from engine.catalog.inspect import read_card
from engine.errors import ModelFolderError
from engine.new_folder import locked, new_folder, numbered, remove_leftovers, require_space
from engine.worker.child import ChildEndedError, ChildProcess
from engine.worker.frames import Frame

COPY_BITS: Final = (4, 6, 8)  # bits per weight that a copy can have
# Bits per weight from which on weights count as full precision.
_FULL_BITS: Final = 16
# Seconds for one step: opening the model, or a few tensors and the file that they complete.
_STEP_S: Final = 600.0
# Share of the machine's memory that the process may use.
_MEMORY_SHARE: Final = 0.8
_SMALL_FILES_BYTES: Final = 100_000_000  # at most, of all files except the weights
# Names of the files that the copy shares with the model. The process writes all others.
_COPIED: Final = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "generation_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
)
_PRECISION: Final = re.compile(r"[-_.](bf16|fp16|f16|fp32|f32|16bit)$", re.IGNORECASE)


class CopyError(ModelFolderError):
    """A smaller copy of a model cannot be made."""

    title = "No smaller copy can be made of this model."
    advice = "Choose a model in full precision (16-bit)."


def make_copy(
    card: ModelCard, bits: int, models_dir: Path, progress: Callable[[float], None]
) -> Path:
    """Make a quantised copy of a model. Return its folder.

    If an error is raised, by `progress` too, nothing of the copy is left.

    Args:
        card: the model, in full precision.
        bits: bits per weight, one of COPY_BITS.
        models_dir: the folder that contains the app's own models.
        progress: called with the finished share, 0 to 1.

    Raises:
        CopyError: the model is quantised already, or cannot be quantised.
        ModelFolderError: the model cannot be loaded.
        DiskError: there is no room for the copy, or it cannot be written.
    """
    if card.problem is not None:
        raise ModelFolderError.of(card.problem)
    if card.bits < _FULL_BITS:
        raise CopyError(f"{card.title} is already quantized, to {card.bits:.2g} bits.")
    if bits not in COPY_BITS:
        raise CopyError(f"{bits} bits are not possible.", advice="Choose 4, 6 or 8 bits.")
    remove_leftovers(models_dir)
    name, number = f"{_PRECISION.sub('', card.name)}-{bits}bit", 1
    while (models_dir / numbered(name, number)).exists():
        number += 1
    destination = models_dir / numbered(name, number)
    with locked(destination), new_folder(destination) as folder:
        _write_copy(card, bits, folder, progress)
        made = read_card(folder, ModelSource.FOLDER)
        if made.problem is not None:
            raise CopyError(f"The copy would be broken. {made.problem.cause}")
    return destination


def _write_copy(
    card: ModelCard, bits: int, folder: Path, progress: Callable[[float], None]
) -> None:
    child = ChildProcess("engine.models.copying")
    max_bytes = int(psutil.virtual_memory().total * _MEMORY_SHARE)

    def call(**header: object) -> dict[str, int]:
        try:
            answer = child.exchange(Frame(header), limit_s=_STEP_S, max_bytes=max_bytes).header
        except ChildEndedError as error:
            raise CopyError(str(error), advice="Free some memory, then try again.") from error
        if "error" in answer:
            raise CopyError(str(answer["error"]))
        return {name: value for name, value in answer.items() if isinstance(value, int)}

    try:
        total = call(open=str(card.path), folder=str(folder), bits=bits)["total_bytes"]
        require_space(folder, total + _SMALL_FILES_BYTES)
        done = 0
        while done < total:
            progress(done / total)
            done = call(step=True)["done_bytes"]
    finally:
        child.close()
    _copy_files(card.path, folder)
    progress(1.0)


def _copy_files(source: Path, folder: Path) -> None:
    """Copy the tokenizer, the chat template and the settings. Their sizes have been checked."""
    for name in _COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
