"""Tests of the empty chat in several window sizes and with several sets of models."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QWidget

from app.theme.tokens import Size
from app.widgets.commands import CommandId
from app.widgets.composer_caption import PRIVACY_CHATS
from app.widgets.models_window import ModelsWindow
from app.words import computer
from engine.problem import Problem
from tests.app.conftest import MakeStage
from tests.fakes.rig import DEMO, FakeCatalog, card
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
CATALOGS = {
    "good": FakeCatalog(cards=(card(),)),
    "demo": FakeCatalog(cards=(), starter=DEMO),
    "none": FakeCatalog(cards=()),
}
SIZES = [(640, 480), (1180, 780), (1600, 1000)]


def middle(stage: Stage) -> float:
    """Return the y of the composer's centre as a fraction of the window's height."""
    box = stage.composer.box
    return box.mapTo(stage.window, box.rect().center()).y() / stage.window.height()


def resized(stage: Stage, size: tuple[int, int]) -> None:
    stage.window.resize(*size)
    stage.settle()


def recent(stage: Stage) -> list[QPushButton]:
    return [one for one in stage.pane.empty.recent.findChildren(QPushButton) if one.isVisible()]


def inside(widget: QWidget, window: QWidget) -> bool:
    return window.rect().contains(QRect(widget.mapTo(window, QPoint(0, 0)), widget.size()))


@pytest.mark.parametrize("catalog", CATALOGS.values(), ids=CATALOGS)
def test_composer_of_an_empty_chat_is_at_two_fifths_of_the_height(
    make_stage: MakeStage, catalog: FakeCatalog
) -> None:
    stage = make_stage(catalog=catalog)
    title = stage.pane.empty.heading.title
    for size in SIZES:
        stage.edit.clear()
        resized(stage, size)
        # Wait, because the layout may change when the search for models on another thread ends.
        stage.wait_until(lambda: middle(stage) == pytest.approx(0.4, abs=0.003))
        assert title.width() >= title.fontMetrics().horizontalAdvance(title.text())
        assert title.height() < 2 * title.fontMetrics().height(), "the title has two lines"
        stage.edit.setPlainText("one\ntwo\nthree")
        stage.wait_until(lambda: middle(stage) == pytest.approx(0.4, abs=0.003))


def test_composer_moves_down_with_the_first_message(stage: Stage) -> None:
    stage.send("Hello")
    assert middle(stage) > 0.7
    stage.answer("Hi")
    stage.run(CommandId.NEW_CHAT)
    assert middle(stage) == pytest.approx(0.4, abs=0.003)


def test_recent_chats_are_shown_as_far_as_they_fit(make_stage: MakeStage) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(), starter=DEMO))
    for number in range(5):
        stage.rig.origin.time_s += 1
        stage.chat(f"Question {number}", "Yes")
        stage.run(CommandId.NEW_CHAT)
    stage.rig.core.organiser.rename(
        stage.rig.library.listed.unarchived[0].conversation_id, "Salt & pepper " * 9
    )
    stage.settle()
    resized(stage, SIZES[0])
    assert recent(stage)[0].text().startswith("Salt && pepper Salt &&")
    assert recent(stage)[0].text().endswith("…")
    assert 0 < len(recent(stage)) < 4
    assert all(inside(one, stage.window) for one in recent(stage))
    resized(stage, SIZES[1])
    assert [one.text() for one in recent(stage)[1:]] == [f"Question {n}" for n in (3, 2, 1)]
    QTest.mouseClick(recent(stage)[1], Qt.MouseButton.LeftButton)
    stage.settle()
    assert stage.texts == ["Question 3", "Yes"]


def test_empty_chat_without_a_model_has_one_sentence_and_one_button(make_stage: MakeStage) -> None:
    stage = make_stage(catalog=CATALOGS["none"])
    note = stage.pane.empty.model_note
    assert note.sentence.text().startswith(f"There is no model on {computer.THIS_COMPUTER} yet.")
    assert note.width() <= Size.PICKER_WIDTH
    assert stage.composer.caption == ""
    QTest.mouseClick(note.button, Qt.MouseButton.LeftButton)
    models = stage.window.findChild(ModelsWindow)
    assert models is not None
    assert models.isVisible()


def test_composer_is_as_high_in_later_chats_as_in_the_first(stage: Stage) -> None:
    places: set[int] = set()
    for number in range(PRIVACY_CHATS + 2):
        stage.run(CommandId.NEW_CHAT)
        stage.chat(f"Question {number}", "Yes")
        places.add(stage.composer.box.mapTo(stage.window, QPoint()).y())
    assert len(places) == 1


def test_empty_chat_without_a_store_shows_only_the_problem(stage: Stage) -> None:
    pane = stage.pane
    stage.settle()  # the store has been opened
    assert pane.empty.heading.isVisible()
    assert pane.empty.promise.isVisible()
    problem = Problem(title="Your chats are in use.", cause="", advice="Try again.", details="")
    stage.core.store.unavailable.emit(problem)
    stage.settle()
    assert pane.notice.isVisible()
    assert not pane.empty.heading.isVisible(), "no message can be written"
    assert not pane.empty.promise.isVisible()
    stage.core.store.opened.emit()
    stage.settle()
    assert pane.empty.heading.isVisible()
