"""Settings for programs that use the local server."""

from __future__ import annotations

import shlex
import tomllib

from app.viewmodels.server_clients import client_settings

MODEL = 'it\'s; a "model"'


def test_name_of_a_model_stays_one_word_of_the_shell() -> None:
    claude = client_settings("http://localhost:1", "key", MODEL, 8192)[0]

    assert shlex.split(claude.text.splitlines()[-1]) == ["claude", "--model", MODEL]


def test_settings_of_codex_are_valid_and_name_the_key() -> None:
    codex = client_settings("http://localhost:1", "key", MODEL, 8192)[1]

    parsed = tomllib.loads(codex.text)
    assert parsed["model"] == MODEL
    assert parsed["model_providers"]["rejoinder"]["env_key"] in codex.text.splitlines()[0]
    assert codex.text.splitlines()[0].endswith("=key")
