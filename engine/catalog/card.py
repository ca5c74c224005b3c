"""The description of a model folder, which the model picker shows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from engine.model_titles import model_title
from engine.problem import Problem

STARTER_FOLDER: Final = "SmolLM2-135M-Instruct"


class ModelSource(StrEnum):
    """The kind of place where a model folder was found. The values are shown on screen."""

    STARTER = "Demo"
    HF_CACHE = "Hugging Face"
    LM_STUDIO = "LM Studio"
    OLLAMA = "Ollama"
    FOLDER = "Folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """The description of one model folder, made from its files without loading the model."""

    path: Path
    name: str  # on the disk and the command line; `title` is the name on screen
    source: ModelSource
    model_type: str
    # Number of parameters, computed from the tensor shapes in the weight files' headers.
    num_parameters: int
    bits: float  # bits per weight; 16 or 32 if the weights are not quantised
    size_bytes: int  # bytes of all weight files
    context_len: int  # number of tokens; 0 if config.json states no limit
    # True if the model also accepts pictures or sound, and the app uses only its text input.
    text_only: bool
    hybrid: bool  # True if config.json says that some layers are recurrent
    sees: bool = False  # True if the app can give pictures to the model
    # The reason why the model cannot be loaded; None if it can be loaded.
    problem: Problem | None = None

    @property
    def title(self) -> str:
        """The name on screen."""
        return model_title(self.name)

    @property
    def usable(self) -> bool:
        return self.problem is None

    @property
    def is_starter(self) -> bool:
        return self.source is ModelSource.STARTER

    def is_at(self, path: str) -> bool:
        """Return True if path is this model's folder.

        The starter model's folder moves together with the app, so for the starter model only the
        name of the folder must match. In the Hub's cache each revision of a model has a folder of
        its own beside the others.
        """
        other = Path(path)
        is_revision = other.parent.name == "snapshots" and other.parent == self.path.parent
        return (
            str(self.path) == path
            or is_revision
            or (self.is_starter and other.name == STARTER_FOLDER)
        )
