from __future__ import annotations

import random
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QWheelEvent
from PySide6.QtTest import QTest

from app.viewmodels.transcript import ItemStatus, ScrollPosition, TranscriptItem, Version
from app.widgets.transcript.jump import JumpButton
from app.widgets.transcript.layout.scroll import Follow, ScrollFollower
from app.widgets.transcript.rows.row import RowAction
from app.widgets.transcript.view import TranscriptView
from engine.types import Channel, Role
from tests.fakes.long_answers import long_answer
from tests.fakes.transcript_samples import GUIDE, answer, conversation, question
from tests.fakes.transcript_stage import HEIGHT, LEFT, WIDTH, TranscriptStage, targets

STREAMING = TranscriptItem(key="s", role=Role.ASSISTANT, text="", status=ItemStatus.STREAMING)
PARAGRAPH = "A paragraph of some words that takes about one line of the column.\n\n"


def wheel(stage: TranscriptStage, notches: int, sideways: int = 0) -> None:
    """Turn the mouse wheel by a number of notches; upwards if the number is positive.

    sideways: the movement of a finger across a trackpad, in eighths of a degree.
    """
    point = QPointF(WIDTH / 2, HEIGHT / 2)
    view = stage.view
    event = QWheelEvent(
        point,
        view.mapToGlobal(point),
        QPoint(),
        QPoint(sideways, 120 * notches),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QGuiApplication.sendEvent(view.viewport(), event)


def scroll_by(view: TranscriptView, pixels: int) -> None:
    bar = view.verticalScrollBar()
    bar.setValue(bar.value() + pixels)


def write(stage: TranscriptStage, text: str) -> None:
    """Append text to the streaming answer and wait until it is shown."""
    shown = len(stage.view.text_of("s")) + len(text)
    stage.view.append_delta("s", Channel.ANSWER, text)
    stage.qtbot.waitUntil(lambda: len(stage.view.text_of("s")) == shown)


@pytest.fixture
def writing(transcript: TranscriptStage) -> TranscriptStage:
    """Return a conversation whose last answer is streaming."""
    items = conversation(3)
    transcript.show(items)
    transcript.view.set_items([*items, question(3), STREAMING])
    transcript.settle()
    return transcript


def test_conversation_opens_at_its_end(transcript: TranscriptStage) -> None:
    transcript.show(conversation(4))
    assert transcript.top == transcript.end > HEIGHT


def test_sent_message_scrolls_to_the_end(transcript: TranscriptStage) -> None:
    items = conversation(4)
    transcript.show(items)
    transcript.view.verticalScrollBar().setValue(100)
    transcript.view.set_items([*items, question(4)])
    assert transcript.top == transcript.end


def test_following_stops_when_the_answers_first_line_is_at_the_top(
    writing: TranscriptStage,
) -> None:
    write(writing, PARAGRAPH * 3)
    assert writing.top == writing.end
    write(writing, PARAGRAPH * 40)
    parked = writing.top
    assert parked < writing.end - HEIGHT / 2
    write(writing, PARAGRAPH * 5)
    assert writing.top == parked
    writing.view.finish(replace(STREAMING, text=PARAGRAPH * 48, status=ItemStatus.COMPLETE))
    writing.settle()
    assert writing.top == parked


def test_end_in_view_stays_in_view_when_the_view_gets_lower_and_higher(
    writing: TranscriptStage,
) -> None:
    view = writing.view
    write(writing, PARAGRAPH * 40)
    view.finish(replace(STREAMING, text=PARAGRAPH * 40, status=ItemStatus.COMPLETE))
    writing.settle()
    view.resize(WIDTH, HEIGHT * 4)
    for height in (HEIGHT, HEIGHT - 80, HEIGHT):
        view.resize(WIDTH, height)
        writing.settle()
        assert writing.top == writing.end, height
    scroll_by(view, -200)
    middle = writing.top
    view.resize(WIDTH, HEIGHT - 80)
    assert writing.top == middle < writing.end


def test_jump_to_latest_follows_the_end_of_the_growing_answer(writing: TranscriptStage) -> None:
    write(writing, PARAGRAPH * 43)
    writing.view.jump_to_latest()
    assert writing.top == writing.end
    write(writing, PARAGRAPH * 5)
    assert writing.top == writing.end


def test_scrolling_to_the_end_follows_the_growing_answer(writing: TranscriptStage) -> None:
    write(writing, PARAGRAPH * 43)
    for _ in range(40):
        wheel(writing, -3)
    write(writing, PARAGRAPH * 5)
    assert writing.top == writing.end


def test_sideways_movement_keeps_following(writing: TranscriptStage) -> None:
    write(writing, PARAGRAPH * 43)
    writing.view.jump_to_latest()
    wheel(writing, 1, sideways=480)
    write(writing, PARAGRAPH * 5)
    assert writing.top == writing.end


def test_returning_to_the_end_of_a_long_answer_follows_it(writing: TranscriptStage) -> None:
    view, others = writing.view, conversation(1)
    write(writing, PARAGRAPH * 43)
    view.jump_to_latest()
    left, items = view.scroll_position(), [*conversation(3), question(3)]
    writing.show(others)
    view.show_conversation([*items, replace(STREAMING, text=PARAGRAPH * 43)], left)
    assert writing.top == writing.end
    write(writing, "```python\nprint(1)\nprint(2)\n```\n\n" + PARAGRAPH)
    assert writing.top == writing.end


_BLOCKS = (
    "```python\n" + "print(1)\n" * 9 + "```\n\n",
    "| a | b |\n|---|---|\n" + "| c | d |\n" * 5 + "\n",
    "- one\n  - two\n- three\n\n",
    "$$\n\\frac{a}{\\frac{b}{c}}\n$$\n\n",
    "Title\n---\n\n",
    "> quoted\n\n",
    PARAGRAPH * 3,
)


@pytest.mark.parametrize("seed", range(2))
def test_answer_of_any_blocks_is_followed_to_its_end(
    transcript: TranscriptStage, seed: int
) -> None:
    dice = random.Random(seed)
    view = transcript.view
    view.resize(dice.choice((330, 640, 1000)), dice.choice((200, 400, 700)))
    transcript.show([question(0), STREAMING])
    view.jump_to_latest()
    text = "".join(dice.choice(_BLOCKS) for _ in range(5))
    while text:
        length = dice.choice((3, 8, 30, 90))
        view.append_delta("s", Channel.ANSWER, text[:length])
        text = text[length:]
        view.flush()
        assert transcript.top == transcript.end
    transcript.settle()
    assert transcript.top == transcript.end


@pytest.mark.parametrize("release", ["wheel", "key", "one pixel"])
def test_scrolling_upwards_stops_following(writing: TranscriptStage, release: str) -> None:
    write(writing, PARAGRAPH * 43)
    writing.view.jump_to_latest()
    if release == "wheel":
        wheel(writing, 1)
    elif release == "key":
        QTest.keyClick(writing.view, Qt.Key.Key_Up)
    else:
        scroll_by(writing.view, -1)
    stays = writing.top
    write(writing, PARAGRAPH * 5)
    assert writing.top == stays < writing.end


@pytest.mark.parametrize("key", [Qt.Key.Key_Home, Qt.Key.Key_Up, Qt.Key.Key_PageUp])
def test_upwards_key_at_the_top_stops_following(transcript: TranscriptStage, key: Qt.Key) -> None:
    transcript.show([STREAMING])
    QTest.keyClick(transcript.view, key)
    write(transcript, PARAGRAPH * 50)
    assert transcript.top == 0 < transcript.end


def test_jump_button_is_visible_only_away_from_the_end(writing: TranscriptStage) -> None:
    button = writing.view.findChild(JumpButton)
    assert isinstance(button, JumpButton)
    assert not button.isVisible()
    writing.view.verticalScrollBar().setValue(0)
    assert button.isVisible()
    QTest.mouseClick(button, LEFT)
    assert writing.top == writing.end
    assert not button.isVisible()


@pytest.mark.parametrize("width", [376, 720, 820, 1100])
def test_jump_button_is_whole_at_the_bottom_of_the_view(
    transcript: TranscriptStage, width: int
) -> None:
    view = transcript.view
    transcript.show([answer(0, PARAGRAPH * 50)])
    view.resize(width, 400)
    view.verticalScrollBar().setValue(0)
    transcript.settle()
    button = view.findChild(JumpButton)
    assert isinstance(button, JumpButton)
    assert button.isVisible()
    assert view.viewport().rect().contains(button.geometry())
    assert button.geometry().bottom() > view.viewport().height() - button.height()
    assert button.x() > view.viewport().width() * 3 // 4


@pytest.mark.parametrize(("height", "is_shown"), [(40, False), (80, True)])
def test_jump_button_in_a_low_view_is_hidden(
    transcript: TranscriptStage, height: int, is_shown: bool
) -> None:
    view = transcript.view
    transcript.show([answer(0, PARAGRAPH * 50)])
    view.resize(376, height)
    view.verticalScrollBar().setValue(0)
    transcript.settle()
    button = view.findChild(JumpButton)
    assert isinstance(button, JumpButton)
    assert button.isVisible() is is_shown


def test_text_beside_the_jump_button_is_clickable(transcript: TranscriptStage) -> None:
    view = transcript.view
    transcript.show([answer(0, "[link](https://example.org)\n\n" * 60)])
    view.resize(376, 400)
    view.verticalScrollBar().setValue(0)
    transcript.settle()
    button = view.findChild(JumpButton)
    assert isinstance(button, JumpButton)
    below = [point for point in targets(view, RowAction.OPEN_LINK) if point.y() > button.y()]
    QTest.mouseClick(view.viewport(), LEFT, pos=below[0])
    assert transcript.opened == ["https://example.org"]


def test_idle_measuring_does_not_move_visible_text(transcript: TranscriptStage) -> None:
    view = transcript.view
    # The text has no code blocks: their colours arrive later and would change the picture.
    view.show_conversation(conversation(60, PARAGRAPH * 9))
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() // 2)
    settled = view.statistics().num_settled
    before = transcript.picture()
    transcript.settle()
    assert view.statistics().num_settled == 120 > settled
    assert transcript.picture() == before


def test_scrolling_into_unmeasured_messages_moves_text_exactly(transcript: TranscriptStage) -> None:
    view = transcript.view
    view.show_conversation(conversation(60, f"{PARAGRAPH * 5}| a | b |\n|--|--|\n| c | d |\n\n# E"))
    step = 90
    for _ in range(40):  # upwards, into messages with estimated heights
        before = transcript.picture().copy(0, 0, 500, 400)
        scroll_by(view, -step)
        after = transcript.picture().copy(0, step, 500, 400)
        assert after == before


def test_scrolled_pixels_equal_a_full_repaint(
    transcript: TranscriptStage,
) -> None:
    view = transcript.view
    transcript.show([*conversation(3), STREAMING])
    view.jump_to_latest()
    for _ in range(30):
        view.append_delta("s", Channel.ANSWER, PARAGRAPH)
        view.flush()
        transcript.qtbot.wait(5)
        moved = on_screen(view)
        view.viewport().repaint()
        assert on_screen(view) == moved
    # The jump button, which is shown away from the end, covers some text.
    for pixels in (-40, -400, 25, 333, -7):
        scroll_by(view, pixels)
        transcript.qtbot.wait(5)
        moved = on_screen(view)
        view.viewport().repaint()
        assert on_screen(view) == moved


def test_resizing_keeps_the_first_visible_line(transcript: TranscriptStage) -> None:
    transcript.show(conversation(6))
    view = transcript.view
    view.verticalScrollBar().setValue(transcript.end // 2)
    first = view.scroll_position()
    assert first is not None
    for width in (500, 700, 400, WIDTH):
        view.resize(width, HEIGHT)
    transcript.settle()
    after = view.scroll_position()
    assert after is not None
    assert after.key == first.key
    assert abs(after.offset - first.offset) <= 2


def test_saved_scroll_position_is_restored(transcript: TranscriptStage) -> None:
    items = conversation(6)
    transcript.show(items)
    transcript.view.verticalScrollBar().setValue(777)
    position = transcript.view.scroll_position()
    assert position is not None
    transcript.show(conversation(2))
    transcript.view.show_conversation(items, position)
    transcript.settle()
    assert transcript.view.scroll_position() == position


def test_conversation_with_unknown_scroll_position_opens_at_its_end(
    transcript: TranscriptStage,
) -> None:
    transcript.view.show_conversation(conversation(3), ScrollPosition("gone", 5))
    assert transcript.top == transcript.end


def test_switching_versions_keeps_the_switch_in_place(transcript: TranscriptStage) -> None:
    first = [*conversation(3), question(3, version=Version(1, 2)), answer(3)]
    other = replace(question(9, version=Version(2, 2)), text="Longer\n" * 6)
    transcript.show(first)
    transcript.view.verticalScrollBar().setValue(transcript.end - 700)
    before = transcript.find(RowAction.NEXT_VERSION)
    transcript.view.set_items([*first[:-2], other, answer(9, GUIDE * 2)])
    transcript.settle()
    after = transcript.find(RowAction.PREVIOUS_VERSION)
    assert abs(after.y() - before.y()) <= 8


@pytest.mark.parametrize(
    ("key", "goes"),
    [
        (Qt.Key.Key_Home, "start"),
        (Qt.Key.Key_PageUp, "up"),
        (Qt.Key.Key_Up, "up"),
        (Qt.Key.Key_End, "end"),
        (Qt.Key.Key_PageDown, "down"),
        (Qt.Key.Key_Down, "down"),
        (Qt.Key.Key_Space, "down"),
    ],
)
def test_navigation_key_scrolls(transcript: TranscriptStage, key: Qt.Key, goes: str) -> None:
    transcript.show(conversation(6))
    start = transcript.end // 2
    transcript.view.verticalScrollBar().setValue(start)
    QTest.keyClick(transcript.view, key)
    assert {
        "start": transcript.top == 0,
        "end": transcript.top == transcript.end,
        "up": 0 < transcript.top < start,
        "down": start < transcript.top < transcript.end,
    }[goes]


def test_follower_follows_nothing_after_scrolling_up() -> None:
    follower = ScrollFollower()
    follower.scrolled(100, 90, 500)
    assert follower.mode is Follow.NOTHING
    assert follower.wanted(current=90, end=900, answer_top=None) is None
    follower.scrolled(90, 480, 500)
    assert follower.mode is Follow.END
    assert follower.wanted(current=480, end=900, answer_top=300) == 900


def test_follower_never_scrolls_back() -> None:
    assert ScrollFollower().wanted(current=400, end=900, answer_top=300) == 400


def test_home_goes_to_the_first_line_of_an_unmeasured_answer(transcript: TranscriptStage) -> None:
    transcript.view.show_conversation([question(0), answer(0, long_answer(7))])
    QTest.keyClick(transcript.view, Qt.Key.Key_Home)
    assert transcript.top == 0


def on_screen(view: TranscriptView) -> QImage:
    """Return the pixels of the view from the screen, without the first pixel row.

    A glyph that is cut by the edge of the view looks different in that row after scrolling than
    after a full repaint.
    """
    image = view.screen().grabWindow(view.winId()).toImage()
    return image.copy(0, 1, image.width(), image.height() - 1)
