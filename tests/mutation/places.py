"""Places of expressions. A place finds an expression by its function and its syntax.

So the expression is still found after the source is reformatted, or a local variable is renamed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

N = TypeVar("N", bound=ast.AST)
# Finds expressions in the syntax tree of a function.
Place = Callable[[ast.FunctionDef], Iterator[ast.expr]]


def each(kind: type[N], part: Callable[[N], ast.expr | None]) -> Place:
    """Return a Place that yields part(node) for each node of type `kind`. Skip the value None."""

    def find(function: ast.FunctionDef) -> Iterator[ast.expr]:
        for node in ast.walk(function):
            if isinstance(node, kind) and (found := part(node)) is not None:
                yield found

    return find


def comparison(operator: type[ast.cmpop]) -> Place:
    return each(ast.Compare, lambda node: node if isinstance(node.ops[0], operator) else None)


def call(name: str) -> Place:
    """Return a Place that finds calls of the function `name`, or of a method with this name."""
    return each(ast.Call, lambda node: node if _is_call(node, name) else None)


def argument(name: str, at: int | str) -> Place:
    """Return a Place that finds one argument in calls of a function, by position or keyword."""

    def part(node: ast.Call) -> ast.expr | None:
        if not _is_call(node, name):
            return None
        named: dict[int | str | None, ast.expr] = dict(enumerate(node.args))
        named |= {keyword.arg: keyword.value for keyword in node.keywords}
        return named.get(at)

    return each(ast.Call, part)


def condition_of(name: str) -> Place:
    """Return a Place that finds the condition of each `if` whose body calls function `name`."""

    def part(node: ast.If) -> ast.expr | None:
        inside = (below for statement in node.body for below in ast.walk(statement))
        return node.test if any(_is_call(below, name) for below in inside) else None

    return each(ast.If, part)


def _is_call(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    callee = node.func
    return name == (callee.attr if isinstance(callee, ast.Attribute) else ast.unparse(callee))


@dataclass(frozen=True, slots=True)
class Mutation:
    """An expression in a function, a broken expression to replace it, and the tests that must fail.

    `broken` may contain three fields: {old}, the source of the expression; {object}, the source of
    the object in `object.attribute` or `object.method()`; {parameters[0]}, the name of the first
    parameter of the method after `self`.
    """

    name: str
    function: str  # the function that contains the expression, as module:qualified.name
    place: Place  # must find exactly one expression in the function
    broken: str
    tests: tuple[str, ...]  # the narrowest file first

    @property
    def path(self) -> Path:
        return Path(*self.function.split(":")[0].split(".")).with_suffix(".py")

    def apply(self, source: str) -> str:
        """Make the mutation in the source of the module, and return the new source."""
        function = _function_in(ast.parse(source), self.function.split(":")[1])
        found = list(self.place(function))
        assert len(found) == 1, f"{self.name}: there are {len(found)} such places"
        (node,) = found
        attribute = node.func if isinstance(node, ast.Call) else node
        broken = self.broken.format(
            old=ast.unparse(node),
            object=ast.unparse(attribute.value) if isinstance(attribute, ast.Attribute) else None,
            parameters=[one.arg for one in function.args.args[1:]],
        )
        assert node.end_lineno is not None
        # Slice encoded lines, because ast counts columns in UTF-8 bytes.
        lines = [line.encode() for line in source.splitlines(keepends=True)]
        before = lines[node.lineno - 1][: node.col_offset]
        after = lines[node.end_lineno - 1][node.end_col_offset :]
        lines[node.lineno - 1 : node.end_lineno] = [before + f"({broken})".encode() + after]
        return b"".join(lines).decode()


def _function_in(tree: ast.AST, qualified_name: str) -> ast.FunctionDef:
    for name in qualified_name.split("."):
        (tree,) = (
            node
            for node in ast.iter_child_nodes(tree)
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
        )
    assert isinstance(tree, ast.FunctionDef)
    return tree
