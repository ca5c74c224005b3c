from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.catalog.card import ModelSource
from engine.catalog.scan import Root, default_roots, fingerprint, scan
from tests.fakes.model_folder import make_model, make_repository, write_json


def found(*roots: Root) -> list[tuple[str, ModelSource]]:
    return [(card.name, card.source) for card in scan(roots)]


def folder_root(path: Path) -> Root:
    return Root(path, ModelSource.FOLDER)


def test_scan_finds_models_of_every_layout_in_place(tmp_path: Path):
    hub, studio, mine = tmp_path / "hub", tmp_path / "studio", tmp_path / "mine"
    make_repository(hub, "org/Cached")
    make_model(studio / "publisher" / "Studied")
    make_model(mine / "Flat")
    make_model(mine / "a" / "Deep")
    make_model(mine / "a" / "b" / "TooDeep")
    alone = make_model(tmp_path / "Alone")
    starter = make_model(tmp_path / "data" / "models" / "SmolLM2-135M-Instruct")

    cards = scan(
        [
            Root(starter, ModelSource.STARTER),
            Root(hub, ModelSource.HF_CACHE),
            Root(studio, ModelSource.LM_STUDIO),
            folder_root(mine),
            folder_root(alone),
        ]
    )

    assert [(card.name, card.source) for card in cards] == [
        ("Alone", ModelSource.FOLDER),
        ("Cached", ModelSource.HF_CACHE),
        ("Deep", ModelSource.FOLDER),
        ("Flat", ModelSource.FOLDER),
        ("Studied", ModelSource.LM_STUDIO),
        ("SmolLM2-135M-Instruct", ModelSource.STARTER),
    ]
    assert all(card.usable for card in cards)
    assert cards[1].path == hub / "models--org--Cached" / "snapshots" / "abc123"


def test_scan_prefers_the_main_revision(tmp_path: Path):
    make_repository(tmp_path, "org/M", "old")
    make_repository(tmp_path, "org/M", "main-one")
    make_repository(tmp_path, "org/M", "newest", main=False)
    (card,) = scan([Root(tmp_path, ModelSource.HF_CACHE)])
    assert card.path.name == "main-one"


def test_scan_without_main_revision_uses_the_newest(tmp_path: Path):
    for age, revision in enumerate(("new", "old")):
        snapshot = make_repository(tmp_path, "org/M", revision, main=False)
        os.utime(snapshot, (1000 - age, 1000 - age))
    (card,) = scan([Root(tmp_path, ModelSource.HF_CACHE)])
    assert card.path.name == "new"


def test_main_revision_without_weights_does_not_hide_a_complete_one(tmp_path: Path):
    make_repository(tmp_path, "org/M", "complete")
    empty = tmp_path / "models--org--M" / "snapshots" / "update"
    empty.mkdir()
    write_json(empty / "config.json", {"model_type": "llama"})
    (tmp_path / "models--org--M" / "refs" / "main").write_text("update")
    (card,) = scan([Root(tmp_path, ModelSource.HF_CACHE)])
    assert card.path.name == "complete"


def test_unfinished_download_is_listed_with_its_problem(tmp_path: Path):
    snapshot = make_repository(tmp_path, "org/M")
    (snapshot / "model.safetensors").unlink()
    (tmp_path / "models--org--M" / "blobs" / "1234.incomplete").touch()
    (card,) = scan([Root(tmp_path, ModelSource.HF_CACHE)])
    assert card.problem is not None
    assert card.problem.cause == "The download of its weights is not complete."


def test_folder_reached_by_several_roots_is_listed_once(tmp_path: Path):
    model = make_model(tmp_path / "models" / "M")
    (tmp_path / "link").symlink_to(model)
    roots = [
        Root(tmp_path / "models", ModelSource.LM_STUDIO),
        folder_root(tmp_path / "link"),
        folder_root(model),
    ]
    assert found(*roots) == [("M", ModelSource.LM_STUDIO)]


def test_scan_leaves_out_folders_without_a_chat_model(tmp_path: Path):
    make_model(tmp_path / "Chat")
    make_model(tmp_path / "bert", {"model_type": "bert", "architectures": ["BertModel"]})
    (make_model(tmp_path / "diffusion") / "model_index.json").touch()
    (make_model(tmp_path / "embedding") / "modules.json").touch()
    (make_model(tmp_path / "tokenizer-only") / "model.safetensors").unlink()
    make_model(tmp_path / ".hidden")
    make_model(tmp_path / "datasets--x" / "y")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert found(folder_root(tmp_path)) == [("Chat", ModelSource.FOLDER)]


def test_unsupported_and_broken_models_are_listed_as_unusable(tmp_path: Path):
    make_model(tmp_path / "Good")
    make_model(tmp_path / "Unknown", {"model_type": "gpt9"})
    (make_model(tmp_path / "Broken") / "config.json").write_text("{")
    cards = scan([folder_root(tmp_path)])
    assert {card.name: card.usable for card in cards} == {
        "Broken": False,
        "Good": True,
        "Unknown": False,
    }


def test_broken_folder_named_as_root_is_listed_with_its_problem(tmp_path: Path):
    model = make_model(tmp_path / "M")
    (model / "model.safetensors").unlink()
    (card,) = scan([folder_root(model)])
    assert card.problem is not None
    assert "It has no weights" in card.problem.cause


def test_scan_ignores_loops_dead_links_and_missing_roots(tmp_path: Path):
    make_model(tmp_path / "M")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "dead").symlink_to(tmp_path / "nowhere")
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    assert found(folder_root(tmp_path), folder_root(tmp_path / "none")) == [
        ("M", ModelSource.FOLDER)
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_folder_without_read_permission_is_listed_as_unusable(tmp_path: Path):
    make_model(tmp_path / "M")
    locked = make_model(tmp_path / "Locked")
    (locked / "config.json").chmod(0)
    cards = {card.name: card for card in scan([folder_root(tmp_path)])}
    assert cards["M"].usable
    assert not cards["Locked"].usable


def test_fingerprint_does_not_change_with_unrelated_files(tmp_path: Path):
    make_model(tmp_path / "M")
    make_repository(tmp_path, "org/N")
    roots = [folder_root(tmp_path)]
    first = fingerprint(roots)
    (tmp_path / "unrelated").mkdir()
    (tmp_path / "notes.txt").touch()
    assert fingerprint(roots) == first


@pytest.mark.parametrize("change", ["new", "removed", "grown", "edited", "renamed"])
def test_fingerprint_changes_with_every_change_of_a_model(tmp_path: Path, change: str):
    model = make_model(tmp_path / "M")
    roots = [folder_root(tmp_path)]
    first = fingerprint(roots)
    match change:
        case "new":
            make_model(tmp_path / "N")
        case "removed":
            (model / "model.safetensors").unlink()
        case "grown":
            with (model / "model.safetensors").open("ab") as file:
                file.write(b"x")
        case "edited":
            os.utime(model / "config.json", ns=(1, 1))
        case _:
            model.rename(tmp_path / "O")
    assert fingerprint(roots) != first


def test_default_roots_follow_the_environment_variables(tmp_path: Path):
    home, starter = tmp_path / "home", tmp_path / "starter"

    def hub(**environment: str) -> Path:
        return default_roots(starter, (), environment, home)[1].path

    assert hub() == home / ".cache" / "huggingface" / "hub"
    assert hub(XDG_CACHE_HOME="/c") == Path("/c/huggingface/hub")
    assert hub(XDG_CACHE_HOME="/c", HF_HOME="/h") == Path("/h/hub")
    assert hub(HF_HOME="/h", HF_HUB_CACHE="/hub") == Path("/hub")
    roots = default_roots(starter, (Path("/mine"),), {}, home)
    assert roots[0] == Root(starter, ModelSource.STARTER)
    assert [root.path for root in roots if root.source is ModelSource.LM_STUDIO] == [
        home / ".lmstudio" / "models",
        home / ".cache" / "lm-studio" / "models",
    ]
    assert roots[-1] == Root(Path("/mine"), ModelSource.FOLDER)
