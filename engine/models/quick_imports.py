"""A quicker first import of transformers, in every process that imports engine.models.

transformers reads the name lists of its 1,600 modules twice when it is imported, because its cache
of them has room for 128 folders. To find a list, it splits the whole file into lines. This takes
half of the time of all imports of the engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

from typing_extensions import override

_MODULE = "transformers.utils.import_utils"
_FETCH = "fetch__all__"  # takes the text of a module and returns the names in its __all__
_CREATE = "create_import_structure_from_path"  # reads a folder; has a cache

Fetch = Callable[[str], list[str]]


def install() -> None:
    """Let transformers find its names in less time. Call this before anything imports it."""
    sys.meta_path.insert(0, _Finder())


def shortened(fetch: Fetch) -> Fetch:
    """Return a function that passes `fetch` only the text from the last line that begins a list.

    `fetch` looks at no line before it.
    """

    @wraps(fetch)
    def quick(file_content: str) -> list[str]:
        start = f"\n{file_content}".rfind("\n__all__")
        return [] if start < 0 else fetch(file_content[start:])

    return quick


class _Loader(SourceFileLoader):
    @override
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        # Another version of transformers may have no such functions.
        fetch = getattr(module, _FETCH, None)
        if fetch is not None:
            setattr(module, _FETCH, shortened(fetch))
        create = getattr(getattr(module, _CREATE, None), "__wrapped__", None)
        if create is not None:
            setattr(module, _CREATE, cache(create))


class _Finder(MetaPathFinder):
    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _MODULE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec
