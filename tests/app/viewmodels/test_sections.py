from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

import pytest

from app.conversation.folder import Folder, FolderColor
from app.conversation.placement import FolderId, Placement
from app.conversation.tree import ConversationSummary
from app.settings import ChatOrder
from app.viewmodels.conversations import ConversationRow, FolderRow, ListHeading, Row, row_text
from app.viewmodels.sections import ListState, RowMaker, arrange, heading_of, sort_chats, title_key
from engine.types import ConversationId

TODAY = date(2025, 10, 9)
NOON = datetime(2025, 10, 9, 12).astimezone().timestamp()
DAY = 24 * 3600.0
WORK = Folder(folder_id=FolderId("w"), name="Work", color=FolderColor.BLUE)
HOME = Folder(folder_id=FolderId("h"), name="home")


def summary(name: str, updated_at: float = NOON, **place: object) -> ConversationSummary:
    return ConversationSummary(
        conversation_id=ConversationId(name),
        title=f"About {name}",
        updated_at=updated_at,
        placement=Placement(**place),  # pyright: ignore[reportArgumentType] (a test's shorthand)
    )


def rows_of(
    summaries: list[ConversationSummary],
    folders: tuple[Folder, ...] = (),
    order: ChatOrder = ChatOrder.RECENT,
    closed: frozenset[str] = frozenset(),
) -> list[Row]:
    arranged = arrange(summaries, folders, order)
    return RowMaker().rows(arranged, ListState(now=NOON, closed=closed))


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


def test_rows_put_conversations_under_headings() -> None:
    chats = [summary("a"), summary("b", NOON - 60), summary("c", NOON - DAY)]
    state = ListState(
        now=NOON,
        activity={ConversationId("b"): "58 tok/s"},
        unseen=frozenset({ConversationId("c")}),
    )
    rows = RowMaker().rows(arrange(chats, (), ChatOrder.RECENT), state)
    assert rows == [
        ListHeading("TODAY"),
        ConversationRow(ConversationId("a"), "About a"),
        ConversationRow(ConversationId("b"), "About b", "58 tok/s"),
        ListHeading("YESTERDAY"),
        ConversationRow(ConversationId("c"), "About c", unseen=True),
    ]


def test_rows_of_pins_and_folders_come_before_the_dates() -> None:
    chats = [
        summary("a"),
        summary("b", NOON - 3 * DAY, pinned=True),
        summary("c", NOON - 60, folder_id=WORK.folder_id),
        summary("d", NOON - DAY, folder_id=WORK.folder_id, pinned=True),
        summary("e", archived=True),
        summary("f", NOON - 90, folder_id=FolderId("gone")),
    ]
    assert rows_of(chats, (WORK, HOME)) == [
        ListHeading("PINNED"),
        ConversationRow(ConversationId("d"), "About d", pinned=True),
        ConversationRow(ConversationId("b"), "About b", pinned=True),
        ListHeading("FOLDERS"),
        FolderRow(HOME.folder_id, "home", FolderColor.GRAY, 0, is_open=True),
        FolderRow(WORK.folder_id, "Work", FolderColor.BLUE, 1, is_open=True),
        ConversationRow(ConversationId("c"), "About c", folder_id=WORK.folder_id),
        ListHeading("TODAY"),
        ConversationRow(ConversationId("a"), "About a"),
        ConversationRow(ConversationId("f"), "About f"),
    ]


def test_rows_of_a_closed_folder_are_left_out() -> None:
    chats = [summary("c", folder_id=WORK.folder_id)]
    rows = rows_of(chats, (WORK,), closed=frozenset({WORK.folder_id}))
    assert [row_text(row) for row in rows] == ["FOLDERS", "Work"]
    (folder,) = (row for row in rows if isinstance(row, FolderRow))
    assert folder.spoken == "Work, folder, 1 chat, closed"
    arranged = arrange(chats, (WORK,), ChatOrder.RECENT)
    assert arranged.in_order == chats, "the keys reach the chats of a closed folder"


def test_rows_by_title_are_in_one_section_and_in_the_order_of_numbers() -> None:
    chats = [
        replace(summary(str(at)), title=title)
        for at, title in enumerate(("Part 10", "part 2", "Étude", "Zebra"))
    ]
    rows = rows_of(chats, order=ChatOrder.TITLE)
    assert [row_text(row) for row in rows] == ["CHATS", "part 2", "Part 10", "Zebra", "Étude"]


def test_rows_by_creation_are_in_the_sections_of_their_first_day() -> None:
    chats = [
        replace(summary("old"), created_at=NOON - 2 * DAY),
        replace(summary("new", NOON - 3 * DAY), created_at=NOON),
    ]
    rows = rows_of(chats, order=ChatOrder.CREATED)
    assert [row_text(row) for row in rows] == ["TODAY", "About new", "PREVIOUS 7 DAYS", "About old"]


def test_title_key_accepts_a_number_of_any_length() -> None:
    assert title_key("9" * 5000) > title_key("8")
    assert [one.title for one in sort_chats([summary("a")], ChatOrder.TITLE)] == ["About a"]


def test_row_of_an_unchanged_conversation_is_the_same_object() -> None:
    maker, chats = RowMaker(), [summary("a"), summary("b")]
    state = ListState(now=NOON)
    before = maker.rows(arrange(chats, (), ChatOrder.RECENT), state)
    chats[1] = replace(chats[1], title="Other")
    after = maker.rows(arrange(chats, (), ChatOrder.RECENT), state)
    assert after[1] is before[1]
    assert after[2] is not before[2]


def test_archived_rows_have_one_heading() -> None:
    chats = [summary("a", archived=True), summary("b", NOON - 90 * DAY, archived=True)]
    rows = RowMaker().archived_rows(chats, ChatOrder.RECENT, ListState(now=NOON))
    assert [row_text(row) for row in rows] == ["ARCHIVED", "About a", "About b"]
