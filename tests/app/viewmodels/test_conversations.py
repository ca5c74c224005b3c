from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given, strategies as st
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from pytestqt.qtbot import QtBot

from app.conversation.tree import ConversationSummary
from app.settings import ChatOrder
from app.viewmodels import conversations
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
    texts = {one.conversation_id: activity(one.conversation_id) for one in summaries}
    active = {one: text for one, text in texts.items() if text}
    return RowMaker().rows(arranged, ListState(now=now, activity=active, unseen=unseen))


def test_set_activity_changes_one_row_only(qtbot: QtBot) -> None:
    model = ConversationsModel()
    model.set_rows(make_rows([summary("a"), summary("b")], lambda _one: "", frozenset(), NOON))
    rows: list[int] = []

    def note(first: QModelIndex) -> None:
        rows.append(first.row())

    model.dataChanged.connect(note)
    model.set_activity(ConversationId("b"), "58 tok/s")
    assert rows == [2]
    with qtbot.assertNotEmitted(model.dataChanged):
        model.set_activity(ConversationId("b"), "58 tok/s")
    row = model.row_at(model.index(2))
    assert isinstance(row, ConversationRow)
    assert row.activity == "58 tok/s"


def test_set_rows_with_the_same_conversations_does_not_reset(qtbot: QtBot) -> None:
    model = ConversationsModel()
    model.set_rows(make_rows([summary("a")], lambda _one: "", frozenset(), NOON))
    with qtbot.assertNotEmitted(model.modelReset):
        model.set_rows(make_rows([summary("a")], lambda _one: "58 tok/s", frozenset(), NOON))
    row = model.row_at(model.index(1))
    assert isinstance(row, ConversationRow)
    assert row.activity == "58 tok/s"


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
        lambda _one: "58 tok/s",
        frozenset(),
        NOON,
    )
    model.set_rows(rows)
    assert [model.row_at(model.index(at)) for at in range(model.rowCount())] == rows
    assert followed.row() == 1


def test_headings_are_not_selectable_and_rows_have_spoken_text() -> None:
    model = ConversationsModel()
    model.set_rows(
        make_rows([summary("a")], lambda _one: "58 tok/s", frozenset({ConversationId("a")}), NOON)
    )
    heading, row = model.index(0), model.index(1)
    assert heading.flags() == Qt.ItemFlag.NoItemFlags
    assert row.flags() & Qt.ItemFlag.ItemIsSelectable
    spoken = model.data(row, Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "About a, answering, new answer"
    assert model.data(row, Qt.ItemDataRole.ToolTipRole) == "About a\nNew answer"


def make_chats(names: list[str]) -> list[Row]:
    return [ConversationRow(ConversationId(name), name) for name in names]


@given(
    st.lists(st.sampled_from("abcdefgh"), unique=True),
    st.lists(st.sampled_from("abcdefgh"), unique=True),
    st.sets(st.sampled_from("abcdefgh")),
    st.integers(0, 3),
)
def test_set_rows_ends_with_the_given_rows_for_any_change(
    before: list[str], after: list[str], changed: set[str], limit: int
) -> None:
    """Rows come, go, move and change; a persistent index follows its row unless the list is reset."""
    old = {name: ConversationRow(ConversationId(name), name) for name in "abcdefgh"}
    new = {name: replace(row, unseen=True) if name in changed else row for name, row in old.items()}
    model = ConversationsModel()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(conversations, "MANY", limit or 200)
        model.set_rows([old[name] for name in before])
        followed = {name: QPersistentModelIndex(model.index(at)) for at, name in enumerate(before)}
        resets: list[bool] = []
        model.modelReset.connect(lambda: resets.append(True))
        model.set_rows([new[name] for name in after])
    shown = [model.row_at(model.index(at)) for at in range(model.rowCount())]
    assert shown == [new[name] for name in after]
    if not resets:
        found = {name: one.row() for name, one in followed.items() if one.isValid()}
        assert found == {name: at for at, name in enumerate(after) if name in before}


def test_set_rows_moves_a_row_down_in_one_step() -> None:
    rows = make_chats([str(number) for number in range(1000)])
    model, moves = ConversationsModel(), list[int]()
    model.set_rows(rows)
    model.rowsMoved.connect(lambda: moves.append(1))
    model.set_rows([*rows[1:900], rows[0], *rows[900:]])
    model.set_rows(rows)
    assert len(moves) == 2
