"""A picture in the real window, read by the real engine with a tiny model that sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.conversation.tree import Setup, set_draft_attachments, shown_path
from app.viewmodels.models import ModelPhase
from app.viewmodels.transcript import ItemStatus
from app.widgets.commands import CommandId
from app.widgets.transcript.input.click_actions import PictureAction
from engine.problem import ProblemKind
from tests.fakes.real_window import RealWindow
from tests.fakes.stored_pictures import scene, stored_picture
from tests.fakes.tiny_model import Template


def answered(driver: RealWindow, number: int) -> Callable[[], bool]:
    """Return a function that is True once this many answers are complete."""
    return lambda: (
        sum(one.status is ItemStatus.COMPLETE for one in driver.items) == 2 * number
        and not driver.core.turns.live
    )


def test_pasted_picture_is_priced_read_once_and_restored(
    qapp: QApplication, tmp_path: Path, seeing_model: Callable[[str, Template], Path]
) -> None:
    model = seeing_model("qwen3_5", Template.KEEPING)
    driver = RealWindow(tmp_path / "data")
    driver.launch(model)
    driver.wait_until(lambda: driver.core.models.status.phase is ModelPhase.READY)
    driver.limit_answers(model, Setup(max_tokens=4))
    driver.window.commands[CommandId.NEW_CHAT].trigger()
    QGuiApplication.clipboard().setImage(scene(320, 192))
    driver.run(CommandId.PASTE)
    chips = driver.pane.composer.files
    driver.wait_until(lambda: bool(chips.chips) and "tokens" in chips.chips[0].chip.details)
    num_tokens = int(chips.chips[0].chip.details.split()[0])
    driver.type("What is this?")
    QTest.keyClick(driver.edit, Qt.Key.Key_Return)
    driver.wait_until(answered(driver, 1))
    driver.type("And its colours?")
    QTest.keyClick(driver.edit, Qt.Key.Key_Return)
    driver.wait_until(answered(driver, 2))
    usages = [
        node.generation.usage
        for node in shown_path(driver.core.desk.get(driver.current))
        if node.generation is not None
    ]
    first, second = usages
    assert first is not None
    assert second is not None
    assert first.plan.read > num_tokens
    assert second.plan.restored > num_tokens
    assert second.plan.read + second.plan.replayed < num_tokens
    driver.close()
    QGuiApplication.clipboard().clear()


def test_chat_with_a_missing_file_of_a_picture_is_answered_without_the_picture(
    qapp: QApplication, tmp_path: Path, seeing_model: Callable[[str, Template], Path]
) -> None:
    model = seeing_model("qwen3_5", Template.KEEPING)
    driver = RealWindow(tmp_path / "data")
    driver.launch(model)
    driver.wait_until(lambda: driver.core.models.status.phase is ModelPhase.READY)
    driver.limit_answers(model, Setup(max_tokens=4))
    driver.window.commands[CommandId.NEW_CHAT].trigger()
    picture = stored_picture(driver.core.pictures, width=320, height=192)
    assert picture.picture is not None
    driver.core.pictures.view(picture.picture.view).unlink()
    draft = set_draft_attachments(driver.core.desk.get(driver.current), (picture,))
    driver.core.chat.apply(draft)
    driver.type("What is this?")
    QTest.keyClick(driver.edit, Qt.Key.Key_Return)
    driver.wait_until(lambda: driver.items[-1].status is ItemStatus.FAILED)
    problem = driver.items[-1].problem
    assert problem is not None
    assert problem.kind is ProblemKind.PICTURE
    assert problem.cause == "The file of a picture is missing."
    actions = driver.pane.view.click_actions

    actions.act_on_picture(0, 0, PictureAction.SEND_WITHOUT)

    driver.wait_until(answered(driver, 1))
    assert not driver.items[0].files
    driver.close()
