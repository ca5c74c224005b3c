"""Parse the tool calls that a model writes, with the parsers of mlx-lm, in the worker process.

The parsers are modules without mlx. But the package mlx_lm imports mlx, which the worker process
must not load, so the package itself is never run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import cast

from engine.errors import ToolCallError

_PACKAGE = "mlx_lm"
_NO_CALL = "Its text is not in the form of this model’s calls."

Parse = Callable[[str, list[object] | None], object]


class ModelCalls:
    """The parser of one form of calls."""

    def __init__(self, parse: Parse) -> None:
        self._parse = parse

    def parse(self, text: str, tools: str) -> list[str]:
        """Return the name of each call and its arguments as JSON, one after the other.

        Raises:
            ToolCallError: the text is no call.
        """
        # A parser raises any error if the text is no call.
        try:
            found = self._parse(text, cast("list[object]", json.loads(tools)) if tools else None)
            calls = cast("list[object]", found) if isinstance(found, list) else [found]
            texts = [part for call in calls for part in _texts(call)]
        except Exception as error:
            raise ToolCallError(_NO_CALL, details=repr(error)) from error
        if not texts:
            raise ToolCallError(_NO_CALL)
        return texts


def load_parser(module: str) -> ModelCalls:
    """Return the parser in a module of mlx_lm.tool_parsers, without an import of mlx."""
    if _PACKAGE not in sys.modules:
        spec = find_spec(_PACKAGE)
        assert spec is not None
        sys.modules[_PACKAGE] = module_from_spec(spec)
    return ModelCalls(import_module(f"{_PACKAGE}.tool_parsers.{module}").parse_tool_call)


def _texts(call: object) -> Iterator[str]:
    """Yield the name and the arguments of a call.

    Raises:
        ValueError, TypeError: they do not have the form that a call must have.
    """
    fields = cast("dict[str, object]", call) if isinstance(call, dict) else {}
    name, arguments = fields.get("name"), fields.get("arguments", {})
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        raise ValueError(_NO_CALL)
    yield name
    yield json.dumps(arguments, ensure_ascii=False, allow_nan=False)
