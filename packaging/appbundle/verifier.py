"""Runs all checks on a bundle and reports the results.

The checks run on any system and need no Apple tools. They do not prove that the app starts on a
Mac.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appbundle.bundle import Bundle
from appbundle.checks import code, contents, mlx, plist, python, qt, signing, tree
from appbundle.reading import BundleError
from appbundle.spec import Spec

ALL_PASSED: Final = 0
FAILED: Final = 1
NOT_LAUNCHABLE: Final = 3  # exit status if the missing interpreter is the only problem

_SHOWN: Final = 3  # maximum number of problems that the report shows for each check

# All checks. Key: name in the report. Value: function that yields one sentence for each problem.
CHECKS: Final[Mapping[str, Callable[[Bundle], Iterator[str]]]] = {
    "interpreter": python.interpreter,
    "Info.plist": plist.info_plist,
    "document types": plist.document_types,
    "icon": plist.icon,
    "executable": code.executable,
    "Mach-O files": code.mach_o_files,
    "arm64 only": code.architecture,
    "extension modules": code.extension_modules,
    "dependencies": code.dependencies,
    "search paths": code.search_paths,
    "system version": code.system_version,
    "signed": signing.signed,
    "code hashes": signing.code_hashes,
    "bound files": signing.bound_files,
    "signing flags": signing.signing_flags,
    "seal": signing.seal,
    "Metal library": mlx.metal_library,
    "MLX versions": mlx.mlx_versions,
    "Qt modules": qt.qt_modules,
    "Qt plugins": qt.qt_plugins,
    "Qt leftovers": qt.qt_leftovers,
    "Qt frameworks": qt.qt_frameworks,
    "modules": python.modules,
    "bytecode": python.bytecode,
    "starter model": contents.starter_model,
    "no second copy": contents.no_second_copy,
    "licences": contents.licences,
    "stray files": tree.stray_files,
    "symbolic links": tree.symbolic_links,
    "file names": tree.file_names,
    "file modes": tree.file_modes,
    "bundle size": contents.bundle_size,
    "archive size": contents.archive_size,
}


@dataclass(frozen=True, slots=True)
class Result:
    """The problems that one check found. If `problems` is empty, the check has passed."""

    check: str
    problems: tuple[str, ...]


def verify(app: Path, spec: Spec, archives: Sequence[Path] = ()) -> list[Result]:
    """Run all checks on a bundle and its archives. Return the results in the order of CHECKS."""
    bundle = Bundle(app.resolve(), spec, archives)
    return [
        Result(name, _problems(check, bundle))
        for name, check in CHECKS.items()
        if archives or check is not contents.archive_size
    ]


def exit_status(results: Sequence[Result]) -> int:
    """Return 0 if all checks passed, 3 if only the interpreter is missing, otherwise 1."""
    failed = [result for result in results if result.problems]
    if not failed:
        return ALL_PASSED
    return NOT_LAUNCHABLE if [result.problems for result in failed] == [_UNLAUNCHABLE] else FAILED


def report(results: Sequence[Result]) -> str:
    """Return a report with one line for each check.

    If the interpreter is missing, the first line says that the app cannot be launched.
    """
    lines = [python.NO_INTERPRETER] if _is_unlaunchable(results) else []
    return "\n".join((*lines, *map(_line, results)))


def report_json(results: Sequence[Result]) -> str:
    checks = [
        {
            "check": result.check,
            "passed": not result.problems,
            "problems": result.problems,
        }
        for result in results
    ]
    facts = {"has_interpreter": not _is_unlaunchable(results), "checks": checks}
    return json.dumps(facts, indent=2)


_UNLAUNCHABLE: Final = (python.NO_INTERPRETER,)


def _problems(check: Callable[[Bundle], Iterator[str]], bundle: Bundle) -> tuple[str, ...]:
    found: list[str] = []
    try:
        found.extend(check(bundle))
    except (BundleError, OSError) as error:
        found.append(str(error))
    return tuple(map(_printable, found))


def _is_unlaunchable(results: Sequence[Result]) -> bool:
    return any(result.problems == _UNLAUNCHABLE for result in results)


def _line(result: Result) -> str:
    if not result.problems:
        return f"passed {result.check}"
    shown = "; ".join(result.problems[:_SHOWN])
    more = len(result.problems) - _SHOWN
    return f"failed {result.check}: {shown}" + (f"; and {more} more" if more > 0 else "")


def _printable(text: str) -> str:
    """Escape characters that can't be encoded as UTF-8. File names can contain such characters."""
    return text.encode("utf-8", "backslashreplace").decode()
