"""Ollama's lists of models: GET /api/tags and /api/ps, POST /api/show. There is one model, the loaded one.

Source: Ollama API reference, https://docs.ollama.com/api. VS Code reads the length of the context from
`model_info`, and whether tools can be used from `capabilities`.
"""

from __future__ import annotations

import hashlib

from engine.events import ModelFacts

# The version of Ollama whose interface the server has. VS Code needs 0.6.4 or later and no suffix, Codex
# needs 0.13.4 or later for the Responses API. 0.14.0 was the first with Anthropic's messages.
VERSION = {"version": "0.14.0"}
_NO_TIME = "1970-01-01T00:00:00Z"  # the time is not known


def tags(model: ModelFacts | None) -> dict[str, object]:
    """Return the list of models."""
    return {"models": [] if model is None else [_listed(model)]}


def running(model: ModelFacts | None) -> dict[str, object]:
    """Return the list of loaded models."""
    if model is None:
        return {"models": []}
    more = {
        "size_vram": model.weight_bytes,
        "context_length": model.context_len,
        "expires_at": "9999-12-31T23:59:59Z",  # it is not unloaded after a time that Ollama knows
    }
    return {"models": [{**_listed(model), **more}]}


def show(model: ModelFacts) -> dict[str, object]:
    """Return what the model can do."""
    kind = model.model_type
    abilities = {"completion": True, "tools": model.can_use_tools, "thinking": model.has_thinking}
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


def _listed(model: ModelFacts) -> dict[str, object]:
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": _NO_TIME,
        "size": model.weight_bytes,
        "digest": hashlib.sha256(model.path.encode()).hexdigest(),
        "details": _details(model),
    }


def _details(model: ModelFacts) -> dict[str, object]:
    kind = model.model_type
    return {
        "parent_model": "",
        "format": "mlx",
        "family": kind,
        "families": [kind],
        "parameter_size": "",
        "quantization_level": "",
    }
