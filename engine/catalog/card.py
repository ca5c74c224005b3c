"""What the picker knows of a model folder without loading it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from engine.types import Problem

STARTER_NAME: Final = "SmolLM2 135M"
STARTER_FOLDER: Final = "SmolLM2-135M-Instruct"


class ModelSource(StrEnum):
    """Where a model folder was found."""

    STARTER = "Demo"
    HF_CACHE = "HF cache"
    LM_STUDIO = "LM Studio"
    FOLDER = "Folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """One model folder on this machine. problem is None when it can be loaded."""

    path: Path
    name: str
    source: ModelSource
    model_type: str
    num_parameters: int  # estimated from the weights' bytes and width
    bits: float  # per weight, 16 when not quantised
    size_bytes: int
    context_len: int
    text_only: bool  # the model also advertises images or sound, which are not used
    hybrid: bool  # has recurrent layers, as far as config.json tells
    problem: Problem | None = None

    @property
    def usable(self) -> bool:
        return self.problem is None

    @property
    def is_starter(self) -> bool:
        return self.source is ModelSource.STARTER

    def is_at(self, path: str) -> bool:
        """Return whether this model is or was there: the starter's folder moves with its app."""
        return str(self.path) == path or (self.is_starter and Path(path).name == STARTER_FOLDER)
