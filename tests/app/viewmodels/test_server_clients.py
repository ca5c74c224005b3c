"""Settings for programs that use the local server."""

from __future__ import annotations

import json
import shlex
import tomllib
from dataclasses import replace
from typing import Any

import pytest

from app.viewmodels.server_clients import client_settings
from tests.fakes.fake_engine import FACTS

MODEL = 'it\'s; a "model" 🦊'
URL = "http://127.0.0.1:7710"


def text_for(program: str, key: str = "key", *, can_use_tools: bool = True) -> str:
    model = replace(FACTS, name=MODEL, can_use_tools=can_use_tools)
    found = client_settings(URL, key, model)
    return next(one.text for one in found if one.program == program)


def test_name_of_a_model_stays_one_word_of_the_shell() -> None:
    assert shlex.split(text_for("Claude Code").splitlines()[-1]) == ["claude", "--model", MODEL]


def test_settings_of_codex_are_valid_and_name_the_key() -> None:
    text = text_for("Codex")

    parsed = tomllib.loads(text)
    assert parsed["model"] == MODEL
    assert parsed["model_providers"]["rejoinder"]["env_key"] in text.splitlines()[0]
    assert text.splitlines()[0].endswith("=key")


@pytest.mark.parametrize("can_use_tools", [True, False])
def test_settings_of_vs_code_and_zed_have_context_and_abilities_of_the_model(
    can_use_tools: bool,
) -> None:
    (group,) = json.loads(text_for("VS Code", can_use_tools=can_use_tools))
    (code,) = group["models"]
    lines = text_for("Zed", can_use_tools=can_use_tools).splitlines()
    comments = [line for line in lines if line.startswith("//")]
    zed = json.loads("\n".join(lines[len(comments) :]))
    provider: dict[str, Any] = zed["language_models"]["openai_compatible"]["Rejoinder"]
    (entry,) = provider["available_models"]

    assert (group["vendor"], group["apiKey"], group["apiType"]) == (
        "customendpoint",
        "key",
        "chat-completions",
    )
    assert code["url"] == f"{URL}/v1/chat/completions"
    assert code["maxInputTokens"] + code["maxOutputTokens"] == FACTS.context_len
    assert provider["api_url"] == f"{URL}/v1"
    assert entry["max_tokens"] == FACTS.context_len
    assert code["toolCalling"] is entry["capabilities"]["tools"] is can_use_tools
    assert "REJOINDER_API_KEY=key" in "\n".join(comments)


def test_settings_of_xcode_are_those_of_the_form_that_can_send_the_key() -> None:
    assert text_for("Xcode").splitlines()[:3] == [
        f"URL: {URL}",
        "API Key: key",
        "API Key Header: x-api-key",
    ]
    assert text_for("Xcode", key="").splitlines()[0] == "Port: 7710"
