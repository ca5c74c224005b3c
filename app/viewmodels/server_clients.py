"""Settings for programs that use the local server, ready to be copied."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

_NO_KEY = "none"  # many programs refuse to start without a key


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of one program."""

    program: str
    place: str  # the file or the shell that they belong to
    text: str


def client_settings(url: str, key: str, model: str, context_len: int) -> tuple[ClientSettings, ...]:
    """Return the settings of common programs for a server.

    Args:
        url: address of the server, without a path.
        key: API key, or "" if none is needed.
        model: name of the loaded model.
        context_len: highest number of tokens that it reads.
    """
    api, key = f"{url}/v1", key or _NO_KEY
    return (
        ClientSettings(
            "Claude Code",
            "Terminal",
            f"export ANTHROPIC_BASE_URL={url}\nexport ANTHROPIC_AUTH_TOKEN={key}\n"
            f"claude --model {shlex.quote(model)}",
        ),
        ClientSettings("Codex", "~/.codex/config.toml", _codex(api, key, model)),
        ClientSettings("opencode", "opencode.json", _opencode(api, key, model)),
        ClientSettings("Zed", "settings.json", _zed(api, model, context_len)),
        ClientSettings(
            "OpenAI SDK", "Terminal", f"export OPENAI_BASE_URL={api}\nexport OPENAI_API_KEY={key}"
        ),
        ClientSettings("curl", "Terminal", _curl(api, key)),
    )


def _codex(api: str, key: str, model: str) -> str:
    name = json.dumps(model)
    return (
        f"# In the shell before: export REJOINDER_API_KEY={key}\n"
        f'model = {name}\nmodel_provider = "rejoinder"\n\n[model_providers.rejoinder]\n'
        f'name = "Rejoinder"\nbase_url = "{api}"\nwire_api = "responses"\n'
        'env_key = "REJOINDER_API_KEY"'
    )


def _opencode(api: str, key: str, model: str) -> str:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Rejoinder",
        "options": {"baseURL": api, "apiKey": key},
        "models": {model: {"name": model}},
    }
    return json.dumps({"provider": {"rejoinder": provider}}, indent=2)


def _zed(api: str, model: str, context_len: int) -> str:
    models = [{"name": model, "max_tokens": context_len}]
    provider = {"Rejoinder": {"api_url": api, "available_models": models}}
    return json.dumps({"language_models": {"openai_compatible": provider}}, indent=2)


def _curl(api: str, key: str) -> str:
    body = json.dumps({"messages": [{"role": "user", "content": "Hello!"}]})
    return f"curl {api}/chat/completions -H 'Authorization: Bearer {key}' -d '{body}'"
