from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtGui import QAccessible, QAccessibleInterface

from app.viewmodels.transcript import ItemStatus, Version
from app.widgets.transcript.accessibility.canvas import install_accessibility
from engine.problem import Problem
from tests.fakes.transcript_samples import answer, conversation, question, restored
from tests.fakes.transcript_stage import HEIGHT, TranscriptStage

NAME, VALUE = QAccessible.Text.Name, QAccessible.Text.Value
PROBLEM = Problem(title="It failed.", cause="No memory.", advice="Try again.")


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    install_accessibility()


def walk(node: QAccessibleInterface) -> Iterator[QAccessibleInterface]:
    yield node
    for index in range(node.childCount()):
        yield from walk(node.child(index))


def nodes(stage: TranscriptStage, role: QAccessible.Role) -> list[QAccessibleInterface]:
    root = QAccessible.queryAccessibleInterface(stage.view)
    return [node for node in walk(root) if node.role() is role]


def test_messages_are_named_items_of_an_accessible_list(transcript: TranscriptStage) -> None:
    failed = replace(answer(1, "so far"), status=ItemStatus.FAILED, problem=PROBLEM)
    transcript.show([question(0, version=Version(2, 3)), answer(0, "The **answer**"), failed])
    (messages,) = nodes(transcript, QAccessible.Role.List)
    items = nodes(transcript, QAccessible.Role.ListItem)
    assert messages.childCount() >= 3
    assert [item.text(NAME) for item in items] == [
        "You, message 1 of 3, 2 of 3 versions",
        "Assistant, message 2 of 3",
        "Assistant, message 3 of 3, failed",
    ]
    assert items[1].text(VALUE) == "The **answer**"
    assert items[2].text(VALUE) == "so far\nIt failed. No memory. Try again."
    assert items[0].parent().role() is QAccessible.Role.List


def test_accessible_description_has_the_state_line(transcript: TranscriptStage) -> None:
    phase = restored(9, "Message 3 is new.")
    transcript.show([question(0, "What?"), replace(answer(0, "That."), phase=phase)])
    items = nodes(transcript, QAccessible.Role.ListItem)
    described = [item.text(QAccessible.Text.Description) for item in items]
    assert described == [
        "What?",
        (
            "That.\nRestored 9 tokens · read 24 new tokens · first word after 90 ms\n"
            "Restored in 6 ms, read in 84 ms.\nMessage 3 is new."
        ),
    ]
    assert items[1].text(VALUE) == "That."


def test_accessible_items_have_the_screen_rectangles_of_messages(
    transcript: TranscriptStage,
) -> None:
    transcript.show(conversation(3))
    items = nodes(transcript, QAccessible.Role.ListItem)
    (messages,) = nodes(transcript, QAccessible.Role.List)
    last = items[-1].rect()
    assert last.bottom() <= transcript.view.mapToGlobal(transcript.view.rect().bottomLeft()).y()
    middle = transcript.view.mapToGlobal(transcript.view.rect().center())
    found = messages.childAt(middle.x(), middle.y())
    assert found.text(NAME) == "Assistant, message 6 of 6"
    assert last.height() > HEIGHT


def test_accessible_items_of_removed_messages_are_invalid(transcript: TranscriptStage) -> None:
    transcript.show(conversation(3))
    items = nodes(transcript, QAccessible.Role.ListItem)
    transcript.show(conversation(1))
    assert [item.isValid() for item in items] == [True, True, False, False, False, False]
    assert items[-1].text(NAME) == ""
    assert len(nodes(transcript, QAccessible.Role.ListItem)) == 2


def test_every_transcript_control_has_an_accessible_name(transcript: TranscriptStage) -> None:
    items = conversation(3)
    transcript.show(items)
    transcript.view.verticalScrollBar().setValue(0)
    transcript.view.update_item(replace(items[0], editing=True))
    named = {QAccessible.Role.Button, QAccessible.Role.EditableText, QAccessible.Role.ListItem}
    root = QAccessible.queryAccessibleInterface(transcript.view)
    controls = [node for node in walk(root) if node.role() in named]
    names = {node.text(NAME) for node in controls}
    assert "" not in names
    assert names >= {"Edit message", "Send as New Version", "Cancel", "Jump to latest"}


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("\n".join(["short"] * 24), "Show all 24 lines"),
        ("\n".join(["two lines on screen " * 4] * 12), "Show all 24 lines"),
        ("- item\n" * 30, "Show all 30 lines"),
        ("\n".join(["short"] * 5000), "Show all, about 5,000 lines"),
    ],
)
def test_folded_question_counts_the_lines_on_screen(
    transcript: TranscriptStage, text: str, label: str
) -> None:
    transcript.show([question(0, text)])
    root = QAccessible.queryAccessibleInterface(transcript.view)
    names = [node.text(NAME) for node in walk(root)]
    assert [name for name in names if name.startswith("Show all")] == [label]


def test_code_block_is_an_accessible_group_with_its_buttons(transcript: TranscriptStage) -> None:
    python, long_line = "\n".join("x = 1" for _ in range(12)), "word " * 100
    transcript.show(
        [
            answer(
                0,
                f"> ```python\n> {python.replace(chr(10), chr(10) + '> ')}\n> ```\n\n```\n{long_line}\n```",
            )
        ]
    )
    transcript.qtbot.waitUntil(
        lambda: (
            nodes(transcript, QAccessible.Role.Grouping)[0].text(NAME) == "Python code, 12 lines"
        )
    )
    first, second = nodes(transcript, QAccessible.Role.Grouping)
    assert second.text(NAME) == "Code, 1 line"
    buttons = [first.child(number) for number in range(first.childCount())]
    assert [button.text(NAME) for button in buttons] == ["Save…", "Copy"]
    assert [button.text(QAccessible.Text.Description) for button in buttons] == [
        "Save as a file",
        "Copy Code",
    ]
    assert [second.child(number).text(NAME) for number in range(3)] == ["Wrap", "Save…", "Copy"]
    assert all(first.rect().contains(button.rect()) for button in buttons)
    assert buttons[0].parent() is first
    assert first.parent().role() is QAccessible.Role.ListItem
    middle = buttons[1].rect().center()
    assert first.childAt(middle.x(), middle.y()) is buttons[1]

    buttons[1].actionInterface().doAction("Press")
    assert transcript.clipboard() == python


def test_accessible_links_have_names_and_open(transcript: TranscriptStage) -> None:
    transcript.show(
        [
            answer(
                0,
                "See [the\n*guide*](https://example.org/g).\n\n| [b](https://example.org/b) |\n|-|\n",
            )
        ]
    )
    first, second = nodes(transcript, QAccessible.Role.Link)
    assert [first.text(NAME), second.text(NAME)] == ["the guide", "b"]
    assert first.text(QAccessible.Text.Description) == "https://example.org/g"
    for link in (first, second):
        assert link.actionInterface().actionNames() == ["Press"]
        link.actionInterface().doAction("Press")
    assert transcript.opened == ["https://example.org/g", "https://example.org/b"]
    transcript.show([])
    assert not first.isValid()
    assert first.text(NAME) == ""
    assert first.actionInterface().actionNames() == []
