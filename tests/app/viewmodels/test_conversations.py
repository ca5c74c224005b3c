from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from pytestqt.qtbot import QtBot

from app.conversation.tree import ConversationSummary
from app.settings import ChatOrder
from app.viewmodels.conversations import (
    ConversationRow,
    ConversationsModel,
    Row,
)
from app.viewmodels.sections import ListState, RowMaker, arrange
from engine.types import ConversationId

NOON = datetime(2025, 10, 9, 12).astimezone().timestamp()


def summary(name: str, updated_at: float = NOON) -> ConversationSummary:
    return ConversationSummary(
        conversation_id=ConversationId(name), title=f"About {name}", updated_at=updated_at
    )


def make_rows(
    summaries: list[ConversationSummary],
    activity: Callable[[ConversationId], str],
    unseen: frozenset[ConversationId],
    now: float,
) -> list[Row]:
    arranged = arrange(summaries, (), ChatOrder.RECENT)
    return RowMaker().rows(arranged, ListState(now=now, activity=activity, unseen=unseen))


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
    model.set_rows(
        make_rows(
            [summary(one, NOON - at) for at, one in enumerate("abcd")],
            lambda _one: "",
            frozenset(),
            NOON,
        )
    )
    followed = QPersistentModelIndex(model.index(3))
    rows = make_rows(
        [summary(one, NOON - at) for at, one in enumerate("ceab")],
        lambda _one: "…",
        frozenset(),
        NOON,
    )
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
