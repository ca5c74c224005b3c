from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.paths import Paths, make_paths
from engine.catalog.card import ModelSource
from engine.catalog.starter import starter_folder
from engine.errors import GgufError, ModelFolderError
from engine.local_models import LocalModels, OpenedModel
from tests.architectures.configs.every import CONFIGS
from tests.fakes.gguf_writer import gguf_bytes, tiny_llama, tiny_metadata
from tests.fakes.model_folder import make_model
from tests.fakes.tiny_model import Template, build_tiny


def nothing(_: float) -> None:
    """Ignore the reported progress."""


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """Return the paths of a user without models and without the starter model's package."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("engine.catalog.starter.find_starter_file", lambda: None)
    return make_paths(tmp_path / "data")


def listed(models: LocalModels) -> list[tuple[Path, ModelSource]]:
    return [(card.path, card.source) for card in models.scan(())]


def test_bundled_starter_is_listed_once_and_left_unchanged(paths: Paths, tmp_path: Path) -> None:
    bundle = tmp_path / "Rejoinder.app" / "Contents" / "Resources"
    bundled = make_model(starter_folder(bundle))
    make_model(starter_folder(paths.data_dir))
    make_model(starter_folder(paths.cache_dir))
    before = {path: path.stat().st_mtime_ns for path in bundle.rglob("*")}
    models = LocalModels(replace(paths, bundle=bundle))

    assert listed(models) == [(bundled, ModelSource.STARTER)]
    assert models.make_starter(nothing) == bundled
    assert models.best(models.scan(())) == models.scan(())[0]
    models.fingerprint(())
    assert {path: path.stat().st_mtime_ns for path in bundle.rglob("*")} == before


def test_new_starter_is_made_in_the_cache_folder(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = paths.data_dir.parent / "packaged.gguf"
    packaged.write_bytes(tiny_llama().to_bytes())
    monkeypatch.setattr("engine.catalog.starter.find_starter_file", lambda: packaged)
    models = LocalModels(paths)

    assert listed(models) == []
    folder = models.make_starter(nothing)
    assert folder.is_relative_to(paths.cache_dir)
    assert listed(models) == listed(LocalModels(paths)) == [(folder, ModelSource.STARTER)]


def test_opened_model_folder_is_added_to_the_search(paths: Paths, tmp_path: Path) -> None:
    folder = make_model(tmp_path / "Opened")

    assert LocalModels(paths).open(folder, (), nothing) == OpenedModel(folder, folder)


def test_opened_folder_already_searched_is_not_added_again(paths: Paths, tmp_path: Path) -> None:
    folder = make_model(tmp_path / "mine" / "Opened")
    link = tmp_path / "link"
    link.symlink_to(folder)

    found = LocalModels(paths).open(link, (str(tmp_path / "mine"),), nothing)

    assert found == OpenedModel(folder)


def test_opened_folder_with_several_models_gives_a_usable_one(paths: Paths, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (make_model(mine / "Broken") / "model.safetensors").unlink()
    good = make_model(mine / "Good")

    assert LocalModels(paths).open(mine, (), nothing) == OpenedModel(good, mine)


@pytest.mark.slow
def test_best_model_with_room_has_the_memory_for_the_chat(paths: Paths, tmp_path: Path) -> None:
    build_tiny("llama", tmp_path / "Tiny", Template.KEEPING, CONFIGS)
    build_tiny("llama", tmp_path / "Broken", Template.KEEPING, CONFIGS)
    models = LocalModels(paths)
    cards = models.scan((str(tmp_path),))
    (tmp_path / "Broken" / "config.json").unlink()

    found = models.best_with_room(cards, 100_000)
    assert found is not None
    assert found.name == "Tiny"
    assert models.best_with_room(cards, 10**9) is None


def test_opened_gguf_file_is_imported_into_the_data_folder(paths: Paths, tmp_path: Path) -> None:
    file = tmp_path / "Tiny.Q4.GGUF"
    file.write_bytes(tiny_llama().to_bytes())
    heard: list[float] = []
    models = LocalModels(paths)

    folder = paths.models_dir / "Tiny.Q4"
    assert models.open(file, (), heard.append) == OpenedModel(folder, folder)
    assert heard[-1] == 1.0
    (card,) = models.scan((str(folder),))
    assert (card.path, card.usable) == (folder, True)


def test_gguf_file_of_another_architecture_is_refused(paths: Paths, tmp_path: Path) -> None:
    file = tmp_path / "mamba.gguf"
    file.write_bytes(gguf_bytes({**tiny_metadata(), "general.architecture": "mamba"}, []))

    with pytest.raises(GgufError, match="kind “mamba” yet"):
        LocalModels(paths).open(file, (), nothing)
    assert [one.name for one in paths.models_dir.iterdir()] == [".mamba.lock"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("notes.txt", "“notes.txt” is neither a model folder nor a GGUF file."),
        ("holidays", "“holidays” is neither a model folder nor a GGUF file."),
        ("missing.gguf", "There is no file or folder "),
        ("Broken", "It has no weights"),
    ],
)
def test_opened_path_without_a_usable_model_is_refused(
    paths: Paths, tmp_path: Path, name: str, sentence: str
) -> None:
    (tmp_path / "notes.txt").write_text("Milk")
    (tmp_path / "holidays").mkdir()
    (make_model(tmp_path / "Broken") / "model.safetensors").unlink()

    with pytest.raises(ModelFolderError) as refused:
        LocalModels(paths).open(tmp_path / name, (), nothing)
    assert sentence in refused.value.problem.cause
