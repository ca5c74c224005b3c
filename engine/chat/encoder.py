"""Encode text to token ids with a Hugging Face fast tokenizer, with or without control tokens.

`ChatTokenizer` (tokenizer.py) calls an `Encoder` for each text that it has not encoded before. In
the app, the encoder runs in the worker process, because a model's tokenizer may take for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tokenizers import Tokenizer


class Encoder(Protocol):
    """Encodes text. ChatTokenizer documents the three methods of the same names."""

    def encode_template(self, text: str) -> tuple[int, ...]: ...
    def encode_text(self, text: str) -> tuple[int, ...]: ...
    def encode_run(self, control: str, text: str) -> tuple[int, ...]: ...


def control_tokens(backend: Tokenizer) -> Mapping[int, str]:
    """Return the texts of a vocabulary's control tokens, by token id.

    Some tokenizers list runs of blanks as added tokens. These are not control tokens.
    """
    return {
        token_id: token.content
        for token_id, token in backend.get_added_tokens_decoder().items()
        if token.content.strip()
    }


class TextEncoder:
    """An encoder that runs in this process."""

    def __init__(self, backend: Tokenizer) -> None:
        self._backend = backend
        self._control_ids = frozenset(control_tokens(backend))

    def encode_template(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a chat template's text. Recognise control tokens in it."""
        return tuple(self._backend.encode(text, add_special_tokens=False).ids)

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a user's text. Encode control tokens in it as ordinary text."""
        token_ids = self.encode_template(text)
        if not self._count_control(token_ids):
            return token_ids
        # The backend's own encoder would recognise control tokens in its first step. So call only
        # its later steps: normalise, pre-tokenise, encode each word.
        backend = self._backend
        if backend.normalizer is not None:
            text = backend.normalizer.normalize_str(text)
        words = (
            [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(text)]
            if backend.pre_tokenizer is not None
            else [text]
        )
        return tuple(token_id for word in words for token_id in self._word_ids(word))

    def encode_run(self, control: str, text: str) -> tuple[int, ...]:
        """Return the token ids of a control token (or "") and the text after it."""
        token_ids = self.encode_template(control + text)
        if self._count_control(token_ids) == bool(control):
            return token_ids
        return (*self.encode_template(control), *self.encode_text(text))

    def _count_control(self, token_ids: Sequence[int]) -> int:
        return sum(token_id in self._control_ids for token_id in token_ids)

    def _word_ids(self, word: str) -> list[int]:
        """Return the token ids of a word, without control tokens.

        If the whole word is a control token of the vocabulary, encode the word letter by letter.
        """
        token_ids = [token.id for token in self._backend.model.tokenize(word)]
        if not self._count_control(token_ids):
            return token_ids
        return [token.id for letter in word for token in self._backend.model.tokenize(letter)]
