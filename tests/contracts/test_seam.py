"""Contract between app and engine: the app imports only a few names of the engine.

If an imported name changes, both app and engine have to change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.contracts.sources import ROOT, parsed, statements

# Models on the disk: ModelCard, InstalledModel, RemovalPlan, Fit, FitVerdict and the like.
# header_len tells the child process that downloads when a GGUF header is complete.
# The engine counts, titles and reads ahead a NextPrompt; TokensCounted and CacheReport are answers, and
# Asked stands for one. ProblemKind tells problems apart. ReasonKind gives the state line its cause.
# CacheStatistics has the figures of the settings page about storage.
# Eleven for several Macs: the engine here or in stages, the program of a stage, hosts, their check and their states.
# MAX_DRAFTS limits an option of the command line. write_whole and part_of replace files of both
# packages. ReadingPace and ReadingTime announce how long reading takes, and
# MeasuredReading is stored. WaitReason gives the line of a
# waiting message its reason. model_title names a model alike in the problems of the engine and on
# screen. Seven for the local server, a second client of the engine: Clients and the events that concern
# one of them, tool calls, formats of answers, scores of tokens. It asks by the methods of EngineCommands.
# HeldChats and HeldChat are what the window about memory shows.
# Three for pictures: Picture and its digest, and the answer how many tokens they take.
# Two for several answers to one message, one for documents of folders: ids under which the engine works.
# Three for previews of answers: the preview, and the event and the stage that tell of its progress.
# Two for the search of models: the types that see pictures, and what a config.json says about it.
MAX_NAMES = 94
# Child processes, their frames and opened files are not parts of the engine.
NOT_COUNTED = (
    "engine.plain_file",
    "engine.worker.child",
    "engine.worker.confinement",
    "engine.worker.frames",
    "engine.worker.interpreter",
    "engine.worker.loop",
)


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (module, name) for each imported name, and (module, "") for `import module`."""
    for node in statements(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((module, alias.name) for alias in names)
            case ast.Import(names=names):
                yield from ((alias.name, "") for alias in names)
            case _:
                pass


def is_module(module: str, name: str) -> bool:
    place = ROOT.joinpath(*module.split("."), name)
    return not name or place.is_dir() or place.with_suffix(".py").is_file()


@cache
def engine_names() -> set[tuple[str, str]]:
    files = (ROOT / "app").rglob("*.py")
    found = {one for file in files for one in imports(parsed(file))}
    return {
        (module, name)
        for module, name in found
        if module.split(".")[0] == "engine" and module not in NOT_COUNTED
    }


@pytest.mark.slow
def test_the_app_imports_few_names_of_the_engine() -> None:
    names = engine_names()

    assert 10 < len(names) <= MAX_NAMES, (
        f"app imports {len(names)} names of engine, and {MAX_NAMES} are allowed. Use a name that it"
        f" imports already, or explain the new one at MAX_NAMES: {sorted(names)}"
    )


def test_the_app_imports_no_module_of_the_engine() -> None:
    # If the app imported a whole module, MAX_NAMES would not count the names used from it.
    found = [one for one in engine_names() if is_module(*one)]
    assert not found, f"import names of these modules of engine, not the modules: {found}"


def test_is_module_is_true_for_imports_of_modules() -> None:
    source = "import engine.types\nfrom engine import cache, events\nfrom engine.types import Role"
    found = list(imports(ast.parse(source)))

    assert [is_module(*one) for one in found] == [True, True, True, False]
