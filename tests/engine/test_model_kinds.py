from __future__ import annotations

import pytest

from engine.model_kinds import why_not_run


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("whisper", "A speech model; Rejoinder can’t chat with it."),
        ("vits", "A speech model; Rejoinder can’t chat with it."),
        ("siglip2_vision", "An image model; Rejoinder can’t chat with it."),
        ("nomic_bert", "A model that compares texts; Rejoinder can’t chat with it."),
        ("deberta-v2", "A model that compares texts; Rejoinder can’t chat with it."),
        ("t5", "A model that translates or shortens texts; Rejoinder can’t chat with it."),
        ("vitamin", "Rejoinder can’t run models of the kind “vitamin” yet."),
        ("gpt9" * 30, f"Rejoinder can’t run models of the kind “{('gpt9' * 30)[:60]}” yet."),
    ],
)
def test_model_that_cannot_run_has_a_sentence_about_its_kind(name: str, sentence: str) -> None:
    assert why_not_run(name) == sentence
