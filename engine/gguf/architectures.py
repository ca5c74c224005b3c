"""What a GGUF architecture is called in mlx-lm: one table entry each.

An entry names tensors, configuration fields and what llama.cpp has reordered.
Nothing here reads tensor data.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final

from engine.errors import GgufError
from engine.gguf.reader import Metadata


@dataclass(frozen=True, slots=True)
class Field:
    """A number of config.json: its metadata key, and its value where the file lacks it."""

    key: str
    default: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One kind of model that can be imported."""

    name: str
    model_type: str
    model_class: str
    outer: Mapping[str, str]  # tensors outside the layers
    layer: Mapping[str, str]  # tensors of each layer
    optional: frozenset[str]  # those of `outer` that a file may lack
    integers: Mapping[str, Field]
    numbers: Mapping[str, Field]
    constants: Mapping[str, str]
    # Tensors of a layer whose rows llama.cpp interleaves for its rotary embedding, with the field
    # that tells in how many heads.
    interleaved: Mapping[str, str]
    # Metadata that changes the arithmetic, with the only value that is understood.
    fixed: Mapping[str, int | str]


_LLAMA: Final = Architecture(
    name="llama",
    model_type="llama",
    model_class="LlamaForCausalLM",
    outer={
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
        "output": "lm_head",
    },
    optional=frozenset({"output"}),
    layer={
        "attn_norm": "input_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    },
    integers={
        "hidden_size": Field("embedding_length"),
        "num_hidden_layers": Field("block_count"),
        "intermediate_size": Field("feed_forward_length"),
        "num_attention_heads": Field("attention.head_count"),
        "num_key_value_heads": Field("attention.head_count_kv"),
        "head_dim": Field("rope.dimension_count"),
        "max_position_embeddings": Field("context_length"),
    },
    numbers={
        "rms_norm_eps": Field("attention.layer_norm_rms_epsilon"),
        "rope_theta": Field("rope.freq_base", 10_000),
    },
    constants={"hidden_act": "silu"},
    interleaved={
        "attn_q": "num_attention_heads",
        "attn_k": "num_key_value_heads",
    },
    fixed={"rope.scaling.type": "none", "expert_count": 0},
)

ARCHITECTURES: Final[Mapping[str, Architecture]] = {entry.name: entry for entry in (_LLAMA,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigNumbers:
    """The numbers of config.json, by their names there."""

    integers: Mapping[str, int]
    numbers: Mapping[str, float]


def find_architecture(metadata: Metadata) -> Architecture:
    name = metadata.text("general.architecture")
    if name not in ARCHITECTURES:
        have = ", ".join(ARCHITECTURES)
        raise GgufError(f"Its architecture is {name[:60]!r}; what can be imported is: {have}.")
    architecture = ARCHITECTURES[name]
    for key, understood in architecture.fixed.items():
        if (value := metadata.values.get(f"{name}.{key}", understood)) != understood:
            raise GgufError(f"Its {name}.{key} is {value!r}; only {understood!r} can be imported.")
    return architecture


def read_settings(architecture: Architecture, metadata: Metadata) -> ConfigNumbers:
    def key(field: Field) -> str:
        return f"{architecture.name}.{field.key}"

    return ConfigNumbers(
        integers={
            name: metadata.integer(key(field), field.default)
            for name, field in architecture.integers.items()
        },
        numbers={
            # The file has single precision: seven digits are what was meant (1e-05, not 9.9999997e-06).
            name: float(f"{metadata.number(key(field), field.default):.7g}")
            for name, field in architecture.numbers.items()
        },
    )


def module_names(architecture: Architecture, num_layers: int, present: Set[str]) -> dict[str, str]:
    """Each tensor's module in mlx-lm. What is missing, or not understood, is told."""
    outer = {f"{tensor}.weight": module for tensor, module in architecture.outer.items()}
    layers = {
        f"blk.{layer}.{tensor}.weight": f"model.layers.{layer}.{module}"
        for layer in range(num_layers)
        for tensor, module in architecture.layer.items()
    }
    names = outer | layers
    optional = {f"{tensor}.weight" for tensor in architecture.optional}
    if missing := sorted(names.keys() - present - optional):
        raise GgufError(
            f"It lacks {len(missing)} of the model’s tensors, for example {missing[0]}."
        )
    if unknown := sorted(present - names.keys()):
        raise GgufError(
            f"It holds tensors that a model of architecture {architecture.name!r} "
            f"is not known to have, for example {unknown[0]}."
        )
    return {tensor: names[tensor] for tensor in names if tensor in present}
