"""Random multi-token prediction heads for tiny models, in the forms in which heads are published."""

# mlx.utils is partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
from mlx.utils import tree_flatten

from engine.models.mtp import ModelWithHead, make_head, text_model_of
from engine.models.mtp_files import build_model
from tests.architectures.configs.every import CONFIGS
from tests.fakes.tiny_model import Config, Template, build_tiny

Tensors = dict[str, mx.array]

# One type of each kind that has heads. Names are those of mlx-lm's modules.
TYPES = ("qwen3_5", "qwen3_5_moe", "qwen3_next")


def build(name: str, out: Path, *, num_experts: int = 0) -> Path:
    """Write the folder of a tiny model that can have a head, without the head."""
    config: Config = json.loads(json.dumps(CONFIGS[name]))
    part = config.get("text_config", config)
    part["num_experts"] = num_experts or part.get("num_experts", 0)
    return build_tiny(name, out, Template.KEEPING, {name: config})


def random_head(folder: Path, *, seed: int = 3) -> Tensors:
    """Return the tensors of a random head for the model of a folder, named as mlx-lm would."""
    model: Any = build_model(folder).model
    if isinstance(model, ModelWithHead):
        model = model.model
    mx.random.seed(seed)
    head = make_head(model, num_experts=text_model_of(model).args.num_experts)
    tensors = cast("Tensors", dict(tree_flatten(head.parameters())))
    # Norms of published heads are near 1, those before `fc` are smaller.
    return {
        name: _norm(name, x.size) if x.ndim == 1 else 2 * x for name, x in sorted(tensors.items())
    }


def _norm(name: str, size: int) -> mx.array:
    mean = 0.3 if name.startswith("pre_fc_norm") else 1.1
    return mean + 0.1 * mx.random.uniform(-1, 1, (size,))


def agreeing_head(folder: Path, *, share: float = 0.0) -> Tensors:
    """Change a model so that a head can predict most of its tokens, and return this head.

    The layers of the model write little to its hidden states, so a token follows mostly from the
    token before it. The head ignores hidden states, and computes what follows from the token.

    share: factor of what the layers write. 0: the head is always right.
    """
    weights = cast("Tensors", mx.load(str(folder / "model.safetensors")))
    for name in weights:
        if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
            weights[name] = share * weights[name]
    save(folder / "model.safetensors", weights)
    head = random_head(folder)
    size = head["norm.weight"].size
    (norm,) = (x for name, x in weights.items() if name.endswith("model.norm.weight"))
    head["fc.weight"] = mx.concatenate([mx.eye(size), mx.zeros((size, size))], axis=1)
    head["pre_fc_norm_embedding.weight"] = mx.ones((size,))
    head["norm.weight"] = norm
    for name in head:
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            head[name] = mx.zeros_like(head[name])
    return head


def prefixed(tensors: Tensors, prefix: str) -> Tensors:
    return {prefix + name: x for name, x in tensors.items()}


def save(path: Path, tensors: Tensors) -> None:
    """Write a safetensors file. The arrays may come from the same file."""
    mx.eval(list(tensors.values()))
    path.parent.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(path), tensors, metadata={"format": "mlx"})


def save_drafter(folder: Path, tensors: Tensors) -> None:
    """Write a drafter's folder, like mlx-community/Qwen3.6-27B-MTP-bf16."""
    save(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3_5_mtp", "block_size": 3}))


def embed(folder: Path, tensors: Tensors) -> None:
    """Add tensors to the weight file of a model."""
    weights = cast("Tensors", mx.load(str(folder / "model.safetensors")))
    save(folder / "model.safetensors", {**weights, **tensors})


def copy_of(folder: Path, out: Path) -> Path:
    shutil.copytree(folder, out)
    return out


def raw_norms(tensors: Tensors) -> Tensors:
    """Return the tensors with norms stored as w - 1, as Hugging Face stores them."""
    return {name: x - 1 if x.ndim == 1 else x for name, x in tensors.items()}


def separate_experts(tensors: Tensors) -> Tensors:
    """Return the tensors with one tensor for each expert."""
    found: Tensors = {}
    for name, x in tensors.items():
        if ".switch_mlp." in name:
            for number in range(x.shape[0]):
                found[name.replace("switch_mlp", f"experts.{number}")] = x[number]
        else:
            found[name] = x
    return found


def joined_experts(tensors: Tensors) -> Tensors:
    """Return the tensors with one tensor for the gates and inputs of all experts."""
    start = "layers.0.mlp."
    found = {name: x for name, x in tensors.items() if ".switch_mlp." not in name}
    gate, up, down = (
        tensors[f"{start}switch_mlp.{part}_proj.weight"] for part in ("gate", "up", "down")
    )
    found[f"{start}experts.gate_up_proj"] = mx.concatenate([gate, up], axis=1)
    found[f"{start}experts.down_proj"] = down
    return found


def quantised(tensors: Tensors, *, mode: str = "affine") -> Tensors:
    """Return the tensors with matrices quantised to 4 bits, in groups of 32."""
    found: Tensors = {}
    for name, x in tensors.items():
        if x.ndim == 1 or x.shape[-1] % 32:
            found[name] = x
            continue
        parts = mx.quantize(x, group_size=32, bits=4, mode=mode)
        stem = name.removesuffix(".weight")
        found |= dict(zip((name, f"{stem}.scales", f"{stem}.biases"), parts, strict=False))
    return found
