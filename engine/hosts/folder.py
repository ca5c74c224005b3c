"""A model folder as each host sees it, and the comparison of two hosts.

All stages must load the same model. Two folders are taken as equal if config.json and the index of
the weights have the same hash and each weight file that both have is of the same size. Hashing the
weights would read hundreds of gigabytes. A host may lack the files of other stages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.plain_file import read_plain

_CONFIG = "config.json"
_INDEX = "model.safetensors.index.json"
_WEIGHTS = "*.safetensors"
_MAX_BYTES = 64_000_000


def describe(path: Path) -> dict[str, Any]:
    """Return the hashes and the file sizes of a model folder, as JSON values."""
    try:
        sizes = {file.name: file.stat().st_size for file in sorted(path.glob(_WEIGHTS))}
    except OSError:
        sizes = {}
    return {
        "config": _hash(path / _CONFIG),
        "index": _hash(path / _INDEX),
        "sizes": sizes,
    }


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(read_plain(path, _MAX_BYTES)).hexdigest()
    except OSError:
        return ""


def difference(own: Mapping[str, Any], other: Mapping[str, Any], path: str) -> str:
    """Return how the folder of another host differs from the own one, as a sentence, or ""."""
    if not other["config"]:
        return f"It has no model in {path}."
    if own["config"] != other["config"]:
        return f"Its {_CONFIG} in {path} is another one."
    if other["index"] and own["index"] != other["index"]:
        return f"Its {_INDEX} in {path} is another one."
    sizes: Mapping[str, int] = own["sizes"]
    for name, size in other["sizes"].items():
        if name in sizes and sizes[name] != size:
            return f"Its {name} in {path} has {size:,} bytes instead of {sizes[name]:,}."
    if not other["sizes"]:
        return f"It has no weights in {path}."
    return ""
