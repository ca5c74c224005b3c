from __future__ import annotations

from datetime import date, datetime

import pytest
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from pytestqt.qtbot import QtBot

from app.conversation.tree import ConversationSummary
from app.viewmodels.conversations import (
    ConversationRow,
    ConversationsModel,
    ListHeading,
    heading_of,
    make_rows,
)
from engine.types import ConversationId

TODAY = date(2025, 10, 9)
NOON = datetime(2025, 10, 9, 12).astimezone().timestamp()
DAY = 24 * 3600.0


def summary(name: str, updated_at: float = NOON) -> ConversationSummary:
    return ConversationSummary(
        conversation_id=ConversationId(name), title=f"About {name}", updated_at=updated_at
    )


@pytest.mark.parametrize(
    ("day", "heading"),
    [
        (date(2025, 10, 10), "TODAY"),  # a day in the future, after the clock was set back
        (TODAY, "TODAY"),
        (date(2025, 10, 8), "YESTERDAY"),
        (date(2025, 10, 7), "PREVIOUS 7 DAYS"),
        (date(2025, 10, 2), "PREVIOUS 7 DAYS"),
        (date(2025, 10, 1), "OCTOBER"),
        (date(2025, 9, 30), "SEPTEMBER"),
        (date(2024, 12, 31), "DECEMBER 2024"),
    ],
)
def test_heading_of_returns_the_section_of_a_day(day: date, heading: str) -> None:
    assert heading_of(day, TODAY) == heading


def test_make_rows_puts_conversations_under_headings() -> None:
    rows = make_rows(
        [summary("a"), summary("b", NOON - 60), summary("c", NOON - DAY)],
        lambda one: "58 tok/s" if one == "b" else "",
        frozenset({ConversationId("c")}),
        NOON,
    )
    assert rows == [
        ListHeading("TODAY"),
        ConversationRow(ConversationId("a"), "About a"),
        ConversationRow(ConversationId("b"), "About b", "58 tok/s"),
        ListHeading("YESTERDAY"),
        ConversationRow(ConversationId("c"), "About c", unseen=True),
    ]


def test_set_activity_changes_one_row_only(qtbot: QtBot) -> None:
    model = ConversationsModel()
    model.set_rows(make_rows([summary("a"), summary("b")], lambda _one: "", frozenset(), NOON))
    rows: list[int] = []

    def note(first: QModelIndex) -> None:
        rows.append(first.row())

    model.dataChanged.connect(note)
    model.set_activity(ConversationId("b"), "…")
    assert rows == [2]
    with qtbot.assertNotEmitted(model.dataChanged):
        model.set_activity(ConversationId("b"), "…")
    row = model.row_at(model.index(2))
    assert isinstance(row, ConversationRow)
    assert row.activity == "…"


def test_set_rows_with_the_same_conversations_does_not_reset(qtbot: QtBot) -> None:
    model = ConversationsModel()
    model.set_rows(make_rows([summary("a")], lambda _one: "", frozenset(), NOON))
    with qtbot.assertNotEmitted(model.modelReset):
        model.set_rows(make_rows([summary("a")], lambda _one: "…", frozenset(), NOON))
    row = model.row_at(model.index(1))
    assert isinstance(row, ConversationRow)
    assert row.activity == "…"


def test_set_rows_moves_remaining_rows_without_replacing_them() -> None:
    model = ConversationsModel()
    model.set_rows(make_rows([summary(one) for one in "abcd"], lambda _one: "", frozenset(), NOON))
    followed = QPersistentModelIndex(model.index(3))
    rows = make_rows([summary(one) for one in "ceab"], lambda _one: "…", frozenset(), NOON)
    model.set_rows(rows)
    assert [model.row_at(model.index(at)) for at in range(model.rowCount())] == rows
    assert followed.row() == 1


def test_headings_are_not_selectable_and_rows_have_spoken_text() -> None:
    model = ConversationsModel()
    model.set_rows(
        make_rows([summary("a")], lambda _one: "…", frozenset({ConversationId("a")}), NOON)
    )
    heading, row = model.index(0), model.index(1)
    assert heading.flags() == Qt.ItemFlag.NoItemFlags
    assert row.flags() & Qt.ItemFlag.ItemIsSelectable
    spoken = model.data(row, Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "About a, answering, new answer"
