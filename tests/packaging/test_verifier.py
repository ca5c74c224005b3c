"""Tests of appbundle.verifier: an intact bundle passes; each damage fails only its own check."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from appbundle.checks.python import NO_INTERPRETER
from appbundle.verifier import CHECKS, Result, exit_status, report, report_json, verify
from tests.packaging.crafted import make_bundle, write_macho
from tests.packaging.damages import DAMAGES, Damage
from tests.packaging.machofile import PROGRAM, MachO
from tests.packaging.signing import reseal
from tests.packaging.tree import Tree

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return make_bundle(tmp_path_factory.mktemp("bundle"))


def verified(tree: Tree) -> list[Result]:
    return verify(tree.layout.app, tree.spec, tree.archives)


def failures(results: list[Result]) -> dict[str, tuple[str, ...]]:
    return {result.check: result.problems for result in results if result.problems}


def test_intact_bundle_passes_every_check(whole: Tree) -> None:
    results = verified(whole)

    assert failures(results) == {}
    assert [result.check for result in results] == list(CHECKS)
    assert exit_status(results) == 0
    assert report(results).splitlines() == [f"passed {check}" for check in CHECKS]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: f"{damage.check}: {damage.what}")
def test_damage_fails_only_its_own_check(damage: Damage, whole: Tree, tmp_path: Path) -> None:
    tree = whole.copied(tmp_path)
    try:
        damage.apply(tree)
    except OSError as error:
        if error.errno not in (errno.EILSEQ, errno.EEXIST):
            raise
        pytest.skip(f"this file system can't hold it: {error}")

    failed = failures(verified(tree))

    assert list(failed) == [damage.check]
    assert any(damage.reason in problem for problem in failed[damage.check])


def test_damaging_copies_leaves_the_original_bundle_intact(whole: Tree) -> None:
    assert failures(verified(whole)) == {}


def test_every_check_has_a_damage_in_the_table() -> None:
    assert {damage.check for damage in DAMAGES} == set(CHECKS)


def test_missing_weak_library_fails_only_outside_the_bundle(whole: Tree, tmp_path: Path) -> None:
    tree = whole.copied(tmp_path)
    folder = tree.layout.site_packages / "markupsafe"
    missing = MachO(needs_weakly=("@loader_path/libgone.dylib",))
    elsewhere = MachO(needs_weakly=("/opt/lib/libgone.dylib",))
    write_macho(tree, folder / "a.abi3.so", missing)
    write_macho(tree, folder / "b.abi3.so", elsewhere)
    reseal(tree)

    failed = failures(verified(tree))

    assert list(failed) == ["dependencies"]
    (problem,) = failed["dependencies"]
    assert "b.abi3.so needs /opt/lib/libgone.dylib" in problem


def test_library_is_found_by_the_search_paths_of_the_program(whole: Tree, tmp_path: Path) -> None:
    tree = whole.copied(tmp_path)
    program = MachO(
        file_type=PROGRAM,
        rpaths=("@executable_path/../Resources/python/lib",),
        identifier=tree.spec.identifier,
    )
    write_macho(tree, tree.layout.executable, program)
    module = MachO(needs=("@rpath/libpython3.12.dylib",))
    write_macho(tree, tree.layout.site_packages / "markupsafe" / "a.abi3.so", module)
    reseal(tree)

    assert failures(verified(tree)) == {}


def test_executable_path_of_a_second_program_is_its_own_folder(whole: Tree, tmp_path: Path) -> None:
    tree = whole.copied(tmp_path)
    python = MachO(file_type=PROGRAM, needs=("@executable_path/../lib/libpython3.12.dylib",))
    write_macho(tree, tree.layout.python_home / "bin" / "python3.12", python)
    reseal(tree)

    assert failures(verified(tree)) == {}


def test_bundle_behind_a_symbolic_link_passes(whole: Tree, tmp_path: Path) -> None:
    link = tmp_path / "link.app"
    link.symlink_to(whole.layout.app)

    assert failures(verify(link, whole.spec)) == {}


def test_empty_bundle_fails_with_a_report(whole: Tree, tmp_path: Path) -> None:
    results = verify(tmp_path, whole.spec)

    assert exit_status(results) == 1
    assert {"interpreter", "Info.plist", "executable", "seal"} <= failures(results).keys()
    assert "failed Info.plist: Info.plist can't be read: No such file" in report(results)


def test_archive_size_is_not_checked_without_archives(whole: Tree) -> None:
    results = verify(whole.layout.app, whole.spec)

    assert "archive size" not in [result.check for result in results]


def test_report_of_a_missing_interpreter_starts_with_not_launchable() -> None:
    missing = Result("interpreter", (NO_INTERPRETER,))
    other = Result("seal", ("a is not sealed", "b", "c", "d"))

    assert exit_status([missing, Result("seal", ())]) == 3
    assert exit_status([missing, other]) == 1
    assert exit_status([other]) == 1
    assert report([missing, other]).splitlines() == [
        "NOT LAUNCHABLE: no interpreter",
        "failed interpreter: NOT LAUNCHABLE: no interpreter",
        "failed seal: a is not sealed; b; c; and 1 more",
    ]
    assert json.loads(report_json([missing, other]))["has_interpreter"] is False


def test_verify_command_prints_the_result_of_each_check(whole: Tree) -> None:
    command = [sys.executable, "packaging/verify.py", str(whole.layout.app)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    as_json = subprocess.run(
        [*command, str(whole.archives[0]), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        f"passed {check}" for check in CHECKS if check != "archive size"
    ]
    assert as_json.returncode == 0
    assert [check["check"] for check in json.loads(as_json.stdout)["checks"]] == list(CHECKS)


def test_verify_command_refuses_a_missing_bundle() -> None:
    command = [sys.executable, "packaging/verify.py", "no/such.app"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert ran.returncode == 2
    assert "there is no no/such.app" in ran.stderr
