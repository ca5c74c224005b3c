"""The module of a vision tower and its weights, with the layers of mlx-vlm. Engine thread only."""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import mlx.core as mx
from mlx import nn

from engine.catalog.model_config import as_settings, read_settings
from engine.catalog.weights import INDEX_NAME, TOWER_NAMES

_TOWER = "vision_tower."
_PART = "vision_model."
_PROJECTORS = ("multi_modal_projector.", "embed_vision.")
# The names of weights in model folders, and those of the modules that get them
_MODULE_NAMES: Mapping[str, str] = {
    **dict.fromkeys(TOWER_NAMES, _TOWER),
    **{f"model.{name}": name for name in _PROJECTORS},
    **{name: name for name in _PROJECTORS},
}


class TowerModule:
    """The module of a tower, whose weights are read when they are needed first."""

    def __init__(
        self, folder: Path, config: Mapping[str, Any], make: Callable[[Mapping[str, Any]], Any]
    ) -> None:
        """Create the object.

        Args:
            folder: the folder of the model.
            config: its config.json.
            make: function that makes the module from the config.json, with random weights. Its
                attribute vision_tower has a method `sanitize` of mlx-vlm.
        """
        self._folder = folder
        self._config = config
        self._make = make
        self._module: Any = None

    def __call__(self) -> Any:
        """Return the module with its weights."""
        if self._module is None:
            module = self._make(self._config)
            named = tower_weights(self._folder)
            if hasattr(module.vision_tower, "vision_model"):
                named = {_with_part(name): array for name, array in named.items()}
            weights = module.vision_tower.sanitize(named)
            _quantise(module, weights, self._config)
            module.load_weights(list(weights.items()))
            module.eval()
            self._module = module
        return self._module

    def release(self) -> None:
        """Drop the weights."""
        self._module = None


def tower_weights(folder: Path) -> dict[str, mx.array]:
    """Return the lazy weights of a folder's tower and projector, by the names of their modules."""
    found: dict[str, mx.array] = {}
    for path in sorted(folder.glob("*.safetensors")):
        arrays = cast("dict[str, mx.array]", mx.load(str(path)))
        for name, array in arrays.items():
            prefix = next((one for one in _MODULE_NAMES if name.startswith(one)), "")
            if prefix:
                found[_MODULE_NAMES[prefix] + name.removeprefix(prefix)] = array
    if mx.default_device() == mx.Device(mx.cpu):
        # MLX's CPU backend is unusably slow in half precision.
        found = {
            name: array.astype(mx.float32) if mx.issubdtype(array.dtype, mx.floating) else array
            for name, array in found.items()
        }
    return found


def tower_files(folder: Path) -> set[str]:
    """Return the names of the weight files with the tower, as the index of a folder states them.

    The set is empty without an index: all weights are in files that are there.
    """
    index = folder / INDEX_NAME
    places = as_settings(read_settings(index).get("weight_map")) if index.is_file() else {}
    return {str(file) for name, file in places.items() if name.startswith(tuple(_MODULE_NAMES))}


def _with_part(name: str) -> str:
    """Return a name with the part vision_model. mlx-vlm's modules have it, some folders do not."""
    rest = name.removeprefix(_TOWER)
    return name if rest == name or rest.startswith(_PART) else f"{_TOWER}{_PART}{rest}"


def _quantise(
    module: nn.Module, weights: Mapping[str, mx.array], config: Mapping[str, Any]
) -> None:
    """Quantise the layers of a tower whose weights are quantised.

    The settings in config.json are for all layers, or for one by its name.
    """
    settings: Mapping[str, Any] = config.get("quantization") or {}

    def settings_of(name: str, _: nn.Module) -> bool | dict[str, Any]:
        if f"{name}.scales" not in weights:
            return False
        names = (
            before + name.removeprefix(after)
            for before, after in _MODULE_NAMES.items()
            if name.startswith(after)
        )
        own = next((settings[one] for one in names if isinstance(settings.get(one), dict)), None)
        return True if own is None else own

    if settings:
        common = {key: settings[key] for key in ("group_size", "bits", "mode") if key in settings}
        nn.quantize(module, **common, class_predicate=settings_of)


def import_part(name: str) -> Any:
    """Import a module of mlx-vlm's models without the code of the packages around it.

    That code imports language models, a server, a command line, and libraries that the app does not
    have.
    """
    *parents, _ = f"mlx_vlm.models.{name}".split(".")
    for depth in range(1, len(parents) + 1):
        package = ".".join(parents[:depth])
        if package not in sys.modules:
            module = ModuleType(package)
            if depth > 1:
                above = sys.modules[".".join(parents[: depth - 1])]
                module.__path__ = [f"{place}/{parents[depth - 1]}" for place in above.__path__]
            else:
                spec = find_spec(package)
                assert spec is not None
                module.__path__ = list(spec.submodule_search_locations or ())
            sys.modules[package] = module
    return importlib.import_module(f"mlx_vlm.models.{name}")
