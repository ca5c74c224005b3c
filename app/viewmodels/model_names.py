"""A readable name for a model of the Hub, made from the id of its repository. No Qt."""

from __future__ import annotations

import re
from typing import Final

# Parts of a repository's name that the row of a model states elsewhere: the format, and the bits.
_FORMAT: Final = re.compile(r"mlx|gguf|\d{1,2}-?bits?|[qi]q?\d(?:_\w+)*", re.IGNORECASE)
_BITS_IN_TWO: Final = re.compile(r"(?<=-)(\d{1,2})-bit(?=-|$)", re.IGNORECASE)


def readable_name(repo_id: str) -> str:
    """Return a name such as "Qwen3.5 9B" for "mlx-community/Qwen3.5-9B-MLX-4bit"."""
    name = repo_id.rpartition("/")[2]
    parts = _BITS_IN_TWO.sub(r"\1bit", name).replace("_", " ").split("-")
    kept = [part for part in parts if part and not _FORMAT.fullmatch(part.replace(" ", "_"))]
    return " ".join(kept) or name
