"""Cards above the composer in a window that is too low for them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollBar

from app.conversation.attachments import make_attachment
from app.settings import Settings
from app.theme.tokens import Size, Space
from app.widgets.commands import CommandId
from app.widgets.line_height import Sentences
from app.widgets.notice import Notice
from app.widgets.scroller import VerticalScroller
from app.words import several
from engine.errors import ContextFullError
from engine.hosts.faults import silent
from engine.hosts.hostfile import parse_hosts
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.stage import Stage


def text_bar(notice: Notice) -> QScrollBar:
    """Return the scroll bar of the texts of a notice."""
    (texts,) = notice.findChildren(VerticalScroller)
    return texts.verticalScrollBar()


def test_card_scrolls_in_a_low_window_and_leaves_the_composer_whole(make_stage: MakeStage) -> None:
    stage = make_stage(settings=Settings(text_zoom=160))
    stage.chat("Hello", "Hi")
    needed = stage.composer.minimumSizeHint().height()
    stage.window.resize(640, 480)
    stage.engine.hold_start = True
    stage.send("Again")
    stage.engine.fail(ContextFullError("It has 33,012 tokens and takes 32,768.").problem)
    stage.settle()
    stage.wait_until(lambda: stage.pane.notice.height() > 0)
    notice, cards = stage.pane.notice, stage.pane.cards
    assert stage.composer.height() >= needed
    assert notice.height() >= notice.heightForWidth(notice.width()), "no text is cut"
    assert text_bar(notice).maximum() > 0
    assert stage.pane.view.height() >= Size.CONTROL, "the transcript keeps a line"
    notice.close_button.setFocus()
    QTest.keyClick(notice.close_button, Qt.Key.Key_Tab)
    assert stage.edit.hasFocus(), QApplication.focusWidget()
    assert cards.minimumSizeHint().width() <= cards.width()
    stage.window.resize(1100, 900)
    stage.settle()
    assert cards.bar.maximum() == text_bar(notice).maximum() == 0
    assert cards.height() == Space.S + notice.height(), "text above does not touch the card"


def test_end_of_the_last_answer_is_above_a_card_that_came_while_the_chat_was_away(
    make_stage: MakeStage,
) -> None:
    stage = make_stage()
    stage.chat("One", "Yes.\n\n" * 60)
    stage.run(CommandId.NEW_CHAT)
    stage.chat("Two", "No.\n\n" * 60)
    stage.click_row("One")
    stage.pane.view.jump_to_latest()
    stage.click_row("Two")
    problem = ContextFullError("It has 33,012 tokens and takes 32,768.").problem
    stage.pane.app_notice.say(problem)
    stage.wait_until(lambda: stage.pane.cards.height() > 0)
    stage.click_row("One")
    bar = stage.pane.view.verticalScrollBar()
    assert stage.pane.cards.height() > 0
    assert bar.value() == bar.maximum() > 0


def test_tab_leads_from_the_buttons_of_a_line_to_the_next_card_and_to_the_composer(
    stage: Stage,
) -> None:
    line, notice = stage.pane.long_files, stage.pane.notice
    line.show_offer("Too long.", paged_file=None, model_name="Other-4B")
    notice.say(ContextFullError("It has 33,012 tokens and takes 32,768.").problem)
    stage.settle()
    notice.close_button.setFocus()
    part, _pages, model = line.buttons
    for expected in (part, model, stage.edit):
        QTest.keyClick(QApplication.focusWidget() or stage.window, Qt.Key.Key_Tab)
        assert expected.hasFocus(), QApplication.focusWidget()


def test_card_that_hides_gives_its_focus_to_the_composer_and_not_to_the_next_card(
    make_stage: MakeStage,
) -> None:
    stage = make_stage()
    stage.send("Hello")
    stage.send("And then?")
    line, queued = stage.pane.long_files, stage.pane.queued
    line.show_offer("Too long.", paged_file=None, model_name="")
    stage.settle()
    assert queued.isVisible()
    line.first.setFocus()
    line.show_offer("", paged_file=None, model_name="")
    assert stage.edit.hasFocus(), QApplication.focusWidget()


def test_card_with_a_button_is_whole_in_the_smallest_window(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.window.resize(640, 480)
    problem = silent(
        parse_hosts([{"ssh": "localhost"}, {"ssh": "studio", "ips": ["10.0.0.2"]}]).hosts[1], 10.0
    )
    stage.pane.notice.offer(problem, several.START_AGAIN, lambda: None)
    stage.wait_until(lambda: stage.pane.notice.height() > 0)
    stage.settle()

    cards = stage.pane.cards
    assert cards.bar.maximum() == 0, "its button is seen without scrolling"
    assert stage.pane.view.height() > stage.pane.height() // 8


def test_button_that_waits_for_a_choice_is_in_view_in_a_low_window(make_stage: MakeStage) -> None:
    other = card("Other-4B", num_parameters=4_000_000_000)
    stage = make_stage(settings=Settings(text_zoom=200), catalog=FakeCatalog(cards=(card(), other)))
    stage.chat("Hello there, model", "Hi. " * 100)
    stage.run(CommandId.NEW_CHAT)
    stage.rig.models.choose(other.path)
    stage.settle()
    stage.window.resize(640, 480)
    stage.click_row("Hello there, model")
    stage.settle()
    stage.type("And now?")
    QTest.keyClick(stage.edit, Qt.Key.Key_Return)
    stage.settle()
    cards, button = stage.pane.cards, stage.pane.model_question.first
    stage.wait_until(lambda: cards.bar.maximum() > 0)
    assert button.hasFocus()
    top = button.mapTo(cards.viewport(), button.rect().topLeft()).y()
    bottom = button.mapTo(cards.viewport(), button.rect().bottomLeft()).y()
    assert bottom < cards.viewport().height() or top == 0


def test_texts_of_a_card_that_is_too_high_scroll_above_its_button(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.window.resize(640, 480)
    notice, cards = stage.pane.notice, stage.pane.cards
    problem = ContextFullError("It has 33,012 tokens and takes 32,768. " * 4).problem
    notice.offer(problem, "Move Message to a New Chat", lambda: None)
    stage.wait_until(lambda: text_bar(notice).maximum() > 0)
    stage.settle()
    assert cards.bar.maximum() == text_bar(notice).value() == 0
    bottom = notice.button.mapTo(cards.viewport(), notice.button.rect().bottomLeft()).y()
    assert bottom <= cards.viewport().height()
    stage.window.resize(1100, 900)
    stage.wait_until(lambda: text_bar(notice).maximum() == 0)
    stage.settle()
    assert all(
        label.mapTo(notice, label.rect().bottomLeft()).y() < notice.button.y()
        for label in notice.findChildren(Sentences)
        if label.isVisible()
    )


def test_height_of_the_cards_settles_at_every_height_of_the_window(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    notice, cards = stage.pane.notice, stage.pane.cards
    problem = ContextFullError("It has 33,012 tokens and takes 32,768. " * 4).problem
    notice.offer(problem, "Move Message to a New Chat", lambda: None)
    changes = list[int]()
    cards.changed.connect(lambda: changes.append(cards.height()))
    for height in range(480, 560, 4):
        stage.window.resize(640, height)
        stage.settle()
        stage.settle()  # the texts have another width beside a scroll bar
        changes.clear()
        stage.settle()
        assert changes == [], f"it is laid out again and again at {height}"


def test_heading_of_an_empty_chat_gives_way_to_a_card_in_a_low_window(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(settings=Settings(text_zoom=140))
    stage.window.resize(640, 480)
    stage.settle()
    pane = stage.pane
    needed = stage.composer.heightForWidth(stage.composer.width())
    assert pane.empty.heading.height() > 0
    problem = ContextFullError("It has 33,012 tokens and takes 32,768.").problem
    pane.notice.say(problem)
    stage.wait_until(lambda: pane.empty.heading.height() == 0)
    assert stage.composer.height() >= needed
    assert pane.composer.geometry().bottom() <= pane.rect().bottom()
    assert pane.cards.height() > pane.height() // 4
    pane.notice.hide()
    stage.wait_until(lambda: pane.empty.heading.height() > 0)


def test_files_and_a_card_leave_the_composer_whole_in_the_smallest_window(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(settings=Settings(text_zoom=200))
    stage.chat("Hello", "Hi")
    stage.window.resize(640, 480)
    files = tuple(make_attachment(f"volume {n}.md", "md", "Words. " * 20) for n in (1, 2))
    stage.core.draft_files.set(stage.current, files)
    stage.pane.notice.say(ContextFullError("It has 33,012 tokens and takes 32,768.").problem)
    pane, composer = stage.pane, stage.composer
    stage.wait_until(lambda: composer.height() >= composer.heightForWidth(composer.width()))
    assert composer.geometry().bottom() <= pane.rect().bottom()
    assert composer.files.verticalScrollBar().maximum() > 0
    stage.window.resize(900, 900)
    stage.wait_until(lambda: composer.files.verticalScrollBar().maximum() == 0)
    stage.core.draft_files.set(stage.current, ())  # so that nothing is left to count
    stage.settle()
