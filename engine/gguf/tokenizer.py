"""Convert the tokenizer of a GGUF file to tokenizer.json and tokenizer_config.json.

Byte-level BPE tokenizers and SentencePiece tokenizers of the kind BPE are supported.
`PRE_TOKENIZERS` lists the supported pre-tokenizers of the former. A pre-tokenizer is a set of rules
that divide text into words before BPE merges characters. The chat template is written into
tokenizer_config.json. Call on any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from engine.errors import GgufError
from engine.gguf.header import Metadata

_BYTE_LEVEL: Final[Mapping[str, object]] = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
_DIGITS: Final[Mapping[str, object]] = {"type": "Digits", "individual_digits": True}


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """The rules by which a byte-level tokenizer divides text into words."""

    rules: Mapping[str, object]  # field `pre_tokenizer` of tokenizer.json
    composes: bool = False  # True if text is first normalised to NFC
    # True if a word that is a token is not divided, even if no merges lead to the token.
    ignores_merges: bool = False


def _split(words: str, digits: str, punctuation: str) -> Mapping[str, object]:
    """Return rules that divide text by a regular expression of the GPT-4 kind."""
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?"
        rf"{words}+|{digits}| ?{punctuation}+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    return _by_pattern(pattern)


def _by_pattern(pattern: str) -> Mapping[str, object]:
    split = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }
    return {
        "type": "Sequence",
        "pretokenizers": (split, {**_BYTE_LEVEL, "trim_offsets": False, "use_regex": False}),
    }


_QWEN2: Final = PreTokenizer(_split(r"\p{L}", r"\p{N}", r"[^\s\p{L}\p{N}]"), composes=True)
_QWEN35: Final = PreTokenizer(
    _split(r"[\p{L}\p{M}]", r"\p{N}", r"[^\s\p{L}\p{M}\p{N}]"), composes=True
)
_THREE_DIGITS: Final = _split(r"\p{L}", r"\p{N}{1,3}", r"[^\s\p{L}\p{N}]")
_LLAMA3: Final = PreTokenizer(_THREE_DIGITS, ignores_merges=True)


def _split_cased(contractions: str, digits: str) -> Mapping[str, object]:
    """Return rules that also divide text where a small letter is followed by a capital letter."""
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    return _by_pattern(
        rf"[^\r\n\p{{L}}\p{{N}}]?{upper}*{lower}+{contractions}"
        rf"|[^\r\n\p{{L}}\p{{N}}]?{upper}+{lower}*{contractions}"
        rf"|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


# Key: value of tokenizer.ggml.pre. llama.cpp's src/llama-vocab.cpp has the patterns, and Hugging
# Face's tokenizer.json of the models has the normalisation to NFC, which llama.cpp leaves out.
PRE_TOKENIZERS: Final[Mapping[str, PreTokenizer]] = {
    "gpt-2": PreTokenizer(_BYTE_LEVEL),
    "smollm": PreTokenizer({"type": "Sequence", "pretokenizers": (_DIGITS, _BYTE_LEVEL)}),
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": replace(_QWEN2, composes=False),
    "qwen35": _QWEN35,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "lfm2": _LLAMA3,
    "falcon3": _LLAMA3,
    "dbrx": PreTokenizer(_THREE_DIGITS),
    "smaug-bpe": PreTokenizer(_THREE_DIGITS),
    "tekken": PreTokenizer(_split_cased("", r"\p{N}"), ignores_merges=True),
    "gpt-4o": PreTokenizer(_split_cased("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", r"\p{N}{1,3}")),
}
_CONTROL: Final = 3
_USER_DEFINED: Final = 4
_BYTE: Final = 6
# Control tokens that end a reply, whatever the metadata names. llama.cpp ends a reply at these too.
_END_TEXTS: Final = frozenset(
    {
        *("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end|>"),
        *("<end_of_turn>", "<|end_of_text|>"),
    }
)
_SPACE: Final = "▁"
_MAX_PIECE_LEN: Final = 256  # characters of an ordinary SentencePiece token
# Characters of all ordinary tokens; finding the merges takes a second for two million of them.
_MAX_PIECES_LEN: Final = 8_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """The tokenizer of a GGUF file. If the file lacks a special token, the token's id is None."""

    tokens: list[str]  # text of each token, by token id
    kinds: list[int]  # GGUF's type of each token, such as _CONTROL, by token id
    merges: list[list[str]]  # pairs of tokens that BPE merges, highest priority first
    rules: Mapping[str, object]  # fields `normalizer`, `pre_tokenizer`, `decoder` of tokenizer.json
    model: Mapping[str, object]  # fields of `model` in tokenizer.json that depend on the kind
    chat_template: str
    bos_id: int | None
    # Ids of the tokens that end a reply. The first is the end-of-sequence token.
    eos_ids: tuple[int, ...]
    unknown_id: int | None
    padding_id: int | None
    strips_after_control: bool  # True if blanks after a control token belong to it


def read_tokenizer(metadata: Metadata) -> Tokenizer:
    """Return the tokenizer that the metadata of a GGUF file describes.

    Raises:
        GgufError: the tokenizer is not supported, incomplete or inconsistent.
    """
    kind = metadata.text("tokenizer.ggml.model")
    if kind not in ("gpt2", "llama"):
        raise GgufError(
            f"Its tokenizer is of the kind {kind[:60]!r}; byte-level BPE (gpt2) and "
            "SentencePiece (llama) can be imported."
        )
    tokens = metadata.texts("tokenizer.ggml.tokens")
    kinds = metadata.integers("tokenizer.ggml.token_type")
    vocabulary = set(tokens)
    if len(vocabulary) != len(tokens) or len(kinds) != len(tokens):
        raise GgufError("Its list of tokens has doubles or lacks their kinds.")
    unknown_id = _token_id(metadata, "unknown", len(tokens))
    if kind == "gpt2":
        merges = [_merge(text, vocabulary) for text in metadata.texts("tokenizer.ggml.merges")]
        rules, model = _byte_level_rules(metadata)
    else:
        merges = _sentence_piece_merges(metadata, tokens, kinds)
        rules, model = _sentence_piece_rules(metadata, tokens, unknown_id)
    return Tokenizer(
        tokens=tokens,
        kinds=kinds,
        merges=merges,
        rules=rules,
        model=model,
        chat_template=_chat_template(metadata),
        bos_id=_token_id(metadata, "bos", len(tokens)),
        eos_ids=_eos_ids(metadata, tokens, kinds),
        unknown_id=unknown_id,
        padding_id=_token_id(metadata, "padding", len(tokens)),
        strips_after_control=kind == "llama" and _is_phi3(metadata),
    )


def tokenizer_json(tokenizer: Tokenizer) -> str:
    """Return the content of tokenizer.json.

    The tokenizer adds no beginning-of-text token to encoded text, because the chat template
    contains this token.
    """
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            _added(tokenizer, token_id)
            for token_id, kind in enumerate(tokenizer.kinds)
            if kind in (_CONTROL, _USER_DEFINED)
        ],
        **tokenizer.rules,
        "post_processor": None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            **tokenizer.model,
            "vocab": {token: token_id for token_id, token in enumerate(tokenizer.tokens)},
            "merges": tokenizer.merges,
        },
    }
    return json.dumps(content, ensure_ascii=False)


def _byte_level_rules(metadata: Metadata) -> tuple[Mapping[str, object], Mapping[str, object]]:
    pre = metadata.text("tokenizer.ggml.pre")
    if pre not in PRE_TOKENIZERS:
        have = ", ".join(PRE_TOKENIZERS)
        raise GgufError(f"Its pre-tokenizer is {pre[:60]!r}; what can be imported is: {have}.")
    pre_tokenizer = PRE_TOKENIZERS[pre]
    rules = {
        "normalizer": {"type": "NFC"} if pre_tokenizer.composes else None,
        "pre_tokenizer": pre_tokenizer.rules,
        "decoder": _BYTE_LEVEL,
    }
    model = {
        "unk_token": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": pre_tokenizer.ignores_merges,
    }
    return rules, model


def _sentence_piece_rules(
    metadata: Metadata, tokens: list[str], unknown_id: int | None
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the rules of a SentencePiece tokenizer of the kind BPE, as Hugging Face writes them.

    Spaces are written as the character U+2581. A token that starts a text may have one in front.
    """
    spaced: Mapping[str, object] = {
        "type": "Replace",
        "pattern": {"String": " "},
        "content": _SPACE,
    }
    steps: list[Mapping[str, object]] = [
        {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    normalizer = spaced
    if metadata.values.get("tokenizer.ggml.add_space_prefix", True):
        normalizer = {
            "type": "Sequence",
            "normalizers": ({"type": "Prepend", "prepend": _SPACE}, spaced),
        }
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    rules = {
        "normalizer": normalizer,
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": steps},
    }
    model = {
        "unk_token": None if unknown_id is None else tokens[unknown_id],
        "fuse_unk": True,
        "byte_fallback": True,
        "ignore_merges": False,
    }
    return rules, model


def _sentence_piece_merges(
    metadata: Metadata, tokens: list[str], kinds: list[int]
) -> list[list[str]]:
    """Return the merges of a SentencePiece tokenizer, which has a score per token instead.

    SentencePiece merges the pair of tokens whose joined token has the highest score. So each way to
    divide a token into two tokens is a merge, and merges are sorted by score.
    """
    scores = metadata.numbers("tokenizer.ggml.scores")
    if len(scores) != len(tokens):
        raise GgufError("Its list of tokens lacks their scores.")
    pieces = {
        token: token_id
        for token_id, token in enumerate(tokens)
        if kinds[token_id] not in (_CONTROL, _USER_DEFINED, _BYTE)
    }
    if any(len(piece) > _MAX_PIECE_LEN for piece in pieces):
        raise GgufError(f"It has an ordinary token of more than {_MAX_PIECE_LEN} characters.")
    if sum(map(len, pieces)) > _MAX_PIECES_LEN:
        raise GgufError(f"Its tokens have more than {_MAX_PIECES_LEN:,} characters.")
    merges: list[list[str]] = []
    for piece in sorted(pieces, key=lambda piece: (-scores[pieces[piece]], pieces[piece])):
        halves = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        known = [(left, right) for left, right in halves if left in pieces and right in pieces]
        known.sort(key=lambda pair: (pieces[pair[0]], pieces[pair[1]]))
        merges += [[left, right] for left, right in known]
    return merges


def _eos_ids(metadata: Metadata, tokens: list[str], kinds: list[int]) -> tuple[int, ...]:
    """Return the ids of the tokens that end a reply, the end-of-sequence token first."""
    eos_id = _token_id(metadata, "eos", len(tokens))
    if eos_id is None:
        raise GgufError("It names no token that ends a reply.")
    named = [_token_id(metadata, name, len(tokens)) for name in ("eot", "eom")]
    known = [
        token_id
        for token_id, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind == _CONTROL and token in _END_TEXTS
    ]
    ids = [eos_id, *(token_id for token_id in named if token_id is not None), *known]
    return tuple(dict.fromkeys(ids))


def _is_phi3(metadata: Metadata) -> bool:
    """Return True for a Phi-3. llama.cpp tells it from others by its name, as here."""
    name = metadata.text("general.name", "").lower()
    return "phi-3" in name or "phi3" in name


def tokenizer_config_json(tokenizer: Tokenizer, context_len: int) -> str:
    """Return the content of tokenizer_config.json, including the chat template."""
    named = {
        "bos_token": tokenizer.bos_id,
        "eos_token": tokenizer.eos_ids[0],
        "unk_token": tokenizer.unknown_id,
        "pad_token": tokenizer.padding_id,
    }
    content = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_len,
        **{
            name: tokenizer.tokens[token_id]
            for name, token_id in named.items()
            if token_id is not None
        },
        "chat_template": tokenizer.chat_template,
    }
    return json.dumps(content, ensure_ascii=False, indent=2)


def _added(tokenizer: Tokenizer, token_id: int) -> Mapping[str, object]:
    text = tokenizer.tokens[token_id]
    is_control = tokenizer.kinds[token_id] == _CONTROL
    keeps_blanks = text in ("<unk>", "<s>", "<|endoftext|>")
    return {
        "id": token_id,
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": tokenizer.strips_after_control and is_control and not keeps_blanks,
        "normalized": False,
        "special": is_control,
    }


def _merge(text: str, vocabulary: set[str]) -> list[str]:
    left, _, right = text.partition(" ")
    if not {left, right, left + right} <= vocabulary:
        raise GgufError(f"Its tokenizer merges {text[:60]!r}, which are not all tokens of its own.")
    return [left, right]


def _token_id(metadata: Metadata, name: str, num_tokens: int) -> int | None:
    key = f"tokenizer.ggml.{name}_token_id"
    if key not in metadata.values:
        return None
    token_id = metadata.integer(key)
    if not 0 <= token_id < num_tokens:
        raise GgufError(f"Its {key} is {token_id}, but it has only {num_tokens:,} tokens.")
    return token_id


def _chat_template(metadata: Metadata) -> str:
    if "tokenizer.chat_template" not in metadata.values:
        raise GgufError("It has no chat template, so it can’t chat.")
    return metadata.text("tokenizer.chat_template")
