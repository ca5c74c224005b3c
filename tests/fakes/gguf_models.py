"""Tiny random models of mlx-lm's classes, written as GGUF files by the rules of llama.cpp.

The rules are those of llama.cpp's published conversion (conversion/*.py), applied to mlx-lm's
weights: this module goes from mlx-lm to GGUF, the importer goes back. mlx-lm already stores norms
of qwen3_5 and qwen3_next as 1 + w and stacks experts, so these steps of the conversion are no-ops.
All weights are numbers that float16 can represent.
"""

# mlx.utils is partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten
from numpy.typing import NDArray

from engine.gguf.header import Value
from engine.gguf.reader import TensorKind
from tests.fakes.gguf_writer import WrittenTensor, gguf_bytes, plain_tensor, tiny_metadata
from tests.fakes.tiny_model import Config, make_model

Weights = dict[str, NDArray[np.float32]]

VOCAB_SIZE: Final = len(tiny_metadata()["tokenizer.ggml.tokens"])  # pyright: ignore[reportArgumentType]
_BASE: Final[Config] = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 4096,
    "vocab_size": VOCAB_SIZE,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": True,
}
_EXPERTS: Final[Config] = {
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
_DELTA: Final[Config] = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4,
    "head_dim": 32,
}
_QWEN35: Final[Config] = {
    **_BASE,
    **_DELTA,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000000.0,
        "partial_rotary_factor": 0.25,
        "mrope_section": [2, 1, 1],
    },
}
# Key: name of the architecture in GGUF. Value: configuration of mlx-lm's class.
CONFIGS: Final[Mapping[str, Config]] = {
    "llama": {**_BASE, "model_type": "llama", "head_dim": 32},
    "qwen2": {**_BASE, "model_type": "qwen2"},
    "qwen3": {**_BASE, "model_type": "qwen3", "head_dim": 32, "tie_word_embeddings": False},
    "qwen3moe": {**_BASE, **_EXPERTS, "model_type": "qwen3_moe", "head_dim": 32},
    "qwen35": {**_QWEN35, "model_type": "qwen3_5"},
    "qwen35moe": {
        **_QWEN35,
        **_EXPERTS,
        "model_type": "qwen3_5_moe",
        "shared_expert_intermediate_size": 64,
        "tie_word_embeddings": False,
    },
    "qwen3next": {
        **_BASE,
        **_DELTA,
        **_EXPERTS,
        "model_type": "qwen3_next",
        "shared_expert_intermediate_size": 64,
        "partial_rotary_factor": 0.25,
    },
    "gemma3": {
        **_BASE,
        "model_type": "gemma3_text",
        "num_hidden_layers": 7,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "query_pre_attn_scalar": 32,
        "sliding_window": 8,
        "sliding_window_pattern": 6,
        "rope_local_base_freq": 10000.0,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "lfm2": {
        **_BASE,
        "model_type": "lfm2",
        "norm_eps": 1e-5,
        "conv_bias": False,
        "conv_L_cache": 3,
        "block_dim": 64,
        "block_ff_dim": 128,
        "block_multiple_of": 32,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": True,
        "layer_types": ["conv", "conv", "full_attention", "conv"],
    },
    "phi3": {
        **_BASE,
        "model_type": "phi3",
        "partial_rotary_factor": 0.5,
        "original_max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    },
}
# Models with scaled rotary embeddings, as in Llama 3.1 and Phi-3 with a context of 128,000 tokens.
# Key: name for tests. Value: the architecture and the fields that differ from CONFIGS.
SCALED: Final[Mapping[str, tuple[str, Config]]] = {
    "llama3": (
        "llama",
        {
            "rope_theta": 500000.0,
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": 32.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
        },
    ),
    "phi3_long": (
        "phi3",
        {
            "original_max_position_embeddings": 64,
            "rope_scaling": {
                "type": "longrope",
                "short_factor": [1.0, 1.0, 1.25, 1.5],
                "long_factor": [1.0, 1.5, 4.0, 30.0],
            },
        },
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyModel:
    """A random model of mlx-lm's class, and the content of a GGUF file of it."""

    architecture: str
    config: Config
    weights: Weights  # by mlx-lm's names
    metadata: dict[str, Value]
    tensors: Weights  # by GGUF's names

    def written(self) -> list[WrittenTensor]:
        return [plain_tensor(name, TensorKind.F32, it) for name, it in self.tensors.items()]

    def to_bytes(self) -> bytes:
        return gguf_bytes(self.metadata, self.written())

    def model(self) -> Any:
        """Return the model of mlx-lm with these weights, in float32."""
        model = make_model(self.config)
        arrays = {name: mx.array(values) for name, values in self.weights.items()}
        if "lm_head.weight" not in arrays:
            model.pop("lm_head", None)
            model.tie_word_embeddings = True
        model.update(tree_unflatten(list(arrays.items())))
        mx.eval(model.parameters())
        return model


def tiny_gguf(name: str, seed: int = 7) -> TinyModel:
    """Return the model of a key of CONFIGS or SCALED."""
    architecture, changes = SCALED[name] if name in SCALED else (name, Config())
    config = copy.deepcopy({**CONFIGS[architecture], **changes})
    weights = _random_weights(config, seed)
    if architecture == "gemma3":
        del weights["lm_head.weight"]  # Gemma 3 uses its embeddings.
    return TinyModel(
        architecture=architecture,
        config=config,
        weights=weights,
        metadata=tiny_metadata() | _metadata(architecture, config),
        tensors=_tensors(architecture, config, weights) | _factors(config),
    )


def _random_weights(config: Config, seed: int) -> Weights:
    rng = np.random.default_rng(seed)
    parameters: dict[str, Any] = dict(tree_flatten(make_model(config).parameters()))
    shapes: dict[str, tuple[int, ...]] = {name: array.shape for name, array in parameters.items()}
    return {name: _drawn(name, shape, rng) for name, shape in sorted(shapes.items())}


def _drawn(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    if name.endswith("A_log"):
        values = rng.uniform(-1, 1, shape)
    elif len(shape) == 1 and "norm" in name:
        values = rng.normal(1, 0.2, shape)
    elif len(shape) == 1:
        values = rng.normal(0, 0.3, shape)
    else:
        # Wide enough that logits differ by more than rounding errors.
        values = rng.normal(0, 2 / np.sqrt(shape[-1] if shape[-1] > 1 else 3), shape)
    return values.astype(np.float16).astype(np.float32)


# The names of gguf-py/gguf/constants.py, by the ending of mlx-lm's name.
_NAMES: Final[Mapping[str, str]] = {
    "model.embed_tokens": "token_embd",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.switch_mlp.gate_proj": "ffn_gate_exps",
    "mlp.switch_mlp.up_proj": "ffn_up_exps",
    "mlp.switch_mlp.down_proj": "ffn_down_exps",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_ba": "ssm_ba",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
    "input_layernorm": "attn_norm",
    "model.embedding_norm": "token_embd_norm",
    "operator_norm": "attn_norm",
    "ffn_norm": "ffn_norm",
    "feed_forward.w1": "ffn_gate",
    "feed_forward.w2": "ffn_down",
    "feed_forward.w3": "ffn_up",
    "self_attn.out_proj": "attn_output",
    "self_attn.q_layernorm": "attn_q_norm",
    "self_attn.k_layernorm": "attn_k_norm",
    "conv.in_proj": "shortconv.in_proj",
    "conv.out_proj": "shortconv.out_proj",
    "conv.conv": "shortconv.conv",
    "model.norm": "output_norm",
}
# mlx-lm's post_attention_layernorm is the norm before the feed-forward part, except in Gemma 3.
_OF_HYBRIDS: Final = {"post_attention_layernorm": "post_attention_norm"}
_NORMS: Final[Mapping[str, Mapping[str, str]]] = {
    "qwen35": _OF_HYBRIDS,
    "qwen35moe": _OF_HYBRIDS,
    "qwen3next": _OF_HYBRIDS,
    "gemma3": {
        "post_attention_layernorm": "post_attention_norm",
        "pre_feedforward_layernorm": "ffn_norm",
        "post_feedforward_layernorm": "post_ffw_norm",
    },
}


def _tensors(architecture: str, config: Config, weights: Weights) -> Weights:
    names = {
        **_NAMES,
        **_NORMS.get(architecture, {"post_attention_layernorm": "ffn_norm"}),
    }
    tensors: Weights = {}
    for name, values in weights.items():
        before, short = _divided(name.removeprefix("language_model."))
        if short == "linear_attn.in_proj_qkvz.weight":
            qkv, z = _split_qkvz(config, values)
            tensors |= {f"{before}attn_qkv.weight": qkv, f"{before}attn_gate.weight": z}
            continue
        module, _, suffix = short.rpartition(".")
        ours = {"A_log": "ssm_a", "dt_bias": "ssm_dt.bias"}.get(suffix)
        tensors[before + (ours or f"{names[module]}.{suffix}")] = _converted(
            architecture, config, short, values
        )
    return tensors


def _factors(config: Config) -> Weights:
    """Apply generate_extra_tensors of the architecture's class in llama.cpp's conversion."""
    scaling = config.get("rope_scaling", {})
    if "long_factor" in scaling:
        return {
            f"rope_factors_{name}.weight": np.array(scaling[f"{name}_factor"], np.float32)
            for name in ("long", "short")
        }
    if scaling.get("rope_type") != "llama3":
        return {}
    old = scaling["original_max_position_embeddings"]
    low, high, factor = (scaling[key] for key in ("low_freq_factor", "high_freq_factor", "factor"))
    factors: list[float] = []
    for i in range(0, config["head_dim"], 2):
        wavelength = 2 * np.pi * config["rope_theta"] ** (i / config["head_dim"])
        if wavelength < old / high:
            factors.append(1)
        elif wavelength > old / low:
            factors.append(factor)
        else:
            smooth = (old / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return {"rope_freqs.weight": np.array(factors, np.float32)}


def _divided(name: str) -> tuple[str, str]:
    """Return the prefix of a layer's tensors in GGUF and the rest of mlx-lm's name."""
    if not name.startswith("model.layers."):
        return "", name
    index, _, rest = name.removeprefix("model.layers.").partition(".")
    return f"blk.{index}.", rest


def _converted(
    architecture: str, config: Config, short: str, values: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Apply modify_tensors of the architecture's class in llama.cpp's conversion."""
    if architecture in ("qwen35", "qwen35moe") and "linear_attn" in short:
        values = _reordered(config, short, values)
    if short.endswith("A_log"):
        return -np.exp(values)
    if short.endswith(("conv1d.weight", "conv.conv.weight")):
        return values.squeeze(-1)
    if short.endswith("shared_expert_gate.weight"):
        return values.squeeze(0)
    if architecture == "gemma3" and "norm" in short:
        return values + 1
    if architecture == "llama" and short.endswith(("q_proj.weight", "k_proj.weight")):
        key = "num_attention_heads" if "q_proj" in short else "num_key_value_heads"
        halves = values.reshape(config[key], 2, -1, values.shape[-1])
        return halves.swapaxes(1, 2).reshape(values.shape)
    return values


def _reordered(config: Config, short: str, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Move value heads from the order by key head to the tiled order of ggml's broadcast."""
    num_keys, num_values = config["linear_num_key_heads"], config["linear_num_value_heads"]
    size, num_qk = config["linear_value_head_dim"], 2 * num_keys * config["linear_key_head_dim"]

    def tiled(part: NDArray[np.float32], head_size: int) -> NDArray[np.float32]:
        grouped = part.reshape(num_keys, num_values // num_keys, head_size, *part.shape[1:])
        return grouped.swapaxes(0, 1).reshape(part.shape)

    match short.removeprefix("linear_attn."):
        case "in_proj_qkv.weight" | "conv1d.weight":
            return np.concatenate([values[:num_qk], tiled(values[num_qk:], size)])
        case "in_proj_z.weight":
            return tiled(values, size)
        case "in_proj_a.weight" | "in_proj_b.weight" | "A_log" | "dt_bias":
            return tiled(values, 1)
        case "out_proj.weight":
            return tiled(values.T, size).T
        case _:
            return values


def _split_qkvz(
    config: Config, values: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    num_keys, key_size = config["linear_num_key_heads"], config["linear_key_head_dim"]
    per_key = config["linear_num_value_heads"] // num_keys * config["linear_value_head_dim"]
    heads = values.reshape(num_keys, -1, values.shape[-1])
    ends = np.cumsum([key_size, key_size, per_key])
    q, k, v, z = (part.reshape(-1, values.shape[-1]) for part in np.split(heads, ends, axis=1))
    return np.concatenate([q, k, v]), z


def _metadata(architecture: str, config: Config) -> dict[str, Value]:
    """Return what set_gguf_parameters of the architecture's class writes."""
    width, num_heads = config["hidden_size"], config["num_attention_heads"]
    head_dim = config.get("head_dim", width // num_heads)
    values: dict[str, Value] = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": width,
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": num_heads,
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "rope.freq_base": config["rope_theta"],
    }
    if "head_dim" in config:
        values |= {"attention.key_length": head_dim, "attention.value_length": head_dim}
    if "num_experts" in config:
        values |= {
            "expert_count": config["num_experts"],
            "expert_used_count": config["num_experts_per_tok"],
            "expert_feed_forward_length": config["moe_intermediate_size"],
        }
    if "shared_expert_intermediate_size" in config:
        values["expert_shared_feed_forward_length"] = config["shared_expert_intermediate_size"]
    if "linear_num_key_heads" in config:
        num_values = config["linear_num_value_heads"]
        values |= {
            "ssm.conv_kernel": config["linear_conv_kernel_dim"],
            "ssm.state_size": config["linear_key_head_dim"],
            "ssm.group_count": config["linear_num_key_heads"],
            "ssm.time_step_rank": num_values,
            "ssm.inner_size": config["linear_value_head_dim"] * num_values,
            "full_attention_interval": config["full_attention_interval"],
            "rope.dimension_count": head_dim // 4,
        }
    values |= _OTHER_METADATA.get(architecture, {})
    if "original_max_position_embeddings" in config:
        original = config["original_max_position_embeddings"]
        share = config["max_position_embeddings"] / original
        values["rope.scaling.original_context_length"] = original
        if share > 1:
            values["rope.scaling.attn_factor"] = float(
                np.sqrt(1 + np.log(share) / np.log(original))
            )
    if "rope_parameters" in config:
        values["rope.freq_base"] = config["rope_parameters"]["rope_theta"]
    pre = {"llama": "smollm", "lfm2": "lfm2", "qwen35": "qwen35", "qwen35moe": "qwen35"}
    return {
        **{f"{architecture}.{key}": value for key, value in values.items()},
        "general.architecture": architecture,
        "tokenizer.ggml.pre": pre.get(architecture, "qwen2"),
    }


_OTHER_METADATA: Final[Mapping[str, Mapping[str, Value]]] = {
    "llama": {"rope.dimension_count": 32},
    "qwen35": {"rope.dimension_sections": [2, 1, 1, 0]},
    "qwen35moe": {"rope.dimension_sections": [2, 1, 1, 0]},
    "gemma3": {
        "attention.sliding_window": 8,
        "rope.freq_base_swa": 10000.0,
        "rope.scaling.type": "linear",
        "rope.scaling.factor": 8.0,
    },
    "lfm2": {
        "attention.head_count_kv": [0, 0, 2, 0],
        "attention.layer_norm_rms_epsilon": 1e-5,
        "shortconv.l_cache": 3,
        # 2 / 3 of block_ff_dim, rounded up to a multiple of block_multiple_of
        "feed_forward_length": 96,
    },
    "phi3": {
        "rope.dimension_count": 8,
        "attention.sliding_window": 0,
    },
}
