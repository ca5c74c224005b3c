"""Small, complete model folders. A test can remove or change one file and check the consequence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from safetensors.numpy import save

CONFIG: Final[Mapping[str, object]] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "max_position_embeddings": 4096,
}


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def write_weights(path: Path, names: tuple[str, ...] = ("a.weight",), num_values: int = 64) -> None:
    path.write_bytes(save({name: np.zeros((2, num_values // 2), np.float16) for name in names}))


def make_model(
    folder: Path, changes: Mapping[str, object] = MappingProxyType({}), *, num_files: int = 1
) -> Path:
    """Write a chat model's folder, with `changes` applied to its config.json. Return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", {**CONFIG, **changes})
    (folder / "tokenizer.json").write_text('{"model": {}}\n')
    write_json(folder / "tokenizer_config.json", {"chat_template": "{{ messages }}"})
    if num_files == 1:
        write_weights(folder / "model.safetensors")
        return folder
    files = [f"model-{i:05d}-of-{num_files:05d}.safetensors" for i in range(1, num_files + 1)]
    for index, name in enumerate(files):
        write_weights(folder / name, (f"{index}.weight",))
    weight_map = {f"{index}.weight": name for index, name in enumerate(files)}
    write_json(folder / "model.safetensors.index.json", {"weight_map": weight_map})
    return folder


def make_repository(hub: Path, name: str, revision: str = "abc123", *, main: bool = True) -> Path:
    """Write a model in the layout of the Hugging Face cache. Return the folder of its snapshot.

    The snapshot's files are links to blobs. If `main` is False, the repository has no refs/main.
    """
    repository = hub / f"models--{name.replace('/', '--')}"
    snapshot = make_model(repository / "snapshots" / revision)
    blobs = repository / "blobs"
    blobs.mkdir(exist_ok=True)
    for file in list(snapshot.iterdir()):
        blob = file.rename(blobs / f"{revision}-{file.name}")
        file.symlink_to(Path("..", "..", "blobs", blob.name))
    if main:
        refs = repository / "refs"
        refs.mkdir(exist_ok=True)
        (refs / "main").write_text(revision)
    return snapshot
