"""The program that measures the memory of a model by the shapes of its arrays.

mlx-lm builds the model, and a few tokens go through it, but nothing is evaluated: MLX's arrays know
their shapes and number types before they are computed. So no weight is read, and a model of any
size takes a few megabytes and less than a second. The numbers equal those of a loaded model, for
the same classes and the same caches are measured.

`engine/fitting.py` sends the calls. This is a process of its own, because config.json decides how
many objects mlx-lm makes, and of which size: the process is ended at a limit of time or memory.
"""

# mlx.nn, mlx.utils and mlx-lm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_map_with_path
from mlx_lm.models.switch_layers import QuantizedSwitchLinear, SwitchLinear
from mlx_lm.utils import _get_classes

from engine.cache.layout import measure_layout
from engine.cache.trees import tree_bytes
from engine.memory import working_set_bytes
from engine.models.adapter import ModelAdapter
from engine.models.float32 import as_float32
from engine.models.mtp import ModelWithHead
from engine.models.mtp_files import build_model
from engine.worker.confinement import stay_offline
from engine.worker.frames import Frame
from engine.worker.loop import answer_calls

# Token ids that every vocabulary contains. probe.py measures the caches after as many tokens.
_TOKEN_IDS: Final = tuple(range(8))
# Names of the field with the number of experts that one token uses.
_USED_EXPERTS: Final = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "top_k_experts",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "num_selected_experts",
)
_EXPERT_LAYERS: Final = (SwitchLinear, QuantizedSwitchLinear)
_PARTS: Final = ("text_config", "llm_config", "language_config")
_DTYPES: Final[Mapping[str, mx.Dtype]] = {
    "float16": mx.float16,
    "bfloat16": mx.bfloat16,
    "float32": mx.float32,
}


def main() -> None:
    """Answer calls until the input ends."""
    stay_offline()
    answer_calls(_answer, counts_cpu_time=False)


def _answer(call: Frame) -> Frame:
    header = cast("dict[str, Any]", call.header)
    if header["on_cpu"]:
        mx.set_default_device(mx.Device(mx.cpu))
    # Standard output carries the answers, and modules of mlx-lm may print.
    with contextlib.redirect_stdout(sys.stderr):
        if folder := header.get("folder"):
            built = build_model(Path(folder))
            model, config = built.model, built.config
        else:
            config = json.loads(call.body)
            model = _built(config)
        numbers = _measured(model, config)
    if (
        "file_bytes" in header
        and _stays_packed(config)
        and mx.default_device() != mx.Device(mx.cpu)
    ):
        # The bits of each layer are in the weight files only, and they are loaded as they are.
        share = header["file_bytes"] / max(1, numbers["weight_bytes"])
        numbers["weight_bytes"] = header["file_bytes"]
        numbers["read_bytes"] = int(numbers["read_bytes"] * share)
    return Frame({**numbers, **_device()})


def _built(config: dict[str, Any]) -> nn.Module:
    """Build a model from config.json alone, with the number types and bits that it states."""
    model_class, args_class = _get_classes(config)
    model: Any = model_class(args_class.from_dict(config))
    dtype = _dtype(config)
    casts = getattr(model, "cast_predicate", lambda _: True)
    model.update(
        tree_map_with_path(
            lambda path, x: (
                x.astype(dtype) if casts(path) and mx.issubdtype(x.dtype, mx.floating) else x
            ),
            model.parameters(),
        )
    )
    quantisation = config.get("quantization")
    if isinstance(quantisation, dict):
        _quantise(model, cast("dict[str, Any]", quantisation))
    return model


def _stays_packed(config: dict[str, Any]) -> bool:
    """Return True if the weights are quantised by another program, and mlx-lm keeps them so."""
    method = config.get("quantization_config")
    if not isinstance(method, dict) or "quantization" in config:
        return False
    return cast("dict[str, object]", method).get("quant_method") != "fp8"


def _dtype(config: dict[str, Any]) -> mx.Dtype:
    for place in (config, *(config.get(part) for part in _PARTS)):
        if isinstance(place, dict):
            name = place.get("dtype") or place.get("torch_dtype")
            if isinstance(name, str) and name in _DTYPES:
                return _DTYPES[name]
    return mx.bfloat16


def _quantise(model: Any, quantisation: dict[str, Any]) -> None:
    """Quantise the layers that mlx-lm's conversion quantises."""
    group_size = quantisation["group_size"]
    chosen = getattr(model, "quant_predicate", None)

    def predicate(path: str, module: Any) -> bool | dict[str, Any]:
        if path in quantisation:
            return quantisation[path]
        if not hasattr(module, "to_quantized") or module.weight.shape[-1] % group_size:
            return False
        return bool(chosen(path, module)) if chosen else True

    nn.quantize(
        model,
        group_size=group_size,
        bits=quantisation["bits"],
        mode=quantisation.get("mode", "affine"),
        class_predicate=predicate,
    )


def _measured(model: nn.Module, config: dict[str, Any]) -> dict[str, int]:
    # A pass reads little of a multi-token prediction head.
    read_bytes = _read_bytes(model.model if isinstance(model, ModelWithHead) else model, config)
    packed_bytes = _bytes(model)
    if mx.default_device() == mx.Device(mx.cpu):
        model = as_float32(model)
        read_bytes = read_bytes * _bytes(model) // max(1, packed_bytes)
    adapter = ModelAdapter(model)
    caches = adapter.new_caches()
    adapter.run(mx.array([_TOKEN_IDS], mx.int32), caches)
    layout = measure_layout(caches, len(_TOKEN_IDS), tree_bytes)
    return {
        "weight_bytes": adapter.weight_bytes,
        "read_bytes": read_bytes,
        "kv_bytes_per_token": layout.kv_bytes_per_token,
        "snapshot_bytes": layout.snapshot_bytes,
    }


def _device() -> dict[str, object]:
    chip = mx.device_info()["device_name"] if mx.metal.is_available() else ""
    return {"device_bytes": working_set_bytes(), "chip": str(chip)}


def _bytes(module: nn.Module) -> int:
    return tree_bytes(module.parameters())


def _read_bytes(model: nn.Module, config: dict[str, Any]) -> int:
    """Return the bytes of weights that one token reads.

    A token reads one row of the embeddings, and its own experts. Embeddings that are also the LM
    head are read whole; there is then no linear layer with a row per token id.
    """
    used, unread = _used_experts(config), 0
    modules = [module for _, module in model.named_modules()]
    heads = {
        module.weight.shape[0]
        for module in modules
        if isinstance(module, nn.Linear | nn.QuantizedLinear)
    }
    for module in modules:
        if isinstance(module, _EXPERT_LAYERS) and used:
            num_experts = module.weight.shape[0]
            unread += _bytes(module) * max(0, num_experts - used) // num_experts
        elif (
            isinstance(module, nn.Embedding | nn.QuantizedEmbedding)
            and module.weight.shape[0] in heads
        ):
            unread += _bytes(module)
    return _bytes(model) - unread


def _used_experts(config: dict[str, Any]) -> int:
    for place in (config, *(config.get(part) for part in _PARTS)):
        if isinstance(place, dict):
            for key in _USED_EXPERTS:
                if isinstance(number := place.get(key), int) and number > 0:
                    return number
    return 0
