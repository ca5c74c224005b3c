"""A chat with pictures and a model that can't see: the line, Send, other models. On the real window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.conversation.tree import set_draft_attachments
from app.viewmodels.models import describe
from app.widgets.commands import CommandId
from app.words import commands, models
from tests.fakes.fake_engine import FACTS
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.stage import Stage
from tests.fakes.stored_pictures import stored_picture

BLIND = card("Tiny-9B-4bit")
SEEING = card("Qwen3.5-4B-4bit", sees=True, num_parameters=4_000_000_000)


def open_stage(tmp_path: Path, *, sees: bool, cards: tuple[object, ...] = (BLIND,)) -> Stage:
    stage = Stage(tmp_path, hold_load=True, catalog=FakeCatalog(cards=cards))  # pyright: ignore[reportArgumentType]
    stage.engine.facts = replace(FACTS, sees=sees)
    stage.engine.finish_load()
    stage.engine.hold_load = False
    stage.settle()
    return stage


def attach_picture(stage: Stage) -> None:
    desk = stage.core.desk
    picture = stored_picture(stage.core.pictures)
    stage.core.chat.apply(set_draft_attachments(desk.get(stage.current), (picture,)))
    stage.settle()


@pytest.fixture
def blind(qapp: QApplication, tmp_path: Path) -> Iterator[Stage]:
    stage = open_stage(tmp_path, sees=False, cards=(BLIND, SEEING))
    yield stage
    stage.close()


def test_picture_and_blind_model_keep_the_message_in_the_composer(blind: Stage) -> None:
    blind.type("What is this?")
    attach_picture(blind)
    line = blind.pane.unseen
    assert line.isVisible()
    assert line.note == "Tiny 9B 4-bit can’t see pictures."
    assert not blind.composer.button.isEnabled()
    QTest.keyClick(blind.edit, Qt.Key.Key_Return)
    blind.settle()
    assert not blind.engine.submitted
    assert blind.composer.text == "What is this?"
    assert len(blind.core.desk.get(blind.current).draft_attachments) == 1


def test_removed_picture_makes_send_possible_again(blind: Stage) -> None:
    blind.type("Hello")
    attach_picture(blind)
    blind.core.attachments.remove(blind.current, 0)
    blind.settle()
    assert blind.pane.unseen.isHidden()
    assert blind.composer.button.isEnabled()


def test_button_uses_a_model_on_this_computer_that_sees(blind: Stage) -> None:
    attach_picture(blind)
    line = blind.pane.unseen
    assert line.first.text() == models.use_model(SEEING.title)
    blind.engine.facts = replace(FACTS, sees=True)
    QTest.mouseClick(line.first, Qt.MouseButton.LeftButton)
    blind.wait_until(lambda: blind.core.models.status.path == str(SEEING.path))
    blind.wait_until(line.isHidden)
    assert blind.composer.button.isEnabled()


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
def test_no_model_that_sees_offers_get_models(qapp: QApplication, tmp_path: Path) -> None:
    stage = open_stage(tmp_path, sees=False)
    attach_picture(stage)
    asked: list[bool] = []
    stage.pane.get_models_requested.connect(lambda: asked.append(True))
    line = stage.pane.unseen
    assert line.first.isHidden()
    assert line.second.text() == commands.GET_MODELS
    QTest.mouseClick(line.second, Qt.MouseButton.LeftButton)
    assert asked
    stage.close()


def test_chat_with_earlier_pictures_is_not_sent_or_answered_again(
    qapp: QApplication, tmp_path: Path
) -> None:
    stage = open_stage(tmp_path, sees=True)
    attach_picture(stage)
    stage.send("What is this?")
    stage.answer("Hills.")
    stage.engine.facts = replace(FACTS, sees=False)
    stage.core.models.choose(BLIND.path)
    stage.core.models.load_again()
    stage.settle()
    stage.wait_until(stage.pane.unseen.isVisible)
    assert stage.pane.unseen.note.endswith("and this chat has some.")
    before = len(stage.engine.submitted)
    stage.send("And this?")
    stage.run(CommandId.REGENERATE)
    assert len(stage.engine.submitted) == before
    assert stage.composer.text == "And this?"
    assert "can’t see pictures" in stage.pane.notice.text
    stage.close()


def test_chat_of_a_model_that_sees_asks_for_it_in_one_line(
    qapp: QApplication, tmp_path: Path
) -> None:
    stage = open_stage(tmp_path, sees=True, cards=(BLIND, SEEING))
    stage.core.models.choose(SEEING.path)
    stage.settle()
    attach_picture(stage)
    stage.chat("What is this?", "Hills.")
    stage.run(CommandId.NEW_CHAT)
    stage.engine.facts = replace(FACTS, sees=False)
    stage.core.models.choose(BLIND.path)
    stage.settle()
    stage.core.library.select(stage.core.library.listed.unarchived[0].conversation_id)
    stage.settle()
    question, unseen = stage.pane.model_question, stage.pane.unseen
    assert question.isVisible()
    assert not unseen.isVisible()
    assert unseen.note
    QTest.mouseClick(question.second, Qt.MouseButton.LeftButton)  # Stay
    stage.settle()
    assert not question.isVisible()
    assert unseen.isVisible()
    stage.close()


def test_picker_says_which_models_see() -> None:
    assert models.SEES in describe(SEEING)
    assert models.SEES not in describe(BLIND)
