"""The syntax trees of the project's source files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

ROOT = Path(__file__).parents[2]


@cache
def parsed(file: Path) -> ast.Module:
    """Return the syntax tree of a file of the app, which several contracts read. None may change it."""
    return ast.parse(file.read_text(encoding="utf-8"))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a module and the statements in it. This visits a tenth of the nodes of ast.walk."""
    yield tree
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        # The field `body` of a lambda is an expression.
        inner: object = getattr(tree, field, None)
        for node in cast("list[ast.AST]", inner) if isinstance(inner, list) else ():
            yield from statements(node)
