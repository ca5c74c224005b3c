"""The list of models on the disk: Hub cache, LM Studio, Ollama, GGUF files, own folders."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from engine.catalog.card import ModelSource
from engine.catalog.installed import (
    InstalledModel,
    find_gguf,
    find_ollama,
    of_card,
    read_layers,
    total_bytes,
)
from engine.catalog.reading import FolderReader
from engine.catalog.scan import Root, ollama_store, scan
from tests.fakes.model_folder import make_model, make_repository
from tests.fakes.model_stores import add_ollama_model, write_gguf


def gguf_in(folder: Path) -> list[InstalledModel]:
    return list(find_gguf([Root(folder, ModelSource.FOLDER)]))


def test_repository_in_the_cache_has_its_id_and_all_its_bytes(tmp_path: Path):
    make_repository(tmp_path, "owner/Tiny-Chat")
    roots = [Root(tmp_path, ModelSource.HF_CACHE)]
    (card,) = scan(roots)
    model = of_card(card, roots)

    files = [f for f in tmp_path.rglob("*") if f.is_file() and not f.is_symlink()]
    assert model.repo_id == "owner/Tiny-Chat"
    assert model.size_bytes == sum(f.stat().st_size for f in files) > 0


def test_parts_of_a_gguf_file_are_one_model(tmp_path: Path):
    for number in (1, 2, 3):
        write_gguf(tmp_path / "a" / "b" / f"Big-Q4-{number:05d}-of-00003.gguf", 1000)
    write_gguf(tmp_path / "a" / "b" / "Small.gguf", 500)

    big, small = gguf_in(tmp_path)
    assert (big.name, big.size_bytes, big.is_complete) == ("Big-Q4", 3000, True)
    assert (small.name, small.size_bytes, small.is_gguf) == ("Small", 500, True)


def test_gguf_file_with_missing_parts_is_incomplete(tmp_path: Path):
    write_gguf(tmp_path / "Big-00001-of-00003.gguf", 1000)

    assert [model.is_complete for model in gguf_in(tmp_path)] == [False]


def test_projectors_and_other_files_are_no_models(tmp_path: Path):
    write_gguf(tmp_path / "mmproj-model-f16.gguf", 100)
    (tmp_path / "text.gguf").write_text("no model")
    (tmp_path / "empty.gguf").touch()
    os.mkfifo(tmp_path / "pipe.gguf")

    assert gguf_in(tmp_path) == []


def test_gguf_file_outside_its_root_is_not_listed(tmp_path: Path):
    write_gguf(tmp_path / "outside" / "Private.gguf", 100)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link.gguf").symlink_to(tmp_path / "outside" / "Private.gguf")
    (tmp_path / "root" / "folder").symlink_to(tmp_path / "outside")
    (tmp_path / "root" / "loop").symlink_to(tmp_path / "root")

    assert gguf_in(tmp_path / "root") == []


def test_ollama_models_have_names_and_share_blobs(tmp_path: Path):
    add_ollama_model(tmp_path, "library/qwen3", "4b", weights=b"GGUF" + b"w" * 996)
    add_ollama_model(tmp_path, "library/qwen3", "latest", weights=b"GGUF" + b"w" * 996)
    add_ollama_model(tmp_path, "someone/tuned", "q8", weights=b"GGUF" + b"v" * 96)

    models = list(find_ollama(tmp_path))
    assert [model.name for model in models] == ["qwen3:4b", "qwen3:latest", "someone/tuned:q8"]
    assert all(model.is_gguf and model.path.is_file() for model in models)
    shared = models[0].size_bytes + models[1].size_bytes - total_bytes(models[:2])
    assert shared >= 1000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"layers": 3}',
        '{"layers": [{"digest": 5}]}',
        '{"layers": [[]]}',
        "[" * 100_000,
        "x" * 1_000_001,
    ],
)
def test_broken_manifest_is_skipped(text: str, tmp_path: Path):
    add_ollama_model(tmp_path, "library/good", "1b", weights=b"GGUF")
    bad = tmp_path / "manifests" / "registry.ollama.ai" / "library" / "bad" / "1b"
    bad.parent.mkdir()
    bad.write_text(text)

    assert read_layers(bad) is None
    assert [model.name for model in find_ollama(tmp_path)] == ["good:1b"]


def test_manifest_cannot_name_a_file_outside_the_store(tmp_path: Path):
    store = tmp_path / "store"
    add_ollama_model(store, "library/good", "1b", weights=b"GGUF")
    write_gguf(tmp_path / "secret", 10)
    digest = hashlib.sha256(b"x").hexdigest()
    (store / "blobs" / f"sha256-{digest}").symlink_to(tmp_path / "secret")
    layers = [
        {"mediaType": "application/vnd.ollama.image.model", "digest": name}
        for name in ("sha256:../../secret", f"sha256:{digest}")
    ]
    bad = store / "manifests" / "registry.ollama.ai" / "library" / "bad" / "1b"
    bad.parent.mkdir()
    bad.write_text(json.dumps({"layers": layers}))

    assert [model.name for model in find_ollama(store)] == ["good:1b"]


def test_ollama_store_follows_its_environment_variable(tmp_path: Path):
    assert ollama_store({}, tmp_path) == tmp_path / ".ollama" / "models"
    assert ollama_store({"OLLAMA_MODELS": "/x/y"}, tmp_path) == Path("/x/y")


def test_reader_stops_at_its_limit(tmp_path: Path):
    for number in range(9):
        (tmp_path / str(number)).mkdir()
    reader = FolderReader(max_entries=5)

    assert len(reader.entries(tmp_path)) == 5
    assert reader.is_exhausted
    assert reader.entries(tmp_path) == []


def test_model_folder_counts_a_hard_link_once(tmp_path: Path):
    folder = make_model(tmp_path / "m")
    before = of_card(*_only(tmp_path)).size_bytes
    os.link(folder / "model.safetensors", folder / "copy.safetensors")

    assert of_card(*_only(tmp_path)).size_bytes == before


def _only(folder: Path):
    roots = [Root(folder, ModelSource.FOLDER)]
    (card,) = scan(roots)
    return card, roots
