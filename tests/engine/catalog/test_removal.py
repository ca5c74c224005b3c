"""Removal of models: only from known places, never a file that another model needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.catalog.card import ModelSource
from engine.catalog.installed import InstalledModel, find_gguf, find_ollama, of_card
from engine.catalog.removal import RemovalError, plan_removal, remove
from engine.catalog.scan import Root, scan
from engine.catalog.trash import delete, move_to_trash
from engine.errors import DiskError
from tests.fakes.model_folder import make_model, make_repository
from tests.fakes.model_stores import add_ollama_model, write_gguf


@pytest.fixture(autouse=True)
def trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("engine.catalog.trash.sys.platform", "linux")
    return tmp_path / "data" / "Trash"


def models_in(root: Path, source: ModelSource = ModelSource.FOLDER) -> list[InstalledModel]:
    roots = [Root(root, source)]
    return [*(of_card(card, roots) for card in scan(roots)), *find_gguf(roots)]


def test_model_folder_goes_to_the_trash_and_can_be_put_back(tmp_path: Path, trash: Path):
    root = tmp_path / "models"
    folder = make_model(root / "Tiny")
    make_model(root / "Other")
    model = next(model for model in models_in(root) if model.name == "Tiny")
    plan = plan_removal(model, [root], models_in(root))

    assert plan.freed_bytes == sum(file.stat().st_size for file in folder.iterdir())
    remove(plan)
    assert not folder.exists()
    assert (trash / "files" / "Tiny" / "model.safetensors").is_file()
    assert f"Path={folder}" in (trash / "info" / "Tiny.trashinfo").read_text()
    assert [model.name for model in models_in(root)] == ["Other"]


def test_second_file_of_a_name_gets_another_name_in_the_trash(tmp_path: Path, trash: Path):
    for _ in range(2):
        move_to_trash(write_gguf(tmp_path / "m.gguf", 10))

    assert sorted(path.name for path in (trash / "files").iterdir()) == ["m 2.gguf", "m.gguf"]


def test_file_that_cannot_be_moved_stays_and_leaves_no_record(tmp_path: Path, trash: Path):
    with pytest.raises(DiskError, match="Trash"):
        move_to_trash(tmp_path / "none.gguf")

    assert list((trash / "info").iterdir()) == []


def test_all_parts_of_a_gguf_file_are_removed(tmp_path: Path):
    root = tmp_path / "models"
    for number in (1, 2):
        write_gguf(root / f"Big-{number:05d}-of-00002.gguf", 100)
    kept = write_gguf(root / "Small.gguf", 100)
    big = models_in(root)[0]
    plan = plan_removal(big, [root], models_in(root))
    remove(plan)

    assert plan.freed_bytes == 200
    assert list(root.iterdir()) == [kept]


def test_repository_goes_to_the_trash_with_all_revisions(tmp_path: Path, trash: Path):
    make_repository(tmp_path / "hub", "owner/Tiny", "a" * 40)
    make_repository(tmp_path / "hub", "owner/Tiny", "b" * 40, main=False)
    make_repository(tmp_path / "hub", "owner/Other", "c" * 40)
    models = models_in(tmp_path / "hub", ModelSource.HF_CACHE)
    model = next(model for model in models if model.repo_id == "owner/Tiny")
    files = (tmp_path / "hub" / "models--owner--Tiny").rglob("*")
    num_bytes = sum(f.stat().st_size for f in files if f.is_file() and not f.is_symlink())
    plan = plan_removal(model, [tmp_path / "hub"], models)

    assert plan.freed_bytes == num_bytes
    remove(plan)
    names = [path.name for path in (tmp_path / "hub").iterdir() if path.name.startswith("models")]
    assert names == ["models--owner--Other"]
    kept = trash / "files" / "models--owner--Tiny" / "snapshots"
    assert sorted(path.name for path in kept.iterdir()) == ["a" * 40, "b" * 40]


def test_plan_whose_first_files_are_gone_deletes_the_others(tmp_path: Path):
    root = tmp_path / "models"
    first, second = (write_gguf(root / f"Big-{n:05d}-of-00002.gguf", 100) for n in (1, 2))
    (model,) = models_in(root)
    plan = plan_removal(model, [root], [model])
    first.unlink()
    remove(plan, delete)

    assert not second.exists()


def test_snapshot_that_links_to_another_place_leaves_it_alone(tmp_path: Path):
    make_repository(tmp_path / "hub", "owner/Tiny", "a" * 40)
    private = tmp_path / "private.txt"
    private.write_text("mine")
    snapshot = tmp_path / "hub" / "models--owner--Tiny" / "snapshots" / ("a" * 40)
    (snapshot / "notes.txt").symlink_to(private)
    (snapshot / "folder").symlink_to(tmp_path)
    (model,) = models_in(tmp_path / "hub", ModelSource.HF_CACHE)
    try:
        remove(plan_removal(model, [tmp_path / "hub"], [model]))
    except RemovalError:
        assert snapshot.exists()
    assert private.read_text() == "mine"


def test_shared_blobs_of_ollama_stay_until_the_last_model_goes(tmp_path: Path):
    store = tmp_path / "store"
    for tag in ("4b", "latest"):
        add_ollama_model(store, "library/qwen3", tag, weights=b"GGUF" + bytes(996))
    first, second = find_ollama(store)
    plan = plan_removal(first, [store], [first, second])
    assert plan.freed_bytes < 1000  # the manifest alone
    remove(plan)
    assert [model.name for model in find_ollama(store)] == ["qwen3:latest"]

    (second,) = find_ollama(store)
    plan = plan_removal(second, [store], [second])
    assert plan.freed_bytes > 1000
    remove(plan)
    assert list(find_ollama(store)) == []
    assert list((store / "blobs").iterdir()) == []


def test_ollama_model_beside_a_broken_manifest_is_refused(tmp_path: Path):
    manifest = add_ollama_model(tmp_path, "library/a", "1b", weights=b"GGUF" + b"a")
    (manifest.parent / "2b").write_text("{")
    (model,) = find_ollama(tmp_path)

    with pytest.raises(RemovalError, match="can’t be read"):
        plan_removal(model, [tmp_path], [model])


def test_model_outside_known_places_is_refused(tmp_path: Path):
    make_model(tmp_path / "elsewhere" / "Tiny")
    (model,) = models_in(tmp_path / "elsewhere")

    with pytest.raises(RemovalError, match="outside"):
        plan_removal(model, [tmp_path / "models"], [model])


def test_folder_that_also_holds_other_things_is_refused(tmp_path: Path):
    root = make_model(tmp_path / "Documents")
    (root / "Letters").mkdir()
    (model,) = models_in(root)

    with pytest.raises(RemovalError, match="Letters"):
        plan_removal(model, [root], [model])


def test_link_to_a_model_folder_is_refused(tmp_path: Path):
    folder = make_model(tmp_path / "outside" / "Tiny")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "Tiny").symlink_to(folder)
    (model,) = models_in(tmp_path / "models")

    with pytest.raises(RemovalError, match="link"):
        plan_removal(model, [tmp_path / "models"], [model])
    assert folder.is_dir()


def test_folder_that_became_a_link_after_the_plan_is_refused(tmp_path: Path):
    folder = make_model(tmp_path / "models" / "Tiny")
    (model,) = models_in(tmp_path / "models")
    plan = plan_removal(model, [tmp_path / "models"], [model])
    moved = folder.rename(tmp_path / "moved")
    folder.symlink_to(moved)

    with pytest.raises(RemovalError, match="link"):
        remove(plan)
    assert moved.is_dir()


def test_demo_model_is_refused(tmp_path: Path):
    make_model(tmp_path / "demo")
    (model,) = models_in(tmp_path, ModelSource.STARTER)

    with pytest.raises(RemovalError, match="belongs to the app"):
        plan_removal(model, [tmp_path], [model])


def test_hard_link_elsewhere_frees_nothing(tmp_path: Path):
    file = write_gguf(tmp_path / "models" / "a.gguf", 1000)
    os.link(file, tmp_path / "copy")
    (model,) = models_in(tmp_path / "models")

    assert plan_removal(model, [tmp_path / "models"], [model]).freed_bytes == 0
