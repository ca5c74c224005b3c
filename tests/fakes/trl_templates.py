"""Real chat templates of many model families, and tiny random models that use them.

The templates come from the PyPI package trl, which has copies of the checkpoints' templates. Only
its data files are read. The vocabularies of most families are not available, so each model gets the
first 8,000 tokens of Qwen3.6's vocabulary and, as added tokens, the control tokens that its template
writes.
"""

# tokenizers is partly typed.
# pyright: reportUnknownMemberType=false

# Control tokens of DeepSeek have a full-width bar.
# ruff: noqa: RUF001

from __future__ import annotations

import json
import re
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from tokenizers import AddedToken, Tokenizer

from tests.fakes.qwen import Qwen, qwen_tokenizer
from tests.fakes.tiny_model import CONFIGS, Config, write_model

# The control tokens that the templates write: <|user|>, <|tool_call>, <tool_call|>, and so on
_CONTROL = re.compile(
    r"<\|[\w▁]+\|?>|<[\w▁]+\|>|<｜[^｜>]+｜>|\[gMASK\]|<(?:sop|bos|eos|s|SPECIAL_\d+)>"
    r"|</?(?:think|tool_call|tool_response|start_of_turn|end_of_turn)>"
)
# Number of tokens of the vocabulary
_VOCAB_SIZE = 8_000
# Control tokens of every vocabulary: the ends of replies, and tool calls that LFM2 writes in its text.
_EVERYWHERE = {"<|im_end|>", "<|endoftext|>", "<|tool_call_start|>", "<|tool_call_end|>"}
_SMALL: dict[str, Config] = {
    "lfm2": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "block_dim": 16,
        "block_ff_dim": 32,
        "layer_types": ["conv", "full_attention"],
    },
    "llama": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "intermediate_size": 32,
    },
}


# Templates for pictures. They leave out every text that is not a list of parts.
_FOR_PICTURES = {"idefics3", "llava_next", "smolvlm"}


def chat_templates() -> list[str]:
    """Return the names of the templates for text, without copies that are used for training."""
    folder = Path(str(distribution("trl").locate_file("trl/chat_templates")))
    names = (file.stem for file in folder.glob("*.jinja"))
    return sorted(n for n in names if not n.endswith("_training") and n not in _FOR_PICTURES)


def template_text(name: str) -> str:
    """Return the source of a template of trl. `name` is the name of its file without the suffix."""
    file = distribution("trl").locate_file(f"trl/chat_templates/{name}.jinja")
    return Path(str(file)).read_text(encoding="utf-8")


def template_tokenizer(name: str) -> Tokenizer:
    """Return a tokenizer of Qwen3.6's common tokens and the control tokens of a template."""
    tokenizer = Tokenizer.from_str(_common_tokens())
    controls = {*_EVERYWHERE, *_CONTROL.findall(template_text(name))}
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in sorted(controls)]
    )
    return tokenizer


def build_with_template(name: str, out: Path, architecture: str = "lfm2") -> Path:
    """Write the folder of a tiny random model with a template of trl, and return it."""
    config = {**CONFIGS[architecture], **_SMALL[architecture]}
    return write_model(out, config, template_tokenizer(name), template_text(name))


@cache
def _common_tokens() -> str:
    """Return Qwen3.6's tokenizer, without control tokens and rare tokens, as JSON."""
    tokenizer = json.loads(qwen_tokenizer(Qwen.QWEN3_6, _VOCAB_SIZE).to_str())
    return json.dumps({**tokenizer, "added_tokens": []})
