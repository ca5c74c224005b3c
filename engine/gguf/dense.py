"""Map the names and settings of transformers without recurrent state, and of lfm2.

Sources: llama.cpp's conversion/*.py and gguf-py/gguf/constants.py for the names in GGUF files, and
the classes of mlx_lm.models for the names in model folders.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from engine.errors import GgufError
from engine.gguf.parts import (
    ArchitectureKeys,
    Change,
    Form,
    ModelPlan,
    WeightPart,
    interleaved_halves,
    same,
)

OUTER: Final = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
ATTENTION: Final = {
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
}
HEAD_NORMS: Final = {
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
}
FEED_FORWARD: Final = {
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}
EXPERTS: Final = {
    "ffn_gate_inp.weight": "mlp.gate.weight",
    "ffn_gate_exps.weight": "mlp.switch_mlp.gate_proj.weight",
    "ffn_up_exps.weight": "mlp.switch_mlp.up_proj.weight",
    "ffn_down_exps.weight": "mlp.switch_mlp.down_proj.weight",
}
_NORMS: Final = {
    "attn_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
}
_BIASES: Final = {
    "attn_q.bias": "self_attn.q_proj.bias",
    "attn_k.bias": "self_attn.k_proj.bias",
    "attn_v.bias": "self_attn.v_proj.bias",
}
_GEMMA_NORMS: Final = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_norm.weight": "pre_feedforward_layernorm.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
}
_PHI3: Final = {
    "attn_qkv.weight": "self_attn.qkv_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_up.weight": "mlp.gate_up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}
_LFM2_LAYER: Final = {
    "attn_norm.weight": "operator_norm.weight",
    "ffn_norm.weight": "ffn_norm.weight",
    "ffn_gate.weight": "feed_forward.w1.weight",
    "ffn_down.weight": "feed_forward.w2.weight",
    "ffn_up.weight": "feed_forward.w3.weight",
}
_LFM2_ATTENTION: Final = {
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.out_proj.weight",
    "attn_q_norm.weight": "self_attn.q_layernorm.weight",
    "attn_k_norm.weight": "self_attn.k_layernorm.weight",
}
_LFM2_CONVOLUTION: Final = {
    "shortconv.in_proj.weight": "conv.in_proj.weight",
    "shortconv.out_proj.weight": "conv.out_proj.weight",
}
_LLAMA3_FACTORS: Final = "rope_freqs.weight"
_PHI3_FACTORS: Final = ("rope_factors_long.weight", "rope_factors_short.weight")
_GEMMA_PATTERN: Final = 6  # Each sixth layer of Gemma 3 attends to the whole context.
_GEMMA_27B_LAYERS: Final = 62


def plan_llama(keys: ArchitectureKeys) -> ModelPlan:
    """Plan a llama. llama.cpp interleaves the halves of each query and key head."""
    keys.require("expert_count", 0)
    config = _config(keys)
    head_dim = keys.count("rope.dimension_count")
    _require_plain_rope(keys)
    heads = {
        "attn_q": keys.heads("attention.head_count"),
        "attn_k": keys.heads("attention.head_count_kv"),
    }

    def layer(before: str, after: str) -> tuple[WeightPart, ...]:
        parts = same({**_NORMS, **ATTENTION, **FEED_FORWARD}, before, after)
        return tuple(_with_order(part, heads) for part in parts)

    num_layers = keys.num_layers()
    extra: dict[str, object] = {"head_dim": head_dim, "hidden_act": "silu"}
    if factors := keys.vector(_LLAMA3_FACTORS):
        theta = keys.number("rope.freq_base", 10_000)
        extra["rope_scaling"] = _llama3_scaling(factors, theta, head_dim)
    return ModelPlan(
        skipped=(_LLAMA3_FACTORS,),
        config={**config, **extra},
        num_layers=num_layers,
        parts=(
            *same(OUTER),
            *(part for i in range(num_layers) for part in layer(f"blk.{i}.", f"model.layers.{i}.")),
        ),
    )


def _llama3_scaling(factors: list[float], theta: float, head_dim: int) -> Mapping[str, object]:
    """Return the settings of Llama 3 that yield the factors in the file.

    llama.cpp's conversion stores a factor for each wavelength of the rotary embedding: 1 for short
    wavelengths, a constant for long ones, and a transition between them. Only this constant differs
    between the published models.

    Raises:
        GgufError: other settings were used.
    """
    scaling = {
        "rope_type": "llama3",
        "factor": max(factors),
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    wavelengths = [2 * math.pi * theta ** (2 * i / head_dim) for i in range(len(factors))]
    expected = [_llama3_factor(length, max(factors)) for length in wavelengths]
    fits = all(
        math.isclose(ours, theirs, rel_tol=1e-4)
        for ours, theirs in zip(expected, factors, strict=True)
    )
    if 2 * len(factors) != head_dim or not fits:
        raise GgufError(f"The factors in {_LLAMA3_FACTORS} are not those of Llama 3.")
    return scaling


def _llama3_factor(wavelength: float, factor: float) -> float:
    # The share of the original frequency: 1 at 8192 / 4 tokens and less, 0 at 8192 tokens and more.
    share = min(max((8192 / wavelength - 1) / 3, 0.0), 1.0)
    return 1 / ((1 - share) / factor + share)


def _with_order(part: WeightPart, heads: Mapping[str, int]) -> WeightPart:
    (tensor,) = part.tensors
    num_heads = heads.get(tensor.split(".")[-2])
    return replace(part, rows=interleaved_halves(num_heads, tensor)) if num_heads else part


def plan_qwen2(keys: ArchitectureKeys) -> ModelPlan:
    _require_plain_rope(keys)
    _head_dim_of_width(keys)
    return _plan(keys, {}, {**_NORMS, **ATTENTION, **_BIASES, **FEED_FORWARD})


def plan_qwen3(keys: ArchitectureKeys) -> ModelPlan:
    _require_plain_rope(keys)
    extra = {"head_dim": head_dim(keys)}
    return _plan(keys, extra, {**_NORMS, **ATTENTION, **HEAD_NORMS, **FEED_FORWARD})


def plan_qwen3moe(keys: ArchitectureKeys) -> ModelPlan:
    _require_plain_rope(keys)
    extra: dict[str, object] = {
        "head_dim": head_dim(keys),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        **expert_config(keys),
    }
    return _plan(keys, extra, {**_NORMS, **ATTENTION, **HEAD_NORMS, **EXPERTS})


def plan_gemma3(keys: ArchitectureKeys) -> ModelPlan:
    """Plan a Gemma 3. The file contains 1 + w of each norm; mlx-lm adds the 1 itself."""
    keys.require("final_logit_softcapping", 0.0)
    keys.require("attention.sliding_window_pattern", _GEMMA_PATTERN)
    num_layers = keys.num_layers()
    if num_layers < _GEMMA_PATTERN:
        raise GgufError(f"It has {num_layers} layers; a Gemma 3 has at least {_GEMMA_PATTERN}.")
    size = head_dim(keys)
    # llama.cpp recognises the 27B model, which scales queries differently, by its layer count.
    is_27b = num_layers == _GEMMA_27B_LAYERS
    width, num_heads = keys.count("embedding_length"), keys.heads("attention.head_count")
    extra: dict[str, object] = {
        "head_dim": size,
        "query_pre_attn_scalar": width // num_heads if is_27b else size,
        "sliding_window": keys.count("attention.sliding_window"),
        "sliding_window_pattern": _GEMMA_PATTERN,
        "rope_local_base_freq": keys.number("rope.freq_base_swa", 10_000),
    }
    keys.require("rope.scaling.type", "none", "linear")
    if keys.has("rope.scaling.factor") and (factor := keys.number("rope.scaling.factor")) != 1:
        extra["rope_scaling"] = {"rope_type": "linear", "factor": factor}
    plan = _plan(keys, extra, {**ATTENTION, **_GEMMA_NORMS, **FEED_FORWARD}, rope_theta=1_000_000)
    parts = tuple(
        replace(part, change=Change.MINUS_ONE) if "norm" in part.tensors[0] else part
        for part in plan.parts
    )
    return replace(plan, parts=parts)


def plan_phi3(keys: ArchitectureKeys) -> ModelPlan:
    """Plan a Phi-3 or Phi-4. Queries, keys and values are one tensor, and so are gate and up."""
    _require_plain_rope(keys)
    size = _head_dim_of_width(keys)
    rotary = keys.count("rope.dimension_count", size)
    extra: dict[str, object] = {
        "partial_rotary_factor": rotary / size,
        "original_max_position_embeddings": keys.count(
            "rope.scaling.original_context_length", keys.count("context_length")
        ),
    }
    long, short = (keys.vector(name) for name in _PHI3_FACTORS)
    if long and short:
        if {2 * len(long), 2 * len(short)} != {rotary}:
            raise GgufError(
                f"The factors in {_PHI3_FACTORS[0]} do not fit {rotary} rotated values."
            )
        extra["rope_scaling"] = {"type": "longrope", "long_factor": long, "short_factor": short}
    return replace(_plan(keys, extra, {**_NORMS, **_PHI3}), skipped=_PHI3_FACTORS)


def plan_lfm2(keys: ArchitectureKeys) -> ModelPlan:
    """Plan an LFM2. Layers without key and value heads are short convolutions."""
    _require_plain_rope(keys)
    _head_dim_of_width(keys)
    keys.require("attention.sliding_window", 0)
    num_layers = keys.num_layers()
    kv_heads = keys.integers("attention.head_count_kv")
    counts = set(kv_heads) - {0}
    if len(kv_heads) != num_layers or len(counts) != 1 or min(counts) < 1:
        raise GgufError(
            f"Its {keys.architecture}.attention.head_count_kv does not fit its {num_layers} layers."
        )
    parts = list(
        same(
            {
                "token_embd.weight": "model.embed_tokens.weight",
                "token_embd_norm.weight": "model.embedding_norm.weight",
            }
        )
    )
    for i, num_kv_heads in enumerate(kv_heads):
        before, after = f"blk.{i}.", f"model.layers.{i}."
        kind = _LFM2_ATTENTION if num_kv_heads else _LFM2_CONVOLUTION
        parts += same({**_LFM2_LAYER, **kind}, before, after)
        if not num_kv_heads:
            parts.append(_short_convolution(before, after))
    width = keys.count("embedding_length")
    config = {
        "hidden_size": width,
        "num_hidden_layers": num_layers,
        "num_attention_heads": keys.heads("attention.head_count"),
        "num_key_value_heads": counts.pop(),
        "max_position_embeddings": keys.count("context_length"),
        "norm_eps": keys.number("attention.layer_norm_rms_epsilon"),
        "rope_theta": keys.number("rope.freq_base", 10_000),
        "conv_bias": False,
        "conv_L_cache": keys.heads("shortconv.l_cache"),
        "block_dim": width,
        "block_ff_dim": keys.count("feed_forward_length"),
        # feed_forward_length is the adjusted length, so mlx-lm must not adjust it again.
        "block_auto_adjust_ff_dim": False,
        "block_multiple_of": 1,
        "block_ffn_dim_multiplier": 1.0,
        "full_attn_idxs": [i for i, num_kv_heads in enumerate(kv_heads) if num_kv_heads],
    }
    return ModelPlan(config=config, num_layers=num_layers, parts=tuple(parts), optional=frozenset())


def _short_convolution(before: str, after: str) -> WeightPart:
    return WeightPart(
        name=f"{after}conv.conv.weight",
        tensors=(f"{before}shortconv.conv.weight",),
        form=Form.CONVOLUTION,
    )


def head_dim(keys: ArchitectureKeys) -> int:
    """Return the size of an attention head. It may differ from width / number of heads."""
    width, num_heads = keys.count("embedding_length"), keys.heads("attention.head_count")
    size = keys.count("attention.key_length", max(1, width // num_heads))
    keys.require("attention.value_length", size)
    return size


def expert_config(keys: ArchitectureKeys) -> Mapping[str, object]:
    """Return the fields of config.json for a mixture of experts.

    llama.cpp normalises the weights of the chosen experts in all architectures of this importer.
    """
    keys.require("expert_weights_scale", 1.0, 0.0)
    keys.require("expert_weights_norm", True)
    return {
        "num_experts": keys.heads("expert_count"),
        "num_experts_per_tok": keys.heads("expert_used_count"),
        "moe_intermediate_size": keys.count("expert_feed_forward_length"),
        "norm_topk_prob": True,
    }


def _config(keys: ArchitectureKeys, rope_theta: float = 10_000) -> dict[str, object]:
    return {
        "hidden_size": keys.count("embedding_length"),
        "num_hidden_layers": keys.num_layers(),
        "intermediate_size": keys.count("feed_forward_length", 1),
        "num_attention_heads": keys.heads("attention.head_count"),
        "num_key_value_heads": keys.heads("attention.head_count_kv"),
        "max_position_embeddings": keys.count("context_length"),
        "rms_norm_eps": keys.number("attention.layer_norm_rms_epsilon"),
        "rope_theta": keys.number("rope.freq_base", rope_theta),
    }


def _plan(
    keys: ArchitectureKeys,
    extra: Mapping[str, object],
    layer: Mapping[str, str],
    rope_theta: float = 10_000,
) -> ModelPlan:
    num_layers = keys.num_layers()
    layers = (same(layer, f"blk.{i}.", f"model.layers.{i}.") for i in range(num_layers))
    return ModelPlan(
        config={**_config(keys, rope_theta), **extra},
        num_layers=num_layers,
        parts=(*same(OUTER), *(part for parts in layers for part in parts)),
    )


def _require_plain_rope(keys: ArchitectureKeys) -> None:
    keys.require("rope.scaling.type", "none")


def _head_dim_of_width(keys: ArchitectureKeys) -> int:
    """Return width / number of heads. mlx-lm's class has no field for another size of heads."""
    width, num_heads = keys.count("embedding_length"), keys.heads("attention.head_count")
    if width % num_heads:
        raise GgufError(f"Its width of {width:,} does not fit its {num_heads:,} heads.")
    keys.require("attention.key_length", width // num_heads)
    return width // num_heads
