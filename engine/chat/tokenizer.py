"""Text to token ids and back, over a Hugging Face fast tokenizer.

Text that people wrote goes through `encode_text`, where control tokens stay ordinary text; text
that a template wrote goes through `encode_template`, where they become control tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

# Encodings of longer texts are not kept: a pasted book would stay in memory.
_LONGEST_CACHED = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """Token ids with a meaning of their own. think_* are empty where a model has no reasoning."""

    eos_ids: frozenset[int]
    think_start: tuple[int, ...] = ()
    think_end: tuple[int, ...] = ()


class ChatTokenizer:
    """Encoding with and without control tokens; exact decoding. Used on the engine thread."""

    def __init__(self, backend: Tokenizer, markers: Markers, tokenizer_hash: str) -> None:
        self._backend = backend
        self.markers = markers
        self.tokenizer_hash = tokenizer_hash
        # Some tokenizers list runs of blanks among their added tokens: those control nothing.
        added = {
            token_id: token.content
            for token_id, token in backend.get_added_tokens_decoder().items()
            if token.content.strip()
        }
        self._control_ids = frozenset(added)
        longest_first = sorted(added.values(), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        # A conversation is rendered anew for every request: each of its runs is encoded once.
        self._cached_template = lru_cache(maxsize=8192)(self._encode_template)
        self._cached_text = lru_cache(maxsize=1024)(self._encode_text)
        self._cached_run = lru_cache(maxsize=8192)(self._encode_run)

    @property
    def vocab_size(self) -> int:
        return self._backend.get_vocab_size()

    def has_control(self, text: str) -> bool:
        """Whether encoding text as a template would yield control tokens."""
        return self._control.search(text) is not None

    def split_control(self, text: str) -> list[str]:
        """Cut template text before every control token, so that each part starts with one.

        The first part may be plain. The parts join to text.
        """
        cuts = [0, *(match.start() for match in self._control.finditer(text)), len(text)]
        return [text[a:b] for a, b in pairwise(cuts) if a < b]

    def control_prefix(self, text: str) -> str:
        """The control token that text starts with, or an empty string."""
        match = self._control.match(text)
        return match.group() if match else ""

    def encode_template(self, text: str) -> tuple[int, ...]:
        """Ids of text, control tokens included."""
        return self._kept(text, self._cached_template, self._encode_template)

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Ids of text in which control tokens are only the letters that they are written with."""
        return self._kept(text, self._cached_text, self._encode_text)

    def encode_run(self, control: str, text: str) -> tuple[int, ...]:
        """Ids of a template's control token (or none) and what follows it, in part typed by people.

        No other control token comes of it, however the typed letters meet those beside them.
        """
        encode = self._encode_run if len(text) > _LONGEST_CACHED else self._cached_run
        return encode(control, text)

    def is_control(self, token_id: int) -> bool:
        return token_id in self._control_ids

    def count_control(self, token_ids: Sequence[int]) -> int:
        """How many of the ids are control tokens."""
        return sum(map(self.is_control, token_ids))

    def decode(self, token_ids: Sequence[int]) -> str:
        """The exact text of token ids, control tokens included."""
        return self._backend.decode(list(token_ids), skip_special_tokens=False)

    def text_ends(self, token_ids: Sequence[int]) -> list[int]:
        """For each token, the length of the text that is complete once it is decoded.

        A token that ends inside a character has the same end as the token before it.
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

    def new_stream(self) -> DecodeStream:
        return DecodeStream(skip_special_tokens=False)

    def step_stream(self, stream: DecodeStream, token_id: int) -> str:
        return stream.step(self._backend, token_id) or ""

    def _encode_template(self, text: str) -> tuple[int, ...]:
        return tuple(self._backend.encode(text, add_special_tokens=False).ids)

    @staticmethod
    def _kept(
        text: str,
        cached: Callable[[str], tuple[int, ...]],
        encode: Callable[[str], tuple[int, ...]],
    ) -> tuple[int, ...]:
        return encode(text) if len(text) > _LONGEST_CACHED else cached(text)

    def _encode_run(self, control: str, text: str) -> tuple[int, ...]:
        token_ids = self._encode_template(control + text)
        if self.count_control(token_ids) == bool(control):
            return token_ids
        return (*self._encode_template(control), *self._encode_text(text))

    def _encode_text(self, text: str) -> tuple[int, ...]:
        token_ids = self._encode_template(text)
        if not self.count_control(token_ids):
            return token_ids
        # Past the added vocabulary: normalise, pre-tokenise and run the bare model by hand.
        backend = self._backend
        if backend.normalizer is not None:
            text = backend.normalizer.normalize_str(text)
        words = (
            [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(text)]
            if backend.pre_tokenizer is not None
            else [text]
        )
        return tuple(token_id for word in words for token_id in self._word_ids(word))

    def _word_ids(self, word: str) -> list[int]:
        """A word's ids by the bare model; letter by letter if its vocabulary has it as control token."""
        token_ids = [token.id for token in self._backend.model.tokenize(word)]
        if not self.count_control(token_ids):
            return token_ids
        return [token.id for letter in word for token in self._backend.model.tokenize(letter)]


class TextStream:
    """Token ids to text, piece by piece, never splitting a character.

    mlx-lm's own streaming detokenizer drops a reply's leading space; the kept ids and the shown
    text must agree, so this one decodes exactly.
    """

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._tokenizer = tokenizer
        self._stream = tokenizer.new_stream()
        self._pending: list[int] = []

    def add(self, token_id: int) -> str:
        """The text that token_id completes, empty inside a character."""
        text = self._tokenizer.step_stream(self._stream, token_id)
        if text:
            self._pending.clear()
        else:
            self._pending.append(token_id)
        return text

    def flush(self) -> str:
        """What is still held back at the end (an incomplete character)."""
        text = self._tokenizer.decode(self._pending) if self._pending else ""
        self._pending.clear()
        self._stream = self._tokenizer.new_stream()
        return text
