"""Find the model types that the installed mlx-lm can build, from the source files of mlx-lm.

Nearly every file in mlx_lm/models is a module that implements one architecture. Two dictionaries in
mlx_lm/utils.py map further model types to these modules. mlx-lm itself is never imported here: the
import takes over a second, and the model picker must not wait for it.
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
# A module that contains this text calls sys.exit on import if a package is missing. It is excluded,
# because sys.exit would end the app.
_ENDS_PROCESS: Final = "sys.exit("
_BRINGS_TEMPLATE: Final = '"chat_template_type"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Architectures:
    """The model modules of mlx-lm, and the tables that map the names in config.json to modules."""

    modules: frozenset[str]  # names of modules that can be imported safely and define a model
    with_template: frozenset[str]  # names of modules with a built-in chat template
    # Key: model_type. Value: module. If both names are equal, there is no entry.
    by_type: Mapping[str, str]
    # Key: (model_type, class). Value: module. These entries take precedence over by_type.
    by_class: Mapping[tuple[str, str], str]

    def module(self, model_type: str, classes: tuple[str, ...]) -> str | None:
        """Return the name of the mlx-lm module that builds a model, or None if mlx-lm has none.

        Args:
            model_type: the field `model_type` of config.json.
            classes: the field `architectures` of config.json.
        """
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
    """Return all dictionaries that a module's source assigns to global names.

    Key: the global name. Value: the dictionary.
    """
    literals: dict[str, dict[object, object]] = {}
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as value):
                # literal_eval raises ValueError if a value is computed. Skip such dictionaries:
                # this module does not need them.
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
