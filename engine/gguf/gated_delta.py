"""Map the names and settings of hybrids with gated delta layers: qwen35, qwen35moe, qwen3next.

A layer has either full attention or a gated delta layer, which keeps a state of fixed size.
Sources: llama.cpp's conversion/qwen.py and src/models/qwen35.cpp, and mlx_lm.models.qwen3_5 and
mlx_lm.models.qwen3_next. mlx-lm stores norms as 1 + w, as GGUF files do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from engine.errors import GgufError
from engine.gguf.dense import (
    ATTENTION,
    EXPERTS,
    FEED_FORWARD,
    HEAD_NORMS,
    OUTER,
    expert_config,
    head_dim,
)
from engine.gguf.parts import (
    ArchitectureKeys,
    Change,
    Form,
    ModelPlan,
    Reorder,
    WeightPart,
    grouped_heads,
    interleaved_by_key_head,
    same,
)

_NORMS: Final = {
    "attn_norm.weight": "input_layernorm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
}
_FULL_ATTENTION: Final = {**ATTENTION, **HEAD_NORMS}
_SHARED_EXPERT: Final = {
    "ffn_gate_shexp.weight": "mlp.shared_expert.gate_proj.weight",
    "ffn_up_shexp.weight": "mlp.shared_expert.up_proj.weight",
    "ffn_down_shexp.weight": "mlp.shared_expert.down_proj.weight",
}
_INTERVAL: Final = 4  # Each fourth layer has full attention, unless the file states otherwise.


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeltaSizes:
    """The sizes of the gated delta layers."""

    num_key_heads: int
    num_value_heads: int
    key_size: int
    value_size: int
    kernel: int

    def config(self) -> Mapping[str, object]:
        return {
            "linear_num_key_heads": self.num_key_heads,
            "linear_num_value_heads": self.num_value_heads,
            "linear_key_head_dim": self.key_size,
            "linear_value_head_dim": self.value_size,
            "linear_conv_kernel_dim": self.kernel,
        }


def plan_qwen35(keys: ArchitectureKeys) -> ModelPlan:
    return _plan_qwen35(keys, FEED_FORWARD, _width_of_feed_forward(keys))


def plan_qwen35moe(keys: ArchitectureKeys) -> ModelPlan:
    return _plan_qwen35(keys, EXPERTS | _SHARED_EXPERT, _shared_expert_config(keys))


def plan_qwen3next(keys: ArchitectureKeys) -> ModelPlan:
    """Plan a Qwen3-Next. mlx-lm has one input projection, interleaved by key head."""
    sizes = _sizes(keys)
    per_key_head = sizes.num_value_heads // sizes.num_key_heads * sizes.value_size

    def delta(before: str, after: str) -> tuple[WeightPart, ...]:
        unchanged = {
            "ssm_ba.weight": "in_proj_ba.weight",
            "ssm_dt.bias": "dt_bias",
            "ssm_norm.weight": "norm.weight",
            "ssm_out.weight": "out_proj.weight",
        }
        return (
            *same(unchanged, before, f"{after}linear_attn."),
            WeightPart(
                name=f"{after}linear_attn.in_proj_qkvz.weight",
                tensors=(f"{before}attn_qkv.weight", f"{before}attn_gate.weight"),
                rows=interleaved_by_key_head(sizes.num_key_heads, sizes.key_size, per_key_head),
            ),
            _a_log(before, after, None),
            _convolution(before, after, None),
        )

    interval = _attention_interval(keys)
    extra: dict[str, object] = {
        **_shared_expert_config(keys),
        **sizes.config(),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "full_attention_interval": interval,
        "head_dim": head_dim(keys),
        "rope_theta": keys.number("rope.freq_base", 10_000),
        "partial_rotary_factor": _rotary_share(keys),
    }
    keys.require("rope.scaling.type", "none")
    return _plan(keys, extra, EXPERTS | _SHARED_EXPERT, delta, prefix="")


def _plan_qwen35(
    keys: ArchitectureKeys,
    feed_forward: Mapping[str, str],
    feed_forward_config: Mapping[str, object],
) -> ModelPlan:
    sizes = _sizes(keys)
    sections = keys.integers("rope.dimension_sections")[:3]
    keys.require("rope.scaling.type", "none")
    extra = {
        **feed_forward_config,
        **sizes.config(),
        "full_attention_interval": _attention_interval(keys),
        "head_dim": head_dim(keys),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": keys.number("rope.freq_base", 10_000),
            "partial_rotary_factor": _rotary_share(keys),
            "mrope_section": sections,
        },
    }

    def delta(before: str, after: str) -> tuple[WeightPart, ...]:
        return _qwen35_delta(sizes, before, f"{after}linear_attn.")

    return _plan(keys, extra, feed_forward, delta, prefix="language_model.")


def _qwen35_delta(sizes: _DeltaSizes, before: str, after: str) -> tuple[WeightPart, ...]:
    """Return the weights of a gated delta layer of Qwen3.5. llama.cpp reorders its value heads."""

    def grouped(size: int, skipped: int = 0) -> Reorder:
        return grouped_heads(skipped, sizes.num_key_heads, sizes.num_value_heads, size)

    queries_and_keys = 2 * sizes.num_key_heads * sizes.key_size
    rows = {
        "attn_qkv.weight": ("in_proj_qkv.weight", grouped(sizes.value_size, queries_and_keys)),
        "attn_gate.weight": ("in_proj_z.weight", grouped(sizes.value_size)),
        "ssm_beta.weight": ("in_proj_b.weight", grouped(1)),
        "ssm_alpha.weight": ("in_proj_a.weight", grouped(1)),
    }
    return (
        *same({"ssm_norm.weight": "norm.weight"}, before, after),
        *(
            WeightPart(name=after + ours, tensors=(before + theirs,), rows=order)
            for theirs, (ours, order) in rows.items()
        ),
        # A vector has one row, so its values are columns.
        WeightPart(name=f"{after}dt_bias", tensors=(f"{before}ssm_dt.bias",), columns=grouped(1)),
        WeightPart(
            name=f"{after}out_proj.weight",
            tensors=(f"{before}ssm_out.weight",),
            columns=grouped(sizes.value_size),
        ),
        _a_log(before, after.removesuffix("linear_attn."), grouped(1)),
        _convolution(
            before,
            after.removesuffix("linear_attn."),
            grouped(sizes.value_size, queries_and_keys),
        ),
    )


def _a_log(before: str, after: str, order: Reorder | None) -> WeightPart:
    return WeightPart(
        name=f"{after}linear_attn.A_log",
        tensors=(f"{before}ssm_a",),
        columns=order,
        change=Change.LOG_OF_NEGATED,
    )


def _convolution(before: str, after: str, order: Reorder | None) -> WeightPart:
    return WeightPart(
        name=f"{after}linear_attn.conv1d.weight",
        tensors=(f"{before}ssm_conv1d.weight",),
        rows=order,
        form=Form.CONVOLUTION,
    )


def _plan(
    keys: ArchitectureKeys,
    extra: Mapping[str, object],
    feed_forward: Mapping[str, str],
    delta: Callable[[str, str], tuple[WeightPart, ...]],
    prefix: str,
) -> ModelPlan:
    """Plan all layers.

    Args:
        keys: the metadata.
        extra: fields of config.json beside those that all architectures have.
        feed_forward: names of the feed-forward part of each layer.
        delta: returns the weights of a gated delta layer. The arguments are the prefixes of the
            names in the GGUF file and in mlx-lm.
        prefix: prefix of all names in mlx-lm.
    """
    # The last layers of a file may predict drafts of several tokens. mlx-lm does not use them.
    num_drafts = keys.integer("nextn_predict_layers", 0)
    num_all = keys.num_layers()
    num_layers = num_all - num_drafts
    if num_drafts < 0 or num_layers < 1:
        raise GgufError(f"It claims {num_drafts:,} draft layers of {num_all:,} layers.")
    interval = _attention_interval(keys)
    parts = list(same(OUTER, after=prefix))
    for i in range(num_layers):
        before, after = f"blk.{i}.", f"{prefix}model.layers.{i}."
        parts += same({**_NORMS, **feed_forward}, before, after)
        if (i + 1) % interval:
            parts += delta(before, after)
        else:
            parts += same(_FULL_ATTENTION, before, after)
        if "ffn_gate_inp.weight" in feed_forward:
            parts.append(_shared_gate(before, after))
    config = {
        "hidden_size": keys.count("embedding_length"),
        "num_hidden_layers": num_layers,
        "num_attention_heads": keys.heads("attention.head_count"),
        "num_key_value_heads": keys.heads("attention.head_count_kv"),
        "max_position_embeddings": keys.count("context_length"),
        "rms_norm_eps": keys.number("attention.layer_norm_rms_epsilon"),
        **extra,
    }
    return ModelPlan(
        config=config,
        num_layers=num_layers,
        parts=tuple(parts),
        skipped=tuple(f"blk.{i}." for i in range(num_layers, num_all)),
    )


def _shared_gate(before: str, after: str) -> WeightPart:
    return WeightPart(
        name=f"{after}mlp.shared_expert_gate.weight",
        tensors=(f"{before}ffn_gate_inp_shexp.weight",),
        form=Form.ONE_ROW,
    )


def _sizes(keys: ArchitectureKeys) -> _DeltaSizes:
    num_key_heads = keys.heads("ssm.group_count")
    num_value_heads = keys.heads("ssm.time_step_rank")
    inner_size = keys.count("ssm.inner_size")
    if num_value_heads % num_key_heads or inner_size % num_value_heads:
        raise GgufError(
            f"Its {num_value_heads} value heads do not fit its {num_key_heads} key heads "
            f"and an inner size of {inner_size:,}."
        )
    return _DeltaSizes(
        num_key_heads=num_key_heads,
        num_value_heads=num_value_heads,
        key_size=keys.count("ssm.state_size"),
        value_size=inner_size // num_value_heads,
        kernel=keys.heads("ssm.conv_kernel"),
    )


def _attention_interval(keys: ArchitectureKeys) -> int:
    interval = keys.heads("full_attention_interval", _INTERVAL)
    if keys.has("attention.recurrent_layers"):
        num_layers = keys.num_layers() - keys.integer("nextn_predict_layers", 0)
        recurrent = [bool(value) for value in keys.integers("attention.recurrent_layers")]
        if recurrent[:num_layers] != [bool((i + 1) % interval) for i in range(num_layers)]:
            raise GgufError("Its layers with full attention do not follow each other regularly.")
    return interval


def _rotary_share(keys: ArchitectureKeys) -> float:
    """Return the share of a head's values that the rotary embedding turns."""
    size = head_dim(keys)
    return keys.count("rope.dimension_count", size) / size


def _width_of_feed_forward(keys: ArchitectureKeys) -> Mapping[str, object]:
    return {"intermediate_size": keys.count("feed_forward_length")}


def _shared_expert_config(keys: ArchitectureKeys) -> Mapping[str, object]:
    return {
        **expert_config(keys),
        "intermediate_size": keys.count("feed_forward_length", 1),
        "shared_expert_intermediate_size": keys.count("expert_shared_feed_forward_length"),
    }
