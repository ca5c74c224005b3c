"""Titles that the model writes: which texts are titles, and which chats need one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.conversation.deletion import delete_message
from app.conversation.title import needs_title, retitled, usable_title, with_title
from app.conversation.tree import set_title, show_version, shown_path
from tests.fakes.conversations import ConversationWriter


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Boats and Ships", "Boats and Ships"),
        ('"Boats and Ships."', "Boats and Ships"),
        ("**Title:** The small boat", "The small boat"),
        ("# Boats\n\nA story.", "Boats"),
        ("<think>\nhm\n</think>\n\nBoats", "Boats"),
        ("</think>Boats", "Boats"),
        ("Here is a title:\n\n“A (small) boat”", "A (small) boat"),
        ("Titel: „Kleine Boote“", "Kleine Boote"),
        ("木船について。", "木船について"),
        ("Why is the sky blue?", "Why is the sky blue?"),
        ("A boat (part 2)", "A boat (part 2)"),
        ("1. Boats", "Boats"),
        ('"Boats" and how they float', "Boats and how they float"),
        ("Small Boats: " + "A Guide to the Best of All Boats " * 2, "Small Boats"),
    ],
)
def test_title_is_cleaned(text: str, title: str) -> None:
    assert usable_title(text) == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("What is a boat? A Short Guide", "A Short Guide"),
        ("what is a boat - a short guide", "a short guide"),
        ("What is a boat?", ""),
        ("What is a boat? Answered", ""),
        ("What is a boathouse", "What is a boathouse"),
    ],
)
def test_title_that_begins_with_the_question_loses_it(text: str, title: str) -> None:
    assert usable_title(text, "What is a boat?") == title


def test_title_that_begins_with_a_question_of_one_word_stays() -> None:
    assert usable_title("Boats of the Nile", "Boats") == "Boats of the Nile"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "???",
        '""',
        "<think>a thought without an end",
        "Sure, here is what I think about it, and a little more than that too",
        "the the the the",
        "x" * 50,
        "<|im_start|>assistant",
        "Boats \x07",
        "half \ufffd",
        "Title:",
        "Sure: here is what I think about it, and a little more than that too",
    ],
)
def test_text_that_is_no_title_gives_none(text: str) -> None:
    assert usable_title(text) == ""


def test_huge_text_is_searched_at_its_beginning_only() -> None:
    assert usable_title("Boats\n" + "x" * 5_000_000) == "Boats"


def test_title_of_an_earlier_version_of_the_app_stays_with_its_message() -> None:
    """It was stored for the conversation only."""
    writer = ConversationWriter()
    first = writer.send("What is a boat?", "A small ship.").user_id
    writer.conv = replace(writer.conv, title="Boats")
    assert not needs_title(writer.conv)
    writer.edit(first, "What is a ship?", "A large boat.")
    assert (writer.conv.title, needs_title(writer.conv)) == ("Boats", True)
    writer.conv = with_title(writer.conv, shown_path(writer.conv)[0].node_id, "Ships")
    assert writer.conv.title == "Ships"
    assert retitled(show_version(writer.conv, first)).title == "Boats"


def test_automatic_title_follows_the_version_on_show() -> None:
    writer = ConversationWriter()
    first = writer.send("What is a boat?", "A small ship.").user_id
    turn = writer.edit(first, "What is a ship?", "A large boat.")
    assert writer.conv.title == "What is a ship?"
    assert retitled(show_version(writer.conv, first)).title == "What is a boat?"
    left = delete_message(writer.conv, turn.user_id, now=1.0)
    assert retitled(left).title == "What is a boat?"


def test_chat_needs_a_title_after_its_first_answers_until_it_has_one() -> None:
    writer = ConversationWriter()
    assert not needs_title(writer.conv)
    writer.send("What is a boat?", "A small ship.")
    assert needs_title(writer.conv)
    assert not needs_title(set_title(writer.conv, "Boats"))
    for _ in range(2):
        writer.send("And a ship?", "A large boat.")
        assert needs_title(writer.conv)
    writer.send("And a ship?", "A large boat.")
    assert not needs_title(writer.conv)
