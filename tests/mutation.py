"""Mutation tests: break one expression at a time and check that a test fails.

    python -m tests.mutation [--only NAME ...]

Each mutation is made in a temporary copy of the sources, never in the working tree. A mutation is
caught if a test fails. If all tests pass, the mutation survives: no test covers its expression.
An expression is found by its function and its syntax. So it is still found after the source is
reformatted, or a local variable is renamed.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[1]
COPIED = ("app", "engine", "tests", "resources", "pyproject.toml")
MACHINE = ("tests/oracle/test_machine.py",)
CACHE = ("tests/engine/cache", "tests/oracle/test_machine.py")
CONTINUED = ("tests/engine/test_continue.py",)
FAULTS = ("tests/engine/test_faults.py",)


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
    tests: tuple[str, ...] = MACHINE

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


MUTATIONS = (
    Mutation(
        "a snapshot of another token is restored",
        "engine.cache.hot:HotCache.is_restored",
        each(ast.BoolOp, lambda node: node if isinstance(node.op, ast.Or) else None),
        "True",
        FAULTS,
    ),
    Mutation(
        "a snapshot claims one token less",
        "engine.cache.prefix_cache:PrefixCache.capture_snapshot",
        argument("capture", 1),
        "{old} - 1",
    ),
    Mutation(
        "the last token is restored without its logits",
        "engine.cache.matching:_match_path",
        argument("min", 1),
        "{old} + 1",
        CACHE,
    ),
    Mutation(
        "K/V is not cut before it is written on",
        "engine.cache.kv:cut",
        argument("trim", 0),
        "0",
    ),
    Mutation(
        "lent K/V is overwritten without being copied out",
        "engine.cache.restoring:Restorer.vacate",
        call("copy_out"),
        "None",
    ),
    Mutation(
        "a rotating window is put back without a copy",
        "engine.cache.snapshot:restore",
        each(ast.IfExp, lambda node: node.test),
        "False",
    ),
    Mutation(
        "the newest token counts as fed before it is",
        "engine.runner.decoder:Decoder._launch",
        argument("commit", 0),
        "{old} * 2",
    ),
    Mutation(
        "a token that ended the reply is not taken back",
        "engine.runner.decoder:Decoder.detach",
        argument("remove", "undoing"),
        "False",
        ("tests/engine/test_batches.py",),
    ),
    Mutation(
        "the point before the reply lies after the tail",
        "engine.chat.prompt:PromptBuilder._turn_ends",
        call("_passing_len"),
        "0",
    ),
    Mutation(
        "no point before another tool result",
        "engine.chat.prompt:PromptBuilder._turn_ends",
        call("_result_lens"),
        "()",
        ("tests/engine/test_tool_calls.py",),
    ),
    Mutation(
        "no reply calls a tool in plain text",
        "engine.chat.prompt:PromptBuilder._next_turn",
        call("may_call_tool"),
        "False",
        ("tests/engine/test_tool_calls.py",),
    ),
    Mutation(
        "every reply that a template cuts counts as whole",
        "engine.checking.prompts:_is_cut",
        each(ast.Compare, lambda node: node),
        "False",
        ("tests/engine/checking/test_prompts.py",),
    ),
    Mutation(
        "a resume point in use may be evicted",
        "engine.cache.radix:RadixTree.lock",
        each(ast.AugAssign, lambda node: node.value),
        "0",
        CACHE,
    ),
    Mutation(
        "deleting a conversation takes everyone's state",
        "engine.cache.eviction:Eviction.forget",
        call("discard"),
        "{object}.clear()",
    ),
    Mutation(
        "a conversation does not say what it uses",
        "engine.cache.lending:Lending.add_nodes",
        call("add"),
        "None",
    ),
    Mutation(
        "how a token was fed does not matter",
        "engine.cache.feeding:common_feeding_end",
        comparison(ast.NotEq),
        "False",
        CACHE,
    ),
    Mutation(
        "what was read of a stopped prompt is lost",
        "engine.runner.runner:Runner.publish_turn",
        call("cut"),
        "{object}.chunks.clear()",
    ),
    Mutation(
        "the place where a prompt forked is not kept",
        "engine.runner.runner:Runner._chunks",
        argument("ResumePoint", 0),
        "len({parameters[0]}.token_ids)",
    ),
    Mutation(
        "side requests are published",
        "engine.runner.runner:Runner.publish_turn",
        condition_of("abandon"),
        "setattr({object}, 'side', False)",
    ),
    Mutation(
        "a reply's next turn begins somewhere else",
        "engine.runner.runner:Runner._feed_closing",
        comparison(ast.Lt),
        "False",
        ("tests/engine/test_read_ahead.py", *MACHINE),
    ),
    Mutation(
        "a stopped reply keeps no state of its end",
        "engine.runner.runner:Runner._feed_closing",
        comparison(ast.IsNot),
        "False",
        CONTINUED,
    ),
    Mutation(
        "a reply that goes on draws as from its beginning",
        "engine.runner.decoder:Decoder._draw",
        each(ast.BinOp, lambda node: node.left if isinstance(node.left, ast.Call) else None),
        "{parameters[0]}.num_output",
        CONTINUED,
    ),
)


def run_tests(root: Path, tests: tuple[str, ...]) -> int:
    """Run the tests in a copy of the tree. Return the exit status of pytest."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
    ]
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [*command, "--show-capture=no", "--tb=no", *tests],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return ended.returncode


def try_mutation(mutation: Mutation | None, tests: tuple[str, ...]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            source, target = ROOT / name, Path(folder) / name
            ignored = shutil.ignore_patterns("__pycache__")
            if source.is_dir():
                shutil.copytree(source, target, ignore=ignored)
            else:
                shutil.copy(source, target)
        if mutation is not None:
            file = Path(folder) / mutation.path
            file.write_text(mutation.apply(file.read_text("utf-8")), encoding="utf-8")
        return run_tests(Path(folder), tests)


def main() -> int:
    parser = argparse.ArgumentParser()
    names = [mutation.name for mutation in MUTATIONS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    only = parser.parse_args().only
    chosen = [mutation for mutation in MUTATIONS if mutation.name in only]
    tests = tuple(dict.fromkeys(test for mutation in chosen for test in mutation.tests))
    assert try_mutation(None, tests) == 0, "the tests fail without any mutation"
    survived = 0
    for mutation in chosen:
        started = time.monotonic()
        status = try_mutation(mutation, mutation.tests)
        verdict = {0: "SURVIVED", 1: "caught"}.get(status, f"pytest ended with {status}")
        survived += status != 1
        print(f"{verdict:<9} {mutation.name}  {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} caught")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
