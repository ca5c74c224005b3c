"""Complete folders of tiny models with random weights, for mlx-lm's own model classes.

    python -m tests.fakes.tiny_model OUT [--names NAME ...]

A folder takes a few hundred kB. CONFIGS has a shrunken configuration for each kind of layer state:
attention, recurrent, convolution, sliding window. The weights depend on the configuration only.
They have a wide spread, so that rounding errors never change which token is likeliest. All models
share one small BPE tokenizer, trained here, and get one of two chat templates: `keeping` renders
replies unchanged; `thinking` opens a reasoning block in the prompt and drops the thoughts of
earlier turns, as Qwen3.5's template does.
"""

# mlx.utils and tokenizers are partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import argparse
import copy
import importlib
import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten, tree_map_with_path
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from engine.catalog.architectures import installed_architectures

Config = dict[str, Any]


class Template(StrEnum):
    KEEPING = "keeping"
    THINKING = "thinking"


_KEEPING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_THINKING = (
    "{% set ns = namespace(last=0) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and loop.index0 > ns.last %}"
    "<think>\n{{ m.reasoning_content | default('') | trim }}\n</think>\n\n{% endif %}"
    "{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}{% endif %}"
)
TEMPLATES = {Template.KEEPING: _KEEPING, Template.THINKING: _THINKING}

_CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps on. What is the weather like?",
    "A list of numbers: 0 1 2 3 4 5 6 7 8 9 10 11 12. Please write a short story about a small boat.",
    "def add(first, second):\n    return first + second\n\nThank you. Could you say that in other words?",
    "Of course. In other words, the function returns the sum of both of its arguments.\n",
]
_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
_MARKERS = ["<think>", "</think>"]

# Configuration keys that, like vocab_size, contain the size of a vocabulary.
_VOCABULARIES = {"num_vocab", "embedding_size", "vocab_size_per_layer_input"}

_ATTENTION = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 32768,
}
_DELTA_NET = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 2,
}
_QWEN = {
    **_ATTENTION,
    **_DELTA_NET,
    "num_hidden_layers": 2,
    "head_dim": 32,
    "attn_output_gate": True,
    "tie_word_embeddings": True,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000000,
        "partial_rotary_factor": 0.25,
        "mrope_section": [11, 11, 10],
        "mrope_interleaved": True,
    },
}
_EXPERTS = {
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
}

CONFIGS: dict[str, Config] = {
    "qwen3_5": {
        "model_type": "qwen3_5",
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "text_config": {"model_type": "qwen3_5_text", **_QWEN},
        "vision_config": {"model_type": "qwen3_5"},
    },
    "qwen3_5_moe": {
        "model_type": "qwen3_5_moe",
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "text_config": {
            "model_type": "qwen3_5_moe_text",
            **_QWEN,
            **_EXPERTS,
            "tie_word_embeddings": False,
        },
    },
    "lfm2": {
        "model_type": "lfm2",
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128000,
        "norm_eps": 1e-5,
        "conv_bias": False,
        "conv_L_cache": 3,
        "block_dim": 64,
        "block_ff_dim": 128,
        "block_multiple_of": 32,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": False,
        "rope_theta": 1000000.0,
        "layer_types": ["conv", "full_attention", "conv"],
        "tie_word_embeddings": True,
    },
    "falcon_h1": {
        "model_type": "falcon_h1",
        "hidden_size": 64,
        "head_dim": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
        "mamba_d_ssm": 64,
        "mamba_d_head": 16,
        "mamba_n_heads": 4,
        "mamba_d_state": 16,
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
        "max_position_embeddings": 131072,
        "rope_theta": 1e11,
    },
    "mamba2": {
        "model_type": "mamba2",
        "num_heads": 4,
        "head_dim": 32,
        "hidden_size": 64,
        "intermediate_size": 128,
        "state_size": 16,
        "num_hidden_layers": 4,
        "layer_norm_epsilon": 1e-5,
        "conv_kernel": 4,
        "n_groups": 1,
        "use_bias": False,
        "use_conv_bias": True,
        "tie_word_embeddings": True,
        "time_step_limit": [0.001, 100.0],
        "time_step_rank": 4,
    },
    "gemma3": {
        "model_type": "gemma3_text",
        "sliding_window": 32,
        "sliding_window_pattern": 2,
        "query_pre_attn_scalar": 16,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        **_ATTENTION,
        "num_hidden_layers": 2,
        "num_key_value_heads": 1,
    },
    "llama": {
        "model_type": "llama",
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        **_ATTENTION,
        "num_hidden_layers": 2,
    },
    # Enough layers for three stages. Its greedy replies repeat themselves.
    "deep_llama": {
        "model_type": "llama",
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        **_ATTENTION,
    },
}


def build_tiny(
    name: str,
    out: Path,
    template: Template = Template.KEEPING,
    configs: Mapping[str, Config] = CONFIGS,
) -> Path:
    """Write the model folder `out` and return it. The weights depend on the configuration only."""
    return write_model(out, configs[name], train_tokenizer(), TEMPLATES[template])


def write_model(out: Path, config: Config, tokenizer: Tokenizer, template: str) -> Path:
    """Write the model folder `out` and return it. _complete() adds missing keys to `config`."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"))
    config = _complete(config, tokenizer)
    mx.random.seed(7)
    model = make_model(config)
    model.update(tree_map_with_path(_drawn, model.parameters()))
    weights = dict(tree_flatten(model.parameters()))
    mx.save_safetensors(str(out / "model.safetensors"), weights, metadata={"format": "mlx"})
    _write_json(out / "config.json", config)
    _write_json(out / "generation_config.json", {"eos_token_id": config["eos_token_id"]})
    (out / "chat_template.jinja").write_text(template, encoding="utf-8")
    _write_json(
        out / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "bos_token": None,
            "clean_up_tokenization_spaces": False,
            "model_max_length": 262144,
        },
    )
    return out


def make_model(config: Config) -> Any:
    """Return a model of mlx-lm's own class with the weights of its constructor."""
    classes = tuple(config.get("architectures", ()))
    module = installed_architectures().module(config["model_type"], classes)
    architecture = importlib.import_module(f"mlx_lm.models.{module}")
    # A copy, because mlx-lm's classes modify the dictionary.
    return architecture.Model(architecture.ModelArgs.from_dict(copy.deepcopy(config)))


def _complete(config: Config, tokenizer: Tokenizer) -> Config:
    """Return a copy of config with the tokenizer's end token. Add vocab_size if config has none."""
    config = copy.deepcopy(config)
    for part in (config, config.get("text_config", {})):
        part["eos_token_id"] = tokenizer.token_to_id("<|im_end|>")
        part.setdefault("vocab_size", tokenizer.get_vocab_size())
        for key in _VOCABULARIES & part.keys():
            part[key] = part["vocab_size"]
    return config


def _drawn(path: str, array: mx.array) -> mx.array:
    """Return a weight with a wider spread, or random values if it is all zeros."""
    if array.ndim >= 2 and not mx.any(array).item():
        # mlx-lm leaves some weights at zero, because a checkpoint always replaces them. With zeros,
        # parts of the model would have no effect.
        if array.dtype == mx.uint32:
            return mx.random.randint(0, 1 << 31, array.shape, array.dtype)
        return mx.random.normal(array.shape, scale=0.1).astype(array.dtype)
    # Three times the default spread, so that logits differ by more than rounding errors.
    return array * 3.0 if path.endswith("weight") and array.ndim == 2 else array


def train_tokenizer() -> Tokenizer:
    """Return a new byte-level BPE tokenizer of 420 tokens and Qwen's control tokens."""
    return Tokenizer.from_str(_trained())


@cache
def _trained() -> str:
    """Train the tokenizer, once in a process, and return it as JSON."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(_CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in _SPECIAL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in _MARKERS])
    return tokenizer.to_str()


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build tiny random models.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--names", nargs="+", choices=CONFIGS, default=[*CONFIGS])
    args = parser.parse_args()
    for name in args.names:
        for template in Template:
            build_tiny(name, args.folder / f"{name}-{template}", template)


if __name__ == "__main__":
    main()
