"""The name of a model on screen, made from the name of its folder, file or repository.

The window and the problems of the engine name a model by its title. The command line uses the name
itself, which stands in its folders and can be typed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

_FORMATS: Final = frozenset({"mlx", "gguf"})  # the row of a model states the format elsewhere
_KEPT: Final = "\0"  # stands for a hyphen that stays; no name has this character
# An underscore, or the kind of a quantised GGUF file, such as Q4_K_M, whose underscores stay.
_UNDERSCORE: Final = re.compile(r"(?<![^\W_])(i?q\d\w*)|_", re.IGNORECASE)
_BITS: Final = re.compile(r"(?<![^ -])(\d{1,2})[ -]?bits?(?![^ -])", re.IGNORECASE)
# The hyphen in 35B-A3B: the number of all parameters, and of those in use for one token.
_ACTIVE: Final = re.compile(r"(?<=\db)-(?=a\d)", re.IGNORECASE)


@lru_cache(maxsize=512)
def model_title(name: str) -> str:
    """Return a title such as "Qwen3.5 9B 4-bit" for "mlx-community/Qwen3.5-9B-MLX-4bit".

    The title of a title is the same title. Ollama's names, such as "qwen3:4b", stay as they are.
    """
    if ":" in name:
        return name
    last = name.rpartition("/")[2]
    text = _UNDERSCORE.sub(lambda found: found[1] or " ", last)
    text = _ACTIVE.sub(_KEPT, _BITS.sub(rf"\1{_KEPT}bit", text))
    kept = [part for part in text.replace("-", " ").split() if part.lower() not in _FORMATS]
    return " ".join(kept).replace(_KEPT, "-") or last


def folder_name(path: Path) -> str:
    """Return the name of the model in a folder.

    In the Hugging Face cache, this is the repository's name without its owner. Elsewhere it is the
    folder's name.
    """
    if path.parent.name == "snapshots":
        return path.parent.parent.name.rpartition("--")[2]
    return path.name


def folder_title(path: Path) -> str:
    return model_title(folder_name(path))
