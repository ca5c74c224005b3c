"""Find the plan for a GGUF file's architecture and assign the file's tensors to it.

`ARCHITECTURES` has one entry per supported architecture. The functions that plan a model are in
dense.py and gated_delta.py. The module reads no tensors but factors of rotary embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Final

from engine.errors import GgufError
from engine.gguf import dense, gated_delta
from engine.gguf.header import Metadata
from engine.gguf.parts import ArchitectureKeys, ModelPlan, WeightPart
from engine.model_kinds import why_not_run


@dataclass(frozen=True, slots=True)
class Architecture:
    """The names of an architecture in config.json, and the function that plans its models."""

    model_type: str
    model_class: str  # value in the list `architectures` in config.json
    plan: Callable[[ArchitectureKeys], ModelPlan]


# Key: value of general.architecture in the GGUF file.
ARCHITECTURES: Final[Mapping[str, Architecture]] = {
    "llama": Architecture("llama", "LlamaForCausalLM", dense.plan_llama),
    "qwen2": Architecture("qwen2", "Qwen2ForCausalLM", dense.plan_qwen2),
    "qwen3": Architecture("qwen3", "Qwen3ForCausalLM", dense.plan_qwen3),
    "qwen3moe": Architecture("qwen3_moe", "Qwen3MoeForCausalLM", dense.plan_qwen3moe),
    "qwen35": Architecture("qwen3_5", "Qwen3_5ForCausalLM", gated_delta.plan_qwen35),
    "qwen35moe": Architecture("qwen3_5_moe", "Qwen3_5MoeForCausalLM", gated_delta.plan_qwen35moe),
    "qwen3next": Architecture("qwen3_next", "Qwen3NextForCausalLM", gated_delta.plan_qwen3next),
    "gemma3": Architecture("gemma3_text", "Gemma3ForCausalLM", dense.plan_gemma3),
    "lfm2": Architecture("lfm2", "Lfm2ForCausalLM", dense.plan_lfm2),
    "phi3": Architecture("phi3", "Phi3ForCausalLM", dense.plan_phi3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedModel:
    """The configuration of a model and the weights that a file has for it."""

    config: Mapping[str, object]  # fields of config.json
    context_len: int
    parts: tuple[WeightPart, ...]


def find_architecture(name: str) -> Architecture:
    """Return the architecture with a name of GGUF files.

    Raises:
        GgufError: files of this architecture cannot be imported.
    """
    if name not in ARCHITECTURES:
        raise GgufError(why_not_run(name))
    return ARCHITECTURES[name]


def plan_model(
    metadata: Metadata, present: Set[str], vector: Callable[[str], list[float] | None]
) -> PlannedModel:
    """Return the configuration of the file's model and the parts for which it has tensors.

    Args:
        metadata: the metadata of the file.
        present: the names of all tensors in the file.
        vector: returns the values of a small vector, or None if the file lacks the tensor.

    Raises:
        GgufError: the architecture or a setting is not supported, the file lacks a tensor, or it
            has a tensor that the architecture does not have.
    """
    name = metadata.text("general.architecture")
    architecture = find_architecture(name)
    keys = ArchitectureKeys(metadata, name, len(present), vector)
    plan = architecture.plan(keys)
    _require_tensors(name, plan, present)
    return PlannedModel(
        config={
            "model_type": architecture.model_type,
            "architectures": [architecture.model_class],
            **plan.config,
            "tie_word_embeddings": "output.weight" not in present,
        },
        context_len=keys.count("context_length"),
        parts=tuple(part for part in plan.parts if present >= set(part.tensors)),
    )


def _require_tensors(name: str, plan: ModelPlan, present: Set[str]) -> None:
    names = {tensor for part in plan.parts for tensor in part.tensors}
    if missing := sorted(names - present - plan.optional):
        raise GgufError(
            f"It lacks {len(missing)} of the model’s tensors, for example {missing[0]}."
        )
    unknown = sorted(tensor for tensor in present - names if not tensor.startswith(plan.skipped))
    if unknown:
        raise GgufError(
            f"It holds tensors that a model of architecture {name!r} "
            f"is not known to have, for example {unknown[0][:200]}."
        )
