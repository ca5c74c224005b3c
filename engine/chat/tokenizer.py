"""Encode text to token ids and decode token ids, with a Hugging Face fast tokenizer.

Control tokens are the added tokens of a vocabulary, such as <|im_start|>. `encode_template` encodes
text of a chat template and recognises control tokens in it. `encode_text` encodes text of users. It
recognises no control tokens: the characters <|im_start|> are encoded as ordinary text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from engine.bounded_cache import BoundedCache
from engine.chat.encoder import Encoder, TextEncoder, control_tokens
from engine.types import ReplyTokens

if TYPE_CHECKING:
    from engine.grammar.matcher import Grammar, GrammarTokenizer

# Highest number of bytes of the cached texts of a template or of users, and of the cached runs. A
# conversation of 250,000 tokens has about 30 MB of runs, because most are encoded three times
# (Runs.boundary).
_TEXTS_BYTES = 16 << 20
_RUNS_BYTES = 128 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """Token ids that end a reply, or that mark the start and end of its reasoning."""

    eos_ids: frozenset[int]  # ids of all tokens that end a reply
    think_start: tuple[int, ...] = ()  # empty if the model has no reasoning
    think_end: tuple[int, ...] = ()  # empty if the model has no reasoning


class ChatTokenizer:
    """The tokenizer of one model. It encodes with or without control tokens, and decodes exactly.

    Use on the engine thread.
    """

    def __init__(
        self,
        backend: Tokenizer,
        markers: Markers,
        tokenizer_hash: str,
        encoder: Encoder | None = None,
        *,
        vocab_size: int | None = None,
    ) -> None:
        """Create the tokenizer of a model.

        Args:
            backend: the tokenizer of the model's folder.
            markers: token ids that end a reply or its reasoning.
            tokenizer_hash: hash of the tokenizer's file.
            encoder: encodes texts; by default, `backend` in this process.
            vocab_size: number of token ids that the model has embeddings for. It may exceed the
                number of the tokenizer's tokens, which is the default.
        """
        self._backend = backend
        self._vocab_size = backend.get_vocab_size() if vocab_size is None else vocab_size
        self.markers = markers
        self.tokenizer_hash = tokenizer_hash
        encoder = TextEncoder(backend) if encoder is None else encoder
        self._grammars: GrammarTokenizer | None = None
        controls = control_tokens(backend)
        self._control_ids = frozenset(controls)
        longest_first = sorted(controls.values(), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        # Every request renders the whole conversation again. The caches make sure that only new
        # text is encoded.
        self._encode_template = BoundedCache(encoder.encode_template, len, _TEXTS_BYTES)
        self._encode_text = BoundedCache(encoder.encode_text, len, _TEXTS_BYTES)
        self._encode_run = BoundedCache(encoder.encode_run, len, _RUNS_BYTES)

    def split_control(self, text: str) -> list[str]:
        """Cut text before each control token and return the parts.

        Each part starts with a control token. Only the first part may start without one.
        """
        cuts = [0, *(match.start() for match in self._control.finditer(text)), len(text)]
        return [text[a:b] for a, b in pairwise(cuts) if a < b]

    def control_prefix(self, text: str) -> str:
        """Return the control token at the start of text, or an empty string."""
        match = self._control.match(text)
        return match.group() if match else ""

    def encode_template(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a chat template's text. Recognise control tokens in it."""
        return self._encode_template(text)

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a user's text. Encode control tokens in it as ordinary text."""
        return self._encode_text(text)

    def encode_run(self, control: str, text: str) -> tuple[int, ...]:
        """Return the token ids of a run: a control token of the template, and the text after it.

        The text may contain text of users. No control token is recognised in the text, even if a
        user's characters and the template's characters together spell a control token.

        Args:
            control: the control token, or "" if the run has none.
            text: the text after the control token.
        """
        return self._encode_run(control, text)

    def ids_of(self, reply: ReplyTokens | None) -> tuple[int, ...]:
        """Return the stored token ids of a reply, or () if they cannot be those of this model.

        It draws no ids of another tokenizer and none without an embedding, and a reply ends before
        its end token. An imported file can contain such ids. The reply's text is encoded instead.
        """
        if reply is None or reply.tokenizer_hash != self.tokenizer_hash:
            return ()
        token_ids = reply.token_ids
        is_known = max(token_ids, default=0) < self._vocab_size
        return token_ids if is_known and self.markers.eos_ids.isdisjoint(token_ids) else ()

    def is_control(self, token_id: int) -> bool:
        return token_id in self._control_ids

    def count_control(self, token_ids: Sequence[int]) -> int:
        """Return the number of control tokens among token_ids."""
        return sum(map(self.is_control, token_ids))

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the exact text of token ids, including the text of control tokens."""
        return self._backend.decode(list(token_ids), skip_special_tokens=False)

    def text_ends(self, token_ids: Sequence[int]) -> list[int]:
        """Return, for each token, the length of the decoded text up to the end of the token.

        A token that ends inside a character adds no text, so its entry equals the previous entry.
        """
        stream = TextStream(self)
        ends: list[int] = []
        length = 0
        for token_id in token_ids:
            length += len(stream.add(token_id))
            ends.append(length)
        if ends:
            ends[-1] += len(stream.flush())
        return ends

    def grammar(self, text: str) -> Grammar:
        """Compile a grammar of answers (engine/grammar). The first one takes about half a second.

        Raises:
            AnswerFormatError: the grammar has an error, or it is too large.
        """
        # The library of grammars takes 0.1 s to import, and few requests need it.
        from engine.grammar.matcher import GrammarTokenizer  # noqa: PLC0415

        if self._grammars is None:
            self._grammars = GrammarTokenizer(self._backend, self._vocab_size, self.markers.eos_ids)
        return self._grammars.grammar(text)

    def grammar_marker(self, text: str) -> str:
        """Return a text of the model's own form for a grammar, as a control token if it is one."""
        token_id = self._backend.token_to_id(text)
        is_control = token_id is not None and self.is_control(token_id)
        return f"<[{token_id}]>" if is_control else json.dumps(text)

    def new_stream(self) -> DecodeStream:
        return DecodeStream(skip_special_tokens=False)

    def step_stream(self, stream: DecodeStream, token_id: int) -> str:
        return stream.step(self._backend, token_id) or ""


class TextStream:
    """A decoder that turns token ids into text, one token at a time. It never splits a character.

    The streaming detokenizer of mlx-lm drops the leading space of a reply, so its text can differ
    from the text of the stored token ids. The text of this class never differs.
    """

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._tokenizer = tokenizer
        self._stream = tokenizer.new_stream()
        self._pending: list[int] = []

    def add(self, token_id: int) -> str:
        """Add a token. Return the characters that the token completes, or "" if there are none."""
        text = self._tokenizer.step_stream(self._stream, token_id)
        if text:
            self._pending.clear()
        else:
            self._pending.append(token_id)
        return text

    def flush(self) -> str:
        """Return the text of an incomplete character at the end, and reset the decoder."""
        text = self._tokenizer.decode(self._pending) if self._pending else ""
        self._pending.clear()
        self._stream = self._tokenizer.new_stream()
        return text
