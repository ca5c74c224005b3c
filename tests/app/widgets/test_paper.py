"""Tests of printed pages and PDF files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from pypdf import PdfReader
from PySide6.QtCore import QBuffer, QIODevice, Qt
from PySide6.QtGui import QImage, QPageRanges, QPainter, QPdfWriter
from pytestqt.qtbot import QtBot

from app.conversation.tree import Conversation, MessageNode, NodeId, add_nodes, new_conversation
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.viewmodels.transcript import TranscriptItem
from app.viewmodels.typeset import Formula
from app.widgets.paper.messages import paper_messages
from app.widgets.paper.printing import Printing
from app.widgets.paper.sheets import Sheets, page_layout
from app.widgets.paper.typesetter import Step, Typesetter
from app.widgets.transcript.messages.body import RowKit
from app.widgets.transcript.messages.layouts import make_layout
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.messages.places import MessagePaint
from app.widgets.transcript.rows.code import CodeRow
from app.widgets.transcript.rows.table import TableRow
from app.widgets.transcript.rows.text_row import TextRow
from app.widgets.transcript.view import TranscriptView
from engine.problem import Problem
from engine.types import ConversationId, Role

WIDTH, PAGE = 720, 1000
PROSE = (
    "Some **words** and `code` that go on for long enough to fill a line of the page twice. " * 3
)


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> Iterator[TranscriptView]:
    view = TranscriptView(theme)
    yield view
    view.deleteLater()


@pytest.fixture
def kit(view: TranscriptView) -> RowKit:
    return view.paper_kit(PAGE)


@pytest.fixture
def printing(view: TranscriptView) -> Printing:
    return Printing(view.paper_kit, view)


def conversation(text: str, turns: int = 1, *, question: str = "") -> Conversation:
    conv = new_conversation(ConversationId("c"), now=0.0)
    nodes: list[MessageNode] = []
    for number in range(2 * turns):
        nodes.append(
            MessageNode(
                node_id=NodeId(str(number)),
                parent=nodes[-1].node_id if nodes else None,
                role=Role.USER if number % 2 == 0 else Role.ASSISTANT,
                content=question or text if number % 2 == 0 else text,
                created_at=0.0,
            )
        )
    return add_nodes(conv, *nodes)


def laid_out(kit: RowKit, text: str, width: int = WIDTH) -> MessageLayout:
    layout = make_layout(kit, TranscriptItem(key="k", role=Role.ASSISTANT, text=text))
    layout.resize(width)
    while not layout.is_settled:
        layout.advance()
    return layout


def picture_of(layout: MessageLayout) -> QImage:
    image = QImage(WIDTH, layout.height, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    layout.paint(
        MessagePaint(
            painter=painter,
            top=0,
            bottom=layout.height,
            selected=None,
            hovered=None,
            confirmed=None,
            pointed_at=False,
            unfinished={},
        )
    )
    painter.end()
    return image


def is_blank(image: QImage, y: int) -> bool:
    """Return True if a row of pixels has no text. Bars, boxes and lines of tables are no text."""
    return len({image.pixel(x, y) for x in range(60, WIDTH - 60)}) <= 2


def num_pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type /Page\b", pdf))


def pdf_of(kit: RowKit, conv: Conversation, pages: str = "") -> bytes:
    """Write a PDF at once, with the step for the colours and formulas left out."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setPageLayout(page_layout())
    writer.setPageRanges(QPageRanges.fromString(pages))
    typesetter = Typesetter(Sheets(writer, conv.title), kit, conv.title)
    for _ in typesetter.steps(paper_messages(conv)):
        pass
    typesetter.close()
    del writer, typesetter
    return bytes(buffer.data().data())


def test_long_chat_becomes_a_file_of_several_pages(
    qtbot: QtBot, printing: Printing, tmp_path: Path
) -> None:
    path = tmp_path / "chat.pdf"
    saved: list[str] = []
    printing.saved.connect(saved.append)
    with qtbot.waitSignal(printing.ended):
        printing.save_pdf(path, conversation(f"{PROSE}\n\n```\na = 1\n```\n" * 4, turns=6))
    assert saved == ["chat.pdf"]
    metadata = PdfReader(path).metadata
    assert metadata is not None
    assert (metadata.title, metadata.creator) == ("New chat", "Rejoinder")
    assert not metadata.author
    assert num_pages(path.read_bytes()) > 3
    assert printing.is_idle


def test_file_that_cannot_be_written_is_reported(printing: Printing, tmp_path: Path) -> None:
    problems: list[Problem] = []
    printing.failed.connect(problems.append)
    printing.save_pdf(tmp_path / "none" / "chat.pdf", conversation("Words"))
    assert "chat.pdf can’t be written" in problems[0].cause
    assert printing.is_idle


def test_cancelled_file_leaves_the_old_one_and_the_next_is_written(
    qtbot: QtBot, printing: Printing, tmp_path: Path
) -> None:
    old, path = tmp_path / "old.pdf", tmp_path / "next.pdf"
    old.write_bytes(b"old")
    printing.save_pdf(old, conversation(PROSE, turns=50))
    printing.save_pdf(path, conversation("Words"))
    printing.cancel()
    qtbot.waitUntil(lambda: printing.is_idle)
    assert old.read_bytes() == b"old"
    assert num_pages(path.read_bytes()) == 1
    assert sorted(tmp_path.iterdir()) == [path, old]


def test_picture_in_a_message_is_not_loaded(kit: RowKit, tmp_path: Path) -> None:
    picture = tmp_path / "secret.png"
    picture.write_bytes(bytes.fromhex("89504e470d0a1a0a"))
    assert b"/Subtype /Image" not in pdf_of(kit, conversation(f"![a picture](file://{picture})"))


def test_only_the_chosen_pages_are_printed(kit: RowKit) -> None:
    conv = conversation(f"{PROSE}\n\n" * 8, turns=3)
    assert num_pages(pdf_of(kit, conv)) > 2
    assert num_pages(pdf_of(kit, conv, "2")) == 1


def test_link_in_a_message_is_a_link_in_the_file(kit: RowKit) -> None:
    assert b"(https://example.org/a)" in pdf_of(kit, conversation("[a](https://example.org/a)"))


def test_formula_is_typeset_before_its_page_is_painted(kit: RowKit) -> None:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    typesetter = Typesetter(Sheets(writer, ""), kit, "")
    steps = typesetter.steps(paper_messages(conversation("Let $x_1$ be")))
    assert Step.WAITING in steps
    typesetter.close()


@pytest.mark.parametrize(
    "text",
    [
        f"{PROSE}\n\n" * 12,
        "```python\n" + "x = 1\n" * 100 + "```",
        "| a | b |\n|---|---|\n" + f"| {PROSE} | b |\n" * 30,
        "| a | b |\n|---|---|\n| " + PROSE * 20 + " | b |\n",
        f"- {PROSE}\n\n  > {PROSE}\n\n" * 12,
    ],
    ids=["prose", "code", "table", "cell", "list"],
)
def test_page_ends_between_two_lines(kit: RowKit, text: str) -> None:
    layout = laid_out(kit, text)
    picture = picture_of(layout)
    bottoms = range(250, layout.actions_top, 97)
    assert len(bottoms) > 5
    for bottom in bottoms:
        cut = layout.page_break(0, bottom)
        assert cut is not None
        assert bottom - 200 < cut.end <= cut.start <= bottom + kit.look.px(Space.XL)
        assert all(is_blank(picture, y) for y in range(cut.end - 1, cut.start + 1))


def test_header_of_a_table_is_repeated_on_each_page(kit: RowKit) -> None:
    rows = "".join(f"| cell{number} | {'many words ' * 12} |\n" for number in range(90))
    tables = f"| Head | Second |\n|---|---|\n{rows}\nEnd\n\n| Other | b |\n|---|---|\n| c | d |"
    pages = PdfReader(BytesIO(pdf_of(kit, conversation(tables, question="Why?")))).pages
    texts = [page.extract_text() for page in pages]
    with_table = [text for text in texts if "cell" in text]
    assert len(with_table) > 5
    assert all("Head" in text and "Second" in text for text in with_table)
    # Neither the other table nor a table that begins on the page repeats a header.
    assert sum(text.count("Other") for text in texts) == 1
    assert all(text.count("Head") == 1 for text in with_table)


def test_header_higher_than_a_part_of_the_page_is_not_repeated(kit: RowKit) -> None:
    head = "Head " + "long words " * 400
    rows = "".join(f"| {'many words ' * 40} | b |\n" for _ in range(30))
    pdf = pdf_of(kit, conversation(f"| {head} | b |\n|---|---|\n{rows}", question="Why?"))
    found = [page.extract_text() for page in PdfReader(BytesIO(pdf)).pages]
    assert len(found) > 4
    assert sum(text.count("Head") for text in found) == 1


def test_page_does_not_end_below_a_heading(kit: RowKit) -> None:
    layout = laid_out(kit, "Words\n\n## Heading\n\nMore words")
    heading = layout.rows[1]
    assert isinstance(heading, TextRow)
    cut = layout.page_break(0, layout.actions_top - Space.XS)
    assert cut is not None
    assert cut.end == layout.rows[0].height


def test_paragraph_keeps_two_lines_on_each_page(kit: RowKit) -> None:
    layout = laid_out(kit, PROSE * 3)
    line = kit.look.body.line
    assert layout.page_break(0, line) is None
    cut = layout.page_break(0, layout.rows[0].height - 1)
    assert cut is not None
    assert cut.end == layout.rows[0].height - 2 * line


def test_long_line_of_code_wraps_without_buttons(kit: RowKit) -> None:
    (code, _) = laid_out(kit, f"```\n{'word ' * 100}\n```").rows
    assert isinstance(code, CodeRow)
    assert code.num_lines > 5
    assert code.hits() == []


def test_wide_table_fits_the_page(kit: RowKit) -> None:
    cells = "|".join(f" column {number} " for number in range(20))
    (table, _) = laid_out(kit, f"|{cells}|\n|{'---|' * 20}\n|{cells}|").rows
    assert isinstance(table, TableRow)
    assert table.columns.total > WIDTH
    assert table.natural_width <= WIDTH


def test_formula_too_wide_to_read_is_shown_as_code(qtbot: QtBot, kit: RowKit) -> None:
    latex = "+".join(f"x_{{{number}}}" for number in range(60))
    layout = laid_out(kit, f"$${latex}$$")
    formula = Formula(latex, display=True)
    qtbot.waitUntil(lambda: kit.look.formulas.is_made(formula))
    layout.remeasure()
    while not layout.is_settled:
        layout.advance()
    assert layout.rows[0].height > 3 * kit.look.body.line


def test_each_line_is_in_the_file_once(kit: RowKit) -> None:
    lines = [f"word{number}" for number in range(90)]
    text = "{}\n\n```text\n{}\n```\n\n|a|\n|-|\n{}".format(
        " some_more_text ".join(lines),
        "\n".join(f"code{line}" for line in lines),
        "\n".join(f"|cell{line}|" for line in lines),
    )
    pages = PdfReader(BytesIO(pdf_of(kit, conversation(text)))).pages
    found = Counter(re.findall(r"\b\w*word\d+\b", "\n".join(page.extract_text() for page in pages)))
    # The question and the answer have the same text. A question with code is Markdown as well.
    assert len(pages) > 3
    assert len(found) == 270
    assert set(found.values()) == {2}


def test_lines_of_a_poem_are_lines_on_paper(kit: RowKit) -> None:
    conv = conversation("Roses,\nViolets,\n\n> Sugar,\n> You.", question="Why?")
    (page,) = PdfReader(BytesIO(pdf_of(kit, conv))).pages
    lines = [line.strip() for line in page.extract_text().splitlines()]
    assert {"Roses,", "Violets,", "Sugar,", "You."} <= {*lines}
