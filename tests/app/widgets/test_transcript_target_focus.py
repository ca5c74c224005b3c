"""Keyboard focus on the links and buttons of the transcript."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.theme.palette import Theme
from app.theme.tokens import LIGHT
from app.widgets.transcript.accessibility.canvas import install_accessibility
from tests.fakes.pixels import pixels_of
from tests.fakes.transcript_samples import answer, conversation, question
from tests.fakes.transcript_stage import LEFT, TranscriptStage

Key = Qt.Key
CODE = "```python\nprint('hi')\n```"
LINKS = "[one](https://example.org/1) and [t**w**o](https://example.org/2)"


class Window:
    """A window with the transcript between two buttons, to test Tab into and out of it."""

    def __init__(self, stage: TranscriptStage) -> None:
        self.stage = stage
        self.whole = QWidget()
        stage.qtbot.addWidget(self.whole)
        layout = QVBoxLayout(self.whole)
        self.before, self.after = QPushButton("before"), QPushButton("after")
        for part in (self.before, stage.view, self.after):
            layout.addWidget(part)
        self.whole.resize(800, 700)
        self.whole.show()
        self.whole.activateWindow()
        self.before.setFocus()

    def press(self, *keys: Key) -> None:
        for key in keys:
            focused = self.whole.focusWidget()
            assert focused is not None
            QTest.keyClick(focused, key)

    def where(self) -> str:
        """Return the name of the focused widget, link or button."""
        if self.before.hasFocus() or self.after.hasFocus():
            return "before" if self.before.hasFocus() else "after"
        canvas = QAccessible.queryAccessibleInterface(self.stage.view.viewport())
        found = [
            node.text(QAccessible.Text.Name)
            for message in range(canvas.childCount())
            for part in children(canvas.child(message))
            for node in (part, *children(part))
            if node.state().focused
        ]
        assert len(found) < 2
        return found[0] if found else "transcript"

    def walk(self, key: Key = Key.Key_Tab) -> list[str]:
        """Press a key until the focus leaves the transcript. Return the focused parts' names."""
        found: list[str] = []
        while not found or found[-1] not in ("before", "after"):
            self.press(key)
            found.append(self.where())
        return found


def children(node: QAccessibleInterface) -> list[QAccessibleInterface]:
    return [node.child(number) for number in range(node.childCount())]


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    install_accessibility()


@pytest.fixture
def window(transcript: TranscriptStage) -> Window:
    return Window(transcript)


def test_tab_visits_links_and_buttons_in_reading_order(window: Window) -> None:
    window.stage.show([question(0), answer(0, f"{LINKS}\n\n{CODE}\n\n- [three](x)")])
    forth = window.walk()
    assert forth == [
        "transcript",
        *("Edit", "Copy", "Fork into a New Chat"),
        *("one", "two", "Save…", "Copy", "three"),
        *("Copy", "Regenerate", "Edit Answer", "Fork into a New Chat"),
        "after",
    ]
    window.press(Key.Key_Backtab)
    assert window.walk(Key.Key_Backtab) == ["before"]
    window.press(*[Key.Key_Tab] * 5)
    assert window.where() == "one"
    fork = "Fork into a New Chat"
    assert window.walk(Key.Key_Backtab) == [fork, "Copy", "Edit", "transcript", "before"]


def test_return_clicks_the_focused_link_or_button(window: Window) -> None:
    stage = window.stage
    stage.show([answer(0, f"{LINKS}\n\n{CODE}")])
    window.press(Key.Key_Tab, Key.Key_Tab, Key.Key_Tab, Key.Key_Return)
    assert stage.opened == ["https://example.org/2"]
    window.press(Key.Key_Tab, Key.Key_Return)
    assert stage.asked == ["save code.py \"print('hi')\""]
    window.press(Key.Key_Tab, Key.Key_Enter)
    assert stage.clipboard() == "print('hi')"
    assert window.where() == "Copy"
    window.press(Key.Key_Tab, Key.Key_Tab, Key.Key_Return)
    assert stage.asked[1:] == ["regenerate a0"]


def test_focus_stays_on_thinking_pill_when_it_folds(window: Window) -> None:
    thought = replace(answer(0, LINKS), reasoning=f"Let me see [inside](x).\n\n{CODE}")
    lines = "\n".join(str(number) for number in range(50))
    window.stage.show([question(0, lines), thought])
    window.stage.view.jump_to_latest()
    window.press(Key.Key_Tab, Key.Key_Tab)
    while window.where() != "Thought":
        window.press(Key.Key_Tab)
    window.press(Key.Key_Return, Key.Key_Tab)
    assert window.where() == "inside"
    window.press(Key.Key_Backtab, Key.Key_Return, Key.Key_Tab)
    assert window.where() == "one"


def test_tab_after_escape_leaves_the_transcript(window: Window) -> None:
    window.stage.show([answer(0, LINKS)])
    window.press(Key.Key_Tab, Key.Key_Tab, Key.Key_Escape)
    assert window.where() == "transcript"
    window.press(Key.Key_Tab)
    assert window.where() == "after"


@pytest.mark.slow
def test_tab_skips_targets_outside_the_view(window: Window) -> None:
    window.stage.show(conversation(30, CODE))
    num_stops = len(window.walk())
    window.stage.settle()
    assert 5 < num_stops < 40
    window.press(Key.Key_Backtab, Key.Key_Home, Key.Key_Tab)
    assert window.where() == "Edit"


def test_focused_button_has_a_ring_in_the_accent_colour(window: Window, theme: Theme) -> None:
    stage = window.stage

    def ring() -> tuple[int, int]:
        """Return the number of accent pixels inside and outside the code block's header."""
        picture = stage.view.viewport().grab().toImage()
        per_row = (pixels_of(picture) == QColor(theme.colors.accent).rgb()).sum(axis=1)
        inside = int(per_row[21:58].sum())
        return inside, int(per_row.sum()) - inside

    stage.show([answer(0, CODE)])
    assert theme.colors.accent == LIGHT.accent
    assert ring() == (0, 0)
    window.press(Key.Key_Tab, Key.Key_Tab)
    on, off = ring()
    assert on > 2 * 60
    assert off == 0
    QTest.mouseClick(stage.view.viewport(), LEFT, pos=QPoint(5, 400))
    assert ring() == (0, 0)


def test_wide_table_scrolls_sideways_to_the_focused_link(window: Window) -> None:
    cells = [f"[a link that is long {number}](x{number})" for number in range(12)]
    window.stage.show([answer(0, f"| {' | '.join(cells)} |\n|{'-|' * 12}\n")])
    column = window.stage.view.width() - 48
    canvas = QAccessible.queryAccessibleInterface(window.stage.view.viewport())
    window.press(Key.Key_Tab)
    for link in children(canvas.child(0))[:12]:
        window.press(Key.Key_Tab)
        assert link.state().focused
        left = window.stage.view.mapFromGlobal(link.rect().topLeft()).x()
        assert 0 <= left < left + link.rect().width() <= column + 48


def test_view_follows_tab_to_a_button_that_is_half_out_of_sight(window: Window) -> None:
    stage = window.stage
    stage.show([question(0, "H"), answer(0, "H\n\n" * 60), question(1, "H")])
    bar = stage.view.verticalScrollBar()
    bar.setValue(0)
    window.press(Key.Key_Tab, Key.Key_Tab)
    assert window.where() == "Edit"
    canvas = QAccessible.queryAccessibleInterface(stage.view.viewport())
    (edit,) = (part for part in children(canvas.child(0)) if part.state().focused)
    edge = stage.view.viewport().mapToGlobal(QPoint(0, 0)).y()
    cut = edit.rect().top() - edge + edit.rect().height() // 2 - 2
    window.before.setFocus()
    bar.setValue(cut)
    window.press(Key.Key_Tab, Key.Key_Tab)
    assert window.where() == "Edit"
    assert edit.rect().top() >= edge
