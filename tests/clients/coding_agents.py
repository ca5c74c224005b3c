"""The agents: commands, settings and tools."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.clients.task import Call, Tools

MODEL = "tiny"  # the server answers with its own model, whatever a client asks for


@dataclass(frozen=True, slots=True)
class Place:
    """Folders of a run, and the server."""

    home: Path
    work: Path  # the folder in which the agent works
    url: str  # of the server, without a path
    key: str


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """A program that does a task with a model."""

    program: str  # name of its command
    arguments: tuple[str, ...]  # before the first prompt
    further: tuple[str, ...]  # before a further prompt: they continue the newest chat
    tools: Tools
    # Writes the files of settings, and returns variables of the environment.
    prepare: Callable[[Place], Mapping[str, str]]


def environment(place: Place, tools_folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an agent: those that it needs, and none of the user's keys."""
    home = place.home
    programs = tools_folder / "node_modules" / ".bin"
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "DO_NOT_TRACK": "1",
        # Everything but the server fails at once.
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1,localhost",
        **more,
    }


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _claude(place: Place) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_AUTH_TOKEN": place.key,
        "ANTHROPIC_MODEL": MODEL,
        "ANTHROPIC_SMALL_FAST_MODEL": MODEL,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "IS_SANDBOX": "1",  # it runs without questions also as root
    }


def _codex(place: Place) -> Mapping[str, str]:
    settings = f"""
model = "{MODEL}"
model_provider = "rejoinder"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.rejoinder]
name = "Rejoinder"
base_url = "{place.url}/v1"
wire_api = "responses"
env_key = "REJOINDER_KEY"
"""
    _write(place.home / ".codex/config.toml", settings)
    return {"CODEX_HOME": str(place.home / ".codex"), "REJOINDER_KEY": place.key}


def _opencode(place: Place) -> Mapping[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Rejoinder",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": place.key},
        "models": {MODEL: {"name": MODEL, "tool_call": True}},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": f"rejoinder/{MODEL}",
        "small_model": f"rejoinder/{MODEL}",
        "provider": {"rejoinder": provider},
    }
    _write(place.home / ".config/opencode/opencode.json", json.dumps(settings))
    return {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


def _qwen(place: Place) -> Mapping[str, str]:
    settings = {
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
        "security": {"auth": {"selectedType": "openai"}},
    }
    _write(place.home / ".qwen/settings.json", json.dumps(settings))
    return {
        "OPENAI_BASE_URL": f"{place.url}/v1",
        "OPENAI_API_KEY": place.key,
        "OPENAI_MODEL": MODEL,
        # It sends requests to this machine through a proxy, too.
        "HTTP_PROXY": "",
        "HTTPS_PROXY": "",
    }


def _exec(command: str) -> Call:
    return Call("exec_command", {"cmd": command})


def _agent_call(tool: str, kind: str) -> Callable[[str], Call]:
    """Return a function that makes calls of a tool for second agents."""
    return lambda prompt: Call(
        tool, {"description": "A question", "prompt": prompt, "subagent_type": kind}
    )


_CODEX_FLAGS = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")

AGENTS = {
    "claude": CodingAgent(
        "claude",
        ("--dangerously-skip-permissions", "-p"),
        ("--dangerously-skip-permissions", "--continue", "-p"),
        Tools(
            run=lambda command: Call("Bash", {"command": command, "description": "Look"}),
            read=lambda file: Call("Read", {"file_path": str(file)}),
            write=lambda file, text: Call("Write", {"file_path": str(file), "content": text}),
            ask=_agent_call("Agent", "general-purpose"),
        ),
        _claude,
    ),
    "codex": CodingAgent(
        "codex",
        ("exec", *_CODEX_FLAGS),
        ("exec", "resume", "--last", *_CODEX_FLAGS),
        Tools(
            run=_exec,
            read=lambda file: _exec(f"cat '{file}'"),
            write=lambda file, text: _exec(f"cat > '{file}' <<'END'\n{text}END"),
        ),
        _codex,
    ),
    "opencode": CodingAgent(
        "opencode",
        ("run", "--auto"),
        ("run", "--auto", "--continue"),
        Tools(
            run=lambda command: Call("bash", {"command": command, "description": "Look"}),
            read=lambda file: Call("read", {"filePath": str(file)}),
            write=lambda file, text: Call("write", {"filePath": str(file), "content": text}),
            ask=_agent_call("task", "general"),
        ),
        _opencode,
    ),
    "qwen": CodingAgent(
        "qwen",
        ("--yolo", "-p"),
        ("--yolo", "--continue", "-p"),
        Tools(
            run=lambda command: Call(
                "run_shell_command", {"command": command, "is_background": False}
            ),
            read=lambda file: Call("read_file", {"file_path": str(file)}),
            write=lambda file, text: Call("write_file", {"file_path": str(file), "content": text}),
            ask=_agent_call("agent", "general-purpose"),
        ),
        _qwen,
    ),
}
