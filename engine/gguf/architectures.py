"""Map the tensor and metadata names of GGUF files to the names that mlx-lm uses.

`ARCHITECTURES` has one entry per supported architecture. An entry maps the names of tensors and of
configuration fields. llama.cpp reorders the rows of some tensors, and the entry lists these
tensors. The module does not read the data of tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final

from engine.errors import GgufError
from engine.gguf.reader import Metadata


@dataclass(frozen=True, slots=True)
class Field:
    """The GGUF metadata key from which a number in config.json is read."""

    key: str  # metadata key without the architecture's prefix
    default: int | None = None  # value if the key is missing; None if the key is required


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The names and settings that are needed to import one architecture."""

    name: str  # value of general.architecture in the GGUF file
    model_type: str  # value of model_type in config.json
    model_class: str  # value in the list `architectures` in config.json
    # Tensors outside the layers. Key: GGUF name. Value: mlx-lm module.
    outer: Mapping[str, str]
    # Tensors of each layer. Key: GGUF name. Value: mlx-lm module.
    layer: Mapping[str, str]
    optional: frozenset[str]  # GGUF names of tensors in `outer` that a file may lack
    # Integer fields of config.json. Key: field name. Value: the GGUF metadata to read.
    integers: Mapping[str, Field]
    # Other numeric fields of config.json. Key: field name. Value: the GGUF metadata to read.
    numbers: Mapping[str, Field]
    constants: Mapping[str, str]  # fields of config.json that have the same value for all models
    # Tensors of a layer. llama.cpp interleaves their rows for its rotary embedding. Key: GGUF name.
    # Value: the field of config.json that contains the tensor's number of heads.
    interleaved: Mapping[str, str]
    # Metadata for which only one value is supported. Key: metadata key. Value: supported value.
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
    """The numbers of config.json, by field name."""

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
            # Metadata values have single precision. Rounding to seven digits restores the intended
            # number, such as 1e-05 instead of 9.9999997e-06.
            name: float(f"{metadata.number(key(field), field.default):.7g}")
            for name, field in architecture.numbers.items()
        },
    )


def module_names(architecture: Architecture, num_layers: int, present: Set[str]) -> dict[str, str]:
    """Return the mlx-lm module of each tensor, by the tensor's name in the GGUF file.

    Args:
        architecture: the table entry of the model's architecture.
        num_layers: the number of layers of the model.
        present: the names of all tensors in the file.

    Raises:
        GgufError: the file lacks a tensor, or has a tensor that the architecture does not have.
    """
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
