"""Which model types the installed mlx-lm can build, read from its source without importing it.

mlx-lm takes over a second to import, and the picker must work before that.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from engine.errors import BugError

_DEFINES_MODEL: Final = re.compile(
    r"^(class Model\b|Model\s*=|from\s.+\simport\s.*\bModel\b(?!\s+as))", re.MULTILINE
)
# One module ends the whole process when a package that it wants is not there.
_ENDS_PROCESS: Final = "sys.exit("
_BRINGS_TEMPLATE: Final = '"chat_template_type"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Architectures:
    """mlx-lm's model modules, and the other names under which it knows them."""

    modules: frozenset[str]
    with_template: frozenset[str]  # modules that bring a chat template of their own
    by_type: Mapping[str, str]  # model_type to module, where they differ
    by_class: Mapping[tuple[str, str], str]  # (model_type, class) to module, looked up first

    def module(self, model_type: str, classes: tuple[str, ...]) -> str | None:
        """The module that builds this model, None when mlx-lm has none."""
        for name in classes:
            if (model_type, name) in self.by_class:
                return self.by_class[model_type, name]
        module = self.by_type.get(model_type, model_type)
        return module if module in self.modules else None


@functools.cache
def installed_architectures() -> Architectures:
    spec = importlib.util.find_spec("mlx_lm")
    if spec is None or not spec.submodule_search_locations:
        raise BugError("mlx-lm is not installed.")
    package = Path(spec.submodule_search_locations[0])
    sources = {
        path.stem: path.read_text(encoding="utf-8") for path in (package / "models").glob("*.py")
    }
    modules = frozenset(
        name
        for name, source in sources.items()
        if _DEFINES_MODEL.search(source) and _ENDS_PROCESS not in source
    )
    tables = _literals((package / "utils.py").read_text(encoding="utf-8"))
    return Architectures(
        modules=modules,
        with_template=frozenset(name for name in modules if _BRINGS_TEMPLATE in sources[name]),
        by_type=_by_type(tables.get("MODEL_REMAPPING", {})),
        by_class=_by_class(tables.get("MODEL_ARCHITECTURE_REMAPPING", {})),
    )


def _literals(source: str) -> dict[str, dict[object, object]]:
    """The module-level names that are assigned literal dictionaries."""
    literals: dict[str, dict[object, object]] = {}
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as value):
                # A table that is computed is not one of those that are asked for.
                with contextlib.suppress(ValueError):
                    literals[name] = ast.literal_eval(value)
            case _:
                pass
    return literals


def _by_type(table: Mapping[object, object]) -> dict[str, str]:
    return {str(model_type): str(module) for model_type, module in table.items()}


def _by_class(table: Mapping[object, object]) -> dict[tuple[str, str], str]:
    return {
        (str(model_type), str(name)): str(module)
        for (model_type, name), module in cast(
            "Mapping[tuple[object, object], object]", table
        ).items()
    }
