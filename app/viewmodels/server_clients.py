"""Settings for programs that use the local server, ready to be copied.

Sources, read in November 2026: code.visualstudio.com/docs/agent-customization/language-models
("Custom Endpoint"), zed.dev/docs/ai/use-api-access ("OpenAI-compatible endpoints"), and for Xcode
the form in Settings > Intelligence, which sends the key as x-api-key (Kilo-Org/kilocode#6718) and
asks for /v1/models (jundot/omlx#1771).
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine.events import ModelFacts

_NO_KEY = "none"  # many programs refuse to start without a key
# Tokens that VS Code leaves for an answer: a quarter of the context, at most this many
_MAX_ANSWER = 16_384


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of one program."""

    program: str
    place: str  # the file, the form or the shell that they belong to
    text: str


def client_settings(url: str, key: str, model: ModelFacts | None) -> tuple[ClientSettings, ...]:
    """Return the settings of common programs for a server.

    Args:
        url: address of the server, without a path.
        key: API key, or "" if none is needed.
        model: the loaded model. None: the settings are not valid, but their programs and places
            are.
    """
    api, xcode = f"{url}/v1", _xcode(url, key)
    key = key or _NO_KEY
    name = "" if model is None else model.name
    return (
        ClientSettings(
            "Claude Code",
            "Terminal",
            f"export ANTHROPIC_BASE_URL={url}\nexport ANTHROPIC_AUTH_TOKEN={key}\n"
            f"claude --model {shlex.quote(name)}",
        ),
        ClientSettings("Codex", "~/.codex/config.toml", _codex(api, key, name)),
        ClientSettings("opencode", "opencode.json", _opencode(api, key, name)),
        ClientSettings(
            "VS Code",
            "chatLanguageModels.json (Chat: Manage Language Models > Add Models > Custom Endpoint)",
            _vs_code(api, key, name, model),
        ),
        xcode,
        ClientSettings("Zed", "settings.json of Zed", _zed(api, key, name, model)),
        ClientSettings(
            "OpenAI SDK", "Terminal", f"export OPENAI_BASE_URL={api}\nexport OPENAI_API_KEY={key}"
        ),
        ClientSettings("curl", "Terminal", _curl(api, key)),
    )


def _codex(api: str, key: str, model: str) -> str:
    name = json.dumps(model, ensure_ascii=False)  # TOML knows no halves of characters
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


def _vs_code(api: str, key: str, name: str, model: ModelFacts | None) -> str:
    context_len = _context_len(model)
    num_answer = min(_MAX_ANSWER, context_len // 4)
    entry = {
        "id": name,
        "name": name,
        "url": f"{api}/chat/completions",
        "toolCalling": _can_use_tools(model),
        "vision": False,
        "maxInputTokens": context_len - num_answer,
        "maxOutputTokens": num_answer,
    }
    group = {
        "name": "Rejoinder",
        "vendor": "customendpoint",
        "apiKey": key,
        "apiType": "chat-completions",
        "models": [entry],
    }
    return json.dumps([group], indent=2)


def _xcode(url: str, key: str) -> ClientSettings:
    """Return the values of Xcode's form. The form for a local server has no field for a key."""
    form = "Xcode > Settings > Intelligence > Add a Chat Provider"
    if not key:
        text = f"Port: {urlsplit(url).port or ''}\nDescription: Rejoinder"
        return ClientSettings("Xcode", f"{form} > Locally Hosted", text)
    text = f"URL: {url}\nAPI Key: {key}\nAPI Key Header: x-api-key\nDescription: Rejoinder"
    return ClientSettings("Xcode", f"{form} > Internet Hosted", text)


def _zed(api: str, key: str, name: str, model: ModelFacts | None) -> str:
    abilities = {
        "tools": _can_use_tools(model),
        "images": False,
        "parallel_tool_calls": False,
        "prompt_cache_key": False,
    }
    entry = {"name": name, "max_tokens": _context_len(model), "capabilities": abilities}
    provider = {"Rejoinder": {"api_url": api, "available_models": [entry]}}
    settings = json.dumps({"language_models": {"openai_compatible": provider}}, indent=2)
    return (
        "// In the environment of Zed, or in its settings of LLM providers:\n"
        f"// REJOINDER_API_KEY={key}\n{settings}"
    )


def _curl(api: str, key: str) -> str:
    body = json.dumps({"messages": [{"role": "user", "content": "Hello!"}]})
    return f"curl {api}/chat/completions -H 'Authorization: Bearer {key}' -d '{body}'"


def _context_len(model: ModelFacts | None) -> int:
    return 0 if model is None else model.context_len


def _can_use_tools(model: ModelFacts | None) -> bool:
    return model is not None and model.can_use_tools
