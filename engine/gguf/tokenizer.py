"""Convert the tokenizer of a GGUF file to tokenizer.json and tokenizer_config.json.

Only byte-level BPE tokenizers are supported. `PRE_TOKENIZERS` lists the supported pre-tokenizers. A
pre-tokenizer is a set of rules that divide text into words before BPE merges characters. The chat
template is written into tokenizer_config.json. Call on any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.errors import GgufError
from engine.gguf.reader import Metadata

_BYTE_LEVEL: Final[Mapping[str, object]] = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
_DIGITS: Final[Mapping[str, object]] = {"type": "Digits", "individual_digits": True}
PRE_TOKENIZERS: Final[Mapping[str, Mapping[str, object]]] = {
    "gpt-2": _BYTE_LEVEL,
    "smollm": {"type": "Sequence", "pretokenizers": (_DIGITS, _BYTE_LEVEL)},
}
_CONTROL: Final = 3
_USER_DEFINED: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """The tokenizer of a GGUF file. If the file lacks a special token, the token's id is None."""

    tokens: list[str]  # text of each token, by token id
    kinds: list[int]  # GGUF's type of each token, such as _CONTROL, by token id
    merges: list[list[str]]  # pairs of tokens that BPE merges, highest priority first
    pre_tokenizer: Mapping[str, object]  # field `pre_tokenizer` of tokenizer.json
    chat_template: str
    bos_id: int | None
    # Id of the end-of-sequence token. If the end-of-turn token is a different token, its id
    # follows.
    eos_ids: tuple[int, ...]
    unknown_id: int | None
    padding_id: int | None


def read_tokenizer(metadata: Metadata) -> Tokenizer:
    """Return the tokenizer that the metadata of a GGUF file describes.

    Raises:
        GgufError: the tokenizer is not supported, incomplete or inconsistent.
    """
    kind = metadata.text("tokenizer.ggml.model")
    if kind != "gpt2":
        raise GgufError(
            f"Its tokenizer is of the kind {kind[:60]!r}; only byte-level BPE (gpt2) can be imported."
        )
    pre = metadata.text("tokenizer.ggml.pre")
    if pre not in PRE_TOKENIZERS:
        have = ", ".join(PRE_TOKENIZERS)
        raise GgufError(f"Its pre-tokenizer is {pre[:60]!r}; what can be imported is: {have}.")
    tokens = metadata.texts("tokenizer.ggml.tokens")
    kinds = metadata.integers("tokenizer.ggml.token_type")
    vocabulary = set(tokens)
    if len(vocabulary) != len(tokens) or len(kinds) != len(tokens):
        raise GgufError("Its list of tokens has doubles or lacks their kinds.")
    eos_id = _token_id(metadata, "eos", len(tokens))
    if eos_id is None:
        raise GgufError("It names no token that ends a reply.")
    eot_id = _token_id(metadata, "eot", len(tokens))
    return Tokenizer(
        tokens=tokens,
        kinds=kinds,
        merges=[_merge(text, vocabulary) for text in metadata.texts("tokenizer.ggml.merges")],
        pre_tokenizer=PRE_TOKENIZERS[pre],
        chat_template=_chat_template(metadata),
        bos_id=_token_id(metadata, "bos", len(tokens)),
        eos_ids=(eos_id,) if eot_id in (None, eos_id) else (eos_id, eot_id),
        unknown_id=_token_id(metadata, "unknown", len(tokens)),
        padding_id=_token_id(metadata, "padding", len(tokens)),
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
            _added(token_id, tokenizer.tokens[token_id], kind)
            for token_id, kind in enumerate(tokenizer.kinds)
            if kind in (_CONTROL, _USER_DEFINED)
        ],
        "normalizer": None,
        "pre_tokenizer": tokenizer.pre_tokenizer,
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: token_id for token_id, token in enumerate(tokenizer.tokens)},
            "merges": tokenizer.merges,
        },
    }
    return json.dumps(content, ensure_ascii=False)


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


def _added(token_id: int, text: str, kind: int) -> Mapping[str, object]:
    return {
        "id": token_id,
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": kind == _CONTROL,
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
        raise GgufError("It has no chat template, so it can’t hold a conversation.")
    return metadata.text("tokenizer.chat_template")
