"""Ollama's lists of models: GET /api/tags and /api/ps, POST /api/show. One model is loaded at most.

Source: Ollama API reference, https://docs.ollama.com/api. VS Code reads the length of the context
from `model_info`, and whether tools can be used from `capabilities`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from app.server.model_choice import ListedModel, listed_facts
from engine.events import ModelFacts

# The version of Ollama whose interface the server has. VS Code needs 0.6.4 or later and no suffix,
# Codex needs 0.13.4 or later for the Responses API. 0.14.0 was the first with Anthropic's messages.
VERSION = {"version": "0.14.0"}
_NO_TIME = "1970-01-01T00:00:00Z"  # the time is not known


def tags(models: Iterable[ListedModel]) -> dict[str, object]:
    """Return the list of models."""
    return {"models": [_listed(model) for model in models]}


def running(model: ModelFacts | None) -> dict[str, object]:
    """Return the list of loaded models."""
    if model is None:
        return {"models": []}
    more = {
        "size_vram": model.weight_bytes,
        "context_length": model.context_len,
        "expires_at": "9999-12-31T23:59:59Z",  # it is not unloaded after a time that Ollama knows
    }
    return {"models": [{**_listed(listed_facts(model.name, model)), **more}]}


def show(model: ListedModel, loaded: ModelFacts) -> dict[str, object]:
    """Return what a model can do. Of one that is not loaded, only the length of chats is known."""
    kind = model.model_type
    is_loaded = model.path == loaded.path
    abilities = {
        "completion": True,
        "tools": is_loaded and loaded.can_use_tools,
        "thinking": is_loaded and loaded.has_thinking,
    }
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "license": "",
        "modified_at": _NO_TIME,
        "details": _details(model),
        "model_info": {
            "general.architecture": kind,
            "general.basename": model.name,
            f"{kind}.context_length": model.context_len,
        },
        "capabilities": [name for name, is_there in abilities.items() if is_there],
    }


def _listed(model: ListedModel) -> dict[str, object]:
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": _NO_TIME,
        "size": model.weight_bytes,
        "digest": hashlib.sha256(model.path.encode()).hexdigest(),
        "details": _details(model),
    }


def _details(model: ListedModel) -> dict[str, object]:
    kind = model.model_type
    return {
        "parent_model": "",
        "format": "mlx",
        "family": kind,
        "families": [kind],
        "parameter_size": "",
        "quantization_level": "",
    }
