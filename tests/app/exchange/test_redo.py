"""An imported conversation gives the engine the same tokens: its next turn feeds none again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from app.cli.step_report import StepReport
from app.conversation.filed import FiledConversation
from app.conversation.tree import Conversation, shown_path
from app.exchange.exporting import export
from app.exchange.importing import Import
from app.store.conversations import open_store
from app.store.merging import merge
from app.store.pictures import PictureFiles
from tests.fakes.engine_fixtures import OpenTiny, TinyModel, open_tiny, tiny_model
from tests.fakes.foreign_exports import write_export
from tests.fakes.tiny_model import Template

__all__ = ["open_tiny", "tiny_model"]


def send(player: ScriptPlayer, text: str) -> StepReport:
    step = {"op": "send", "chat": "A", "text": text, "max_tokens": 6, "temperature": 0.8, "seed": 3}
    (report,) = player.play(parse_step(json.dumps(step)))
    return report


def stored(folder: Path, path: Path) -> Conversation:
    """Import a file with one conversation into a new database, and load it from there."""
    store = open_store(folder / "imported.db", now=0.0).store
    (filed,) = Import([path], now=0.0).found()
    assert isinstance(filed, FiledConversation)
    merge(store, filed)
    loaded = store.load(filed.conversation.conversation_id)
    store.close()
    return loaded


@pytest.mark.slow
@pytest.mark.parametrize("template", [Template.KEEPING, Template.THINKING])
def test_next_turn_of_an_exported_and_imported_conversation_has_redo_0(
    tmp_path: Path, open_tiny: OpenTiny, tiny_model: TinyModel, template: Template
) -> None:
    client = open_tiny(template=template)
    player = ScriptPlayer(client, tiny_model("qwen3_5", template), check=True)
    send(player, "What is a boat?")
    send(player, "And a ship?")
    before = player.chats["A"]
    path = tmp_path / "chat.json"
    export(path, [FiledConversation(conversation=before)], PictureFiles(tmp_path / "pictures"))

    player.chats["A"] = stored(tmp_path, path)
    report = send(player, "And a raft?")

    assert player.chats["A"].nodes.keys() > before.nodes.keys()
    assert report.redo == 0
    assert report.restored > 0
    assert report.holds


@pytest.mark.slow
def test_second_turn_of_a_foreign_conversation_has_redo_0(
    tmp_path: Path, open_tiny: OpenTiny, tiny_model: TinyModel
) -> None:
    player = ScriptPlayer(open_tiny(), tiny_model("qwen3_5", Template.KEEPING), check=True)
    player.chats["A"] = stored(tmp_path, write_export(tmp_path, "chatgpt"))

    first = send(player, "Three?")
    second = send(player, "Four?")

    assert len(shown_path(player.chats["A"])) == 8
    assert (first.redo, second.redo) == (0, 0)
    assert first.holds
    assert second.holds
