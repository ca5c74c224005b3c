"""The names of the mlx-lm modules that define a model.

The names are read from the modules' source, because importing a module may end the process.
"""

from __future__ import annotations

import ast
import pkgutil
from pathlib import Path

import mlx_lm.models


def model_modules() -> list[str]:
    """Return the sorted names of all modules in mlx_lm.models that define `Model`."""
    folder = Path(mlx_lm.models.__path__[0])
    names = [module.name for module in pkgutil.iter_modules([str(folder)])]
    sources = {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in names}
    return sorted(name for name, source in sources.items() if _defines_model(source))


def _defines_model(source: str) -> bool:
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef(name="Model"):
                return True
            case ast.ImportFrom(names=names):
                bound = [alias.asname or alias.name for alias in names]
            case ast.Assign(targets=targets):
                bound = [target.id for target in targets if isinstance(target, ast.Name)]
            case _:
                continue
        if "Model" in bound:
            return True
    return False
