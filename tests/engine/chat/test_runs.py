"""Runs give the token ids of the whole text, and long runs cost no repeated encoding."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st
from typing_extensions import override

from engine.chat import runs
from engine.chat.encoder import TextEncoder
from engine.chat.runs import Runs
from engine.chat.tokenizer import ChatTokenizer
from tests.fakes.texts import chat_tokenizer
from tests.fakes.tiny_model import train_tokenizer

TOKENIZER = chat_tokenizer()
LETTERS = " \n.ab1\N{LATIN SMALL LETTER E WITH ACUTE}<"


def encoded(tokenizer: ChatTokenizer, texts: Sequence[str]) -> list[int]:
    """Add texts to one run, with a boundary after each. Return the token ids."""
    run = Runs(tokenizer)
    for text in texts:
        run.add_content(text)
        run.boundary()
    run.end_run()
    return run.token_ids


@given(st.lists(st.text(LETTERS, max_size=12), max_size=8))
def test_shortened_run_has_the_token_ids_of_the_whole_text(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_LONG", 6)
        patch.setattr(runs, "_OPEN", 4)

        assert encoded(TOKENIZER, texts) == list(TOKENIZER.encode_text("".join(texts)))


def test_encoded_characters_grow_with_the_length_of_a_long_run() -> None:
    class CountingEncoder(TextEncoder):
        num_characters = 0

        @override
        def encode_template(self, text: str) -> tuple[int, ...]:
            self.num_characters += len(text)
            return super().encode_template(text)

    def count(num_texts: int) -> int:
        backend = train_tokenizer()
        encoder = CountingEncoder(backend)
        tokenizer = ChatTokenizer(backend, TOKENIZER.markers, "tiny", encoder)
        encoded(tokenizer, [f"The boat {number} is small. " * 20 for number in range(num_texts)])
        return encoder.num_characters

    assert count(80) < 3 * count(40)
