from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.conversation.preset import Preset, Presets
from app.conversation.tree import Setup
from app.store.conversations import open_store
from app.store.presets import PresetStore

TEACHER = Preset(name="teacher", system_prompt="Be patient.", setup=Setup(temperature=0.5))
WRITER = Preset(name="Writer", setup=Setup(top_k=40, presence_penalty=0.3, thinking=False))


@pytest.fixture
def presets(tmp_path: Path) -> Iterator[PresetStore]:
    with closing(open_store(tmp_path / "conversations.db", now=0.0).store) as store:
        yield store.presets


def test_load_returns_saved_presets_ordered_by_name(presets: PresetStore) -> None:
    for preset in (WRITER, TEACHER):
        presets.save_preset(preset)

    assert list(presets.load().by_name.values()) == [TEACHER, WRITER]


def test_save_preset_replaces_the_preset_of_the_same_name(presets: PresetStore) -> None:
    presets.save_preset(WRITER)
    presets.choose("/models/a", "Writer")
    other = Preset(name="Writer", system_prompt="Write.")
    presets.save_preset(other)

    assert presets.load() == Presets(by_name={"Writer": other}, by_model={"/models/a": "Writer"})


def test_choose_sets_or_clears_the_preset_of_a_model(presets: PresetStore) -> None:
    for preset in (WRITER, TEACHER):
        presets.save_preset(preset)
    for path, name in (("/a", "Writer"), ("/b", "Writer"), ("/a", "teacher"), ("/b", "")):
        presets.choose(path, name)

    assert presets.load().by_model == {"/a": "teacher"}


def test_delete_removes_the_preset_from_its_models(presets: PresetStore) -> None:
    presets.save_preset(WRITER)
    presets.choose("/a", "Writer")
    presets.delete("Writer")

    assert presets.load() == Presets()
