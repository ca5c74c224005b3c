"""Find and load the weights of multi-token prediction heads (mtp.py), in the published forms.

A model's conversion often has no head, because mlx-lm drops it. `build_model` finds a head here:

    mtp.safetensors or mtp/*.safetensors   beside the weights of the model
    model*.safetensors                     among the weights, with names like language_model.mtp.fc
    another folder of the model type       beside the model's folder or in the same Hugging Face
    qwen3_5_mtp                            cache, such as Qwen3.6-27B-MTP-bf16 for Qwen3.6-27B-4bit

Names may have a prefix. Experts are one tensor each, one tensor for all, or as mlx-lm stores them.
Layers may be quantised. Norms are stored as w or as w - 1, which their values tell (`_norms`).

A head that is broken is left out, and the model runs without it: `build_model` finds tensors that
don't fit, `BuiltModel.tested` numbers that are not finite. Use on the engine thread.
"""

# mlx-lm and mlx.nn have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import KVCache
from mlx_lm.utils import _get_classes, infer_quant_config, load_model

from engine.catalog.model_config import read_config
from engine.catalog.weights import require_whole_file
from engine.errors import ModelFolderError, is_out_of_memory, printable
from engine.models.mtp import HeadState, ModelWithHead, can_have_head, make_head, text_model_of

log = logging.getLogger(__name__)

Tensors = dict[str, mx.array]

_SIDE_FILE: Final = "mtp.safetensors"
_SIDE_FOLDER: Final = "mtp"
# The name of a head's tensor, with its prefix: mtp.fc.weight, language_model.mtp.norm.weight.
_PREFIXED: Final = re.compile(r"(?:\w+\.){0,3}?mtp\.(?P<name>.+)")
# First parts of the names of a head's tensors without prefix. A model's own tensors have others.
_BARE: Final = ("fc.", "layers.", "norm.", "pre_fc_norm_embedding.", "pre_fc_norm_hidden.")
_MARK: Final = "pre_fc_norm_embedding.weight"
# A tensor of one expert, or of the gates and inputs of all experts.
_EXPERT: Final = re.compile(r"(?P<start>.*\.mlp)\.experts\.(?P<number>\d{1,5})\.(?P<end>.+)")
_JOINED: Final = re.compile(
    r"(?P<start>.*\.mlp)\.(?:experts|switch_mlp)\.gate_up_proj(?P<end>(?:\.\w+)?)"
)
_DOWN: Final = re.compile(r"(?P<start>.*\.mlp)\.experts\.down_proj(?P<end>(?:\.\w+)?)")
_HEAD_TYPES: Final = ("qwen3_5_mtp", "qwen3_5_moe_mtp", "qwen3_next_mtp")
# The name of a head's own folder: the model's name, then -MTP, then a number format.
_HEAD_NAME: Final = re.compile(r"(?P<stem>.+?)-mtp(?:-.*)?", re.IGNORECASE)
# Highest number of files of a head, and of entries of a folder that are looked at.
_MAX_FILES: Final = 16
_MAX_ENTRIES: Final = 2000
# Largest norm that is read before the shapes are checked. The largest model has one of 8,192.
_MAX_NORM: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class BuiltModel:
    """A model of mlx-lm with lazy weights, with its head if there is one."""

    model: nn.Module
    config: dict[str, Any]
    head_fault: str = ""  # sentence for the user: why a head is left out
    head_place: str = ""  # name of the file or folder that the head comes from

    def tested(self) -> BuiltModel:
        """Return the model, without its head if the head's results are not finite numbers.

        Call this when the weights are in memory: the model reads two tokens and drafts one.
        """
        if not isinstance(self.model, ModelWithHead) or _drafts_are_finite(self.model):
            return self
        log.warning("the head in %s is left out: its results are not finite", self.head_place)
        return replace(self, model=self.model.model, head_fault=_fault(self.head_place))


def build_model(folder: Path) -> BuiltModel:
    """Build the model of a folder, and its head. The weights are lazy.

    Raises:
        Exception: as mlx-lm's load_model. A broken head raises nothing.
    """
    taken: Tensors = {}

    def classes(config: dict[str, Any]) -> tuple[type[Any], type[Any]]:
        model_class, args_class = _get_classes(config)
        if can_have_head(model_class):
            model_class = _without_head(model_class, taken)
        return model_class, args_class

    loaded = load_model(folder, lazy=True, get_model_classes=classes)
    model, config = cast("tuple[nn.Module, dict[str, Any]]", loaded)
    # The class of the model references `taken`, and classes are freed by garbage collection only.
    tensors = dict(taken)
    taken.clear()
    if not can_have_head(type(model)):
        return BuiltModel(model, config)
    place = folder.name
    try:
        files = head_files(folder)
        if files:
            place = files[0].name if files[0].parent == folder else files[0].parent.name
            tensors = _read(files)
        if not tensors:
            return BuiltModel(model, config)
        return BuiltModel(_with_head(model, tensors), config, head_place=place)
    # mlx and mlx-lm trust the files, and raise any error if these don't fit the model.
    except Exception as error:
        if is_out_of_memory(error):
            raise
        log.warning("the head in %s is left out: %s", place, repr(error))
        reason = str(error) if isinstance(error, ModelFolderError) else ""
        return BuiltModel(model, config, f"{_fault(place)} {reason}".strip())


def _fault(place: str) -> str:
    return (
        f"The prediction head in {printable(place)} is broken or belongs to another model, "
        "so answers are written without it."
    )


def head_files(folder: Path) -> list[Path]:
    """Return the weight files of a model's head outside of the model's own weight files.

    Files beside the model count before another folder. Return [] if there are none.
    """
    if (folder / _SIDE_FILE).is_file():
        return [folder / _SIDE_FILE]
    if files := _weight_files(folder / _SIDE_FOLDER):
        return files
    for place in _head_folders(folder):
        if files := _weight_files(place):
            return files
    return []


def _weight_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.glob("*.safetensors") if p.is_file())[:_MAX_FILES]


def _head_folders(folder: Path) -> Iterator[Path]:
    """Yield folders of heads for a model: its neighbours with a fitting name and model type."""
    is_hub = folder.parent.name == "snapshots"
    repository = folder.parent.parent if is_hub else folder
    wanted = _plain_name(repository)
    try:
        entries = sorted(islice(repository.parent.iterdir(), _MAX_ENTRIES))
    except OSError:
        return
    for entry in entries:
        name = _HEAD_NAME.fullmatch(_plain_name(entry))
        if name is None or not f"{wanted}-".startswith(f"{name['stem'].lower()}-"):
            continue
        for place in sorted(entry.glob("snapshots/*")) if is_hub else (entry,):
            if place != folder and _has_head_type(place):
                yield place


def _plain_name(repository: Path) -> str:
    """Return a model's name without the prefix of a Hugging Face cache, in lower case."""
    return repository.name.rpartition("--")[2].lower()


def _has_head_type(folder: Path) -> bool:
    try:
        return folder.is_dir() and read_config(folder).model_type in _HEAD_TYPES
    except (ModelFolderError, OSError):
        return False


def _without_head(model_class: type[Any], taken: Tensors) -> type[Any]:
    """Return a class whose `sanitize` moves the tensors of a head to `taken`.

    mlx-lm drops them for some models, and refuses to load others because of them.
    """

    def sanitize(self: Any, weights: Tensors) -> Tensors:
        head = _bare(weights)
        taken.update(head.values())
        return model_class.sanitize(
            self, {name: x for name, x in weights.items() if name not in head}
        )

    return type(model_class.__name__, (model_class,), {"sanitize": sanitize})


def _bare(weights: Mapping[str, mx.array]) -> dict[str, tuple[str, mx.array]]:
    """Return a head's tensors: for each stored name, the name without prefix and the tensor."""
    found = {
        stored: (name["name"], tensor)
        for stored, tensor in weights.items()
        if (name := _PREFIXED.fullmatch(stored)) is not None
    }
    if not found and _MARK in weights:
        found = {name: (name, x) for name, x in weights.items() if name.startswith(_BARE)}
    return found


def _read(files: Iterable[Path]) -> Tensors:
    tensors: Tensors = {}
    for file in files:
        require_whole_file(file)
        tensors.update(cast("Tensors", mx.load(str(file))))
    return dict(_bare(tensors).values())


def _with_head(model: nn.Module, tensors: Tensors) -> ModelWithHead:
    """Return a model with a head of these tensors.

    Raises:
        Exception: the tensors are not those of a head for this model.
    """
    tensors = _norms(_experts(tensors))
    text = text_model_of(model)
    has_experts = any(".switch_mlp." in name for name in tensors)
    head = make_head(model, num_experts=text.args.num_experts if has_experts else 0)

    def quantised(path: str, module: nn.Module) -> bool | dict[str, Any]:
        if f"{path}.scales" not in tensors or not hasattr(module, "to_quantized"):
            return False
        return infer_quant_config(path, module, tensors)

    nn.quantize(head, class_predicate=quantised)
    dtype = text.model.norm.weight.dtype
    wanted = cast("Tensors", dict(tree_flatten(head.parameters())))
    for name, x in tensors.items():
        is_floating = mx.issubdtype(x.dtype, mx.floating)
        if is_floating:
            tensors[name] = x.astype(dtype)
        if (
            name in wanted
            and x.dtype != wanted[name].dtype
            and not (is_floating and mx.issubdtype(wanted[name].dtype, mx.floating))
        ):
            raise ValueError(f"{name} has numbers of type {x.dtype}")
    head.load_weights(list(tensors.items()), strict=True)
    both = ModelWithHead(model, head)
    # Build two drafts, without computing them. This raises an error if the shapes don't fit.
    state = HeadState(KVCache(), mx.zeros((1, 1, text.args.hidden_size), dtype))
    both.drafts(0, state, 2, lambda logits, _drafts: mx.argmax(logits))
    return both


def _drafts_are_finite(model: ModelWithHead) -> bool:
    caches: list[Any] = model.make_cache()
    model(mx.array([[0, 1]]), caches)
    kv, states = caches[-1].caches
    found: list[mx.array] = []

    def draw(logits: mx.array, _drafts: object) -> mx.array:
        found.append(logits)
        return mx.argmax(logits)

    model.drafts(2, HeadState(kv, states.cache[0]), 1, draw)
    return bool(mx.all(mx.isfinite(found[0])).item())


def _experts(tensors: Tensors) -> Tensors:
    """Return the tensors with all experts in one tensor a layer, as mlx-lm's SwitchGLU has them."""
    found: Tensors = {}
    single: dict[str, dict[int, mx.array]] = {}
    for name, x in tensors.items():
        if joined := _JOINED.fullmatch(name):
            middle = x.shape[-2] // 2
            for part, half in (("gate_proj", x[..., :middle, :]), ("up_proj", x[..., middle:, :])):
                found[f"{joined['start']}.switch_mlp.{part}{joined['end'] or '.weight'}"] = half
        elif down := _DOWN.fullmatch(name):
            found[f"{down['start']}.switch_mlp.down_proj{down['end'] or '.weight'}"] = x
        elif expert := _EXPERT.fullmatch(name):
            together = single.setdefault(f"{expert['start']}.switch_mlp.{expert['end']}", {})
            together[int(expert["number"])] = x
        else:
            found[name] = x
    for name, experts in single.items():
        found[name] = mx.stack([experts[number] for number in range(len(experts))])
    return found


def _norms(tensors: Tensors) -> Tensors:
    """Return the tensors with norms stored as w, from w or w - 1.

    mlx-lm stores w, Hugging Face w - 1, and some conversions mix both. The mean of w is near 1 for
    the norms of the layer and the last one. It is between 0 and 1 for the two norms before `fc`:
    0.27 and 0.49 in Qwen3.6-35B-A3B (jundot/omlx#3750), so w - 1 is negative there.
    """
    return {
        name: x + 1 if "norm" in name and _is_shifted(name, x) else x for name, x in tensors.items()
    }


def _is_shifted(name: str, x: mx.array) -> bool:
    if x.ndim != 1 or x.size > _MAX_NORM:
        return False
    mean = mx.mean(x.astype(mx.float32)).item()
    assert isinstance(mean, float)
    return mean < (0.0 if name.startswith("pre_fc_norm") else 0.5)
