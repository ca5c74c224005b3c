"""Stores of other programs with models that have no weights: Ollama's store, GGUF files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def write_gguf(path: Path, num_bytes: int) -> Path:
    """Write a file that begins as a GGUF file does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF" + bytes(num_bytes - 4))
    return path


def add_ollama_model(store: Path, name: str, tag: str, *, weights: bytes) -> Path:
    """Add a model to Ollama's store: its blobs and its manifest. Return the manifest."""
    kinds = {"model": weights, "template": b"{{ .Prompt }}", "params": b"{}"}
    layers = [
        {
            "mediaType": f"application/vnd.ollama.image.{kind}",
            "digest": f"sha256:{_add_blob(store, content)}",
            "size": len(content),
        }
        for kind, content in kinds.items()
    ]
    config = {"mediaType": "application/json", "digest": f"sha256:{_add_blob(store, b'{ }')}"}
    manifest = store / "manifests" / "registry.ollama.ai" / name / tag
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "config": config, "layers": layers}))
    return manifest


def _add_blob(store: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    blob = store / "blobs" / f"sha256-{digest}"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    return digest
