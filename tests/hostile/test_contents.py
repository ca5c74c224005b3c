"""Hostile contents in the transcript: bounded work in each step, and a window that settles."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.settings import Appearance
from app.theme.palette import Theme
from app.viewmodels.blocks import TableBlock
from app.viewmodels.markdown import make_parser
from app.viewmodels.markdown_stream import MAX_MARKS, MarkdownStream, num_marks
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.viewmodels.typeset import Formula, Undrawn, typeset
from app.widgets.transcript.messages.body import FEED, FEED_MARKS
from app.widgets.transcript.view import TranscriptView
from engine.types import Channel, Role
from tests.fakes.tables import rest_in_soak
from tests.hostile.contents import CONTENTS

_SETTLED_MS = 60_000
# One kind for each kind of row, and for each rule of Markdown.
_SHOWN = (
    *("setext headings", "short lines", "hard breaks", "long line", "references", "bullets"),
    *("fence of short lines", "fence of one line", "indented bullets", "quotes and bullets"),
    *("lazy quotes", "long item of paragraphs", "nested emphasis", "backticks", "nested brackets"),
    *("nested images", "links", "open tags", "html block", "unknown entities", "long table"),
    *("wide table", "square table", "table of formulas", "open dollars", "formulas"),
    *("deep matrices", "left chains", "one word", "one wide word", "combining", "bidi controls"),
    *("zero width joiners", "emoji", "controls", "tabs", "code python", "code autohotkey"),
)
_STEP_MARKS = FEED_MARKS  # one step of the tests is not larger than a slice of the transcript


@pytest.fixture
def view(qapp: QApplication, qtbot: QtBot) -> Iterator[TranscriptView]:
    theme = Theme(qapp, Appearance.LIGHT)
    view = TranscriptView(theme)
    qtbot.addWidget(view)
    view.resize(500, 300)
    view.show()
    yield view
    theme.deleteLater()


def answer(text: str, status: ItemStatus = ItemStatus.COMPLETE) -> TranscriptItem:
    return TranscriptItem(key="a", role=Role.ASSISTANT, text=text, status=status)


def settle(view: TranscriptView, qtbot: QtBot, kind: str) -> None:
    """Wait until the view has no work left."""
    qtbot.waitUntil(lambda: view.statistics().is_idle, timeout=_SETTLED_MS)
    assert view.statistics().num_settled == 1, kind


def steps(text: str) -> Iterator[str]:
    """Divide a text into the slices that the transcript parses."""
    at = 0
    while at < len(text):
        part = text[at : at + FEED]
        part = part[:_STEP_MARKS] if num_marks(part) > FEED_MARKS else part
        yield part
        at += len(part)


def test_there_are_80_hostile_contents_of_the_stated_size() -> None:
    assert len(CONTENTS) >= 80
    for kind, make in CONTENTS.items():
        assert 1 / 5 < len(make(10_000)) / 10_000 < 5, kind


def parse_in_steps(text: str) -> None:
    """Parse a text slice by slice. Fail if one step, or all together, parse too many marks."""
    stream = MarkdownStream(make_parser())
    most = before = 0
    for step in steps(text):
        stream.append_text(step)
        assert stream.tail is not None
        most, before = max(most, stream.num_parsed_marks - before), stream.num_parsed_marks
    stream.start_finish()
    most, before = max(most, stream.num_parsed_marks - before), stream.num_parsed_marks
    while not stream.is_done:
        stream.finish_more()
        most, before = max(most, stream.num_parsed_marks - before), stream.num_parsed_marks
    # A step parses the tail once to freeze blocks and once to show the rest.
    assert most <= 2 * (MAX_MARKS + FEED)
    # In all, a mark is parsed a few times only.
    assert stream.num_parsed_marks <= 12 * (num_marks(text) + FEED)


@pytest.mark.parametrize("kind", rest_in_soak(CONTENTS, *_SHOWN))
def test_each_step_of_parsing_is_bounded(kind: str) -> None:
    parse_in_steps(CONTENTS[kind](6_000))


@pytest.mark.soak
def test_each_step_of_parsing_longer_texts_is_bounded() -> None:
    for make in CONTENTS.values():
        parse_in_steps(make(12_000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "size"),
    rest_in_soak([(_SHOWN, 1_000), (tuple(CONTENTS), 3_000)], (_SHOWN, 1_000)),
    ids=("few", "all"),
)
def test_window_settles_on_hostile_contents(
    view: TranscriptView, qtbot: QtBot, kinds: tuple[str, ...], size: int
) -> None:
    for kind in kinds:
        text = CONTENTS[kind](size)
        view.show_conversation([answer(text)])
        view.grab()
        settle(view, qtbot, kind)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "size"),
    rest_in_soak([(_SHOWN, 600), (tuple(CONTENTS), 1_500)], (_SHOWN, 600)),
    ids=("few", "all"),
)
def test_window_settles_on_streamed_contents(
    view: TranscriptView, qtbot: QtBot, kinds: tuple[str, ...], size: int
) -> None:
    for kind in kinds:
        text = CONTENTS[kind](size)
        view.show_conversation([answer("", ItemStatus.STREAMING)])
        for at in range(0, len(text), 150):
            view.append_delta("a", Channel.ANSWER, text[at : at + 150])
            view.flush()
        view.grab()
        view.finish(answer(text))
        settle(view, qtbot, kind)


def test_long_table_continues_with_the_same_columns() -> None:
    text = "|a|b|\n|-|:-:|\n" + "|1|2|\n" * 2_000
    stream = MarkdownStream(make_parser())
    for step in steps(text):
        stream.append_text(step)
    stream.finish()
    tables = [block for block in stream.blocks if isinstance(block, TableBlock)]
    assert len(tables) == len(stream.blocks) > 1
    assert [table.continues for table in tables] == [False] + [True] * (len(tables) - 1)
    assert {table.aligns for table in tables} == {tables[0].aligns}
    assert sum(len(table.rows) for table in tables) == 2_001


def test_text_after_a_long_table_is_no_row() -> None:
    stream = MarkdownStream(make_parser())
    stream.append_text("|a|b|\n|-|-|\n" + "|1|2|\n" * 700 + "\n")
    stream.append_text("text\n")
    stream.finish()
    assert not isinstance(stream.blocks[-1], TableBlock)


@pytest.mark.parametrize(
    "text",
    ["|a" * 40 + "|\n" + "|-" * 40 + "|\n", "|a" * 20 + "|\n" + "|-" * 20 + "|\n" + "|\n" * 500],
)
def test_oversized_table_is_text(text: str) -> None:
    stream = MarkdownStream(make_parser())
    stream.append_text(text)
    stream.finish()
    assert not any(isinstance(block, TableBlock) for block in stream.blocks)


@pytest.mark.parametrize(
    "latex",
    [
        r"\begin{matrix}" * 7 + r"\end{matrix}" * 7,
        r"\left(" * 7 + "x" + r"\right)" * 7,
        "x^{" * 9 + "}" * 9,
    ],
)
def test_deeply_nested_formula_is_not_typeset(latex: str) -> None:
    assert isinstance(typeset(Formula(latex, display=True)), Undrawn)
