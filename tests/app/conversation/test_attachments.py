from __future__ import annotations

import pytest

from app.conversation.actions import TurnIds, plan_edit, plan_send
from app.conversation.attachments import (
    chosen_pages,
    first_part,
    join_prompts,
    make_attachment,
    marked_page,
    parse_pages,
    prompt_text,
)
from app.conversation.prompts import messages_ahead
from app.conversation.tree import NodeId, new_conversation, set_draft_attachments
from engine.types import ConversationId

IDS = TurnIds(user=NodeId("u"), reply=NodeId("r"))
BOOK = make_attachment(
    "book.pdf",
    "pdf",
    "\n\n".join(marked_page(n, f"Words of page {n}.") for n in range(1, 11)),
    num_pages=10,
)


def test_prompt_text_has_files_first_and_their_ends() -> None:
    one, two = make_attachment("a.txt", "text", "One"), make_attachment("b.md", "text", "Two")
    text = prompt_text([one, two], "Why?")
    first = "File: a.txt\n```\nOne\n```\n\n"
    assert text.content == f"{first}File: b.md\n```\nTwo\n```\n\nWhy?"
    assert text.part_ends == (len(first), len(text.content) - 4)


@pytest.mark.parametrize("inside", ["```", "a\n````\nb", "``````"])
def test_text_of_a_file_cannot_end_its_fence(inside: str) -> None:
    text = prompt_text([make_attachment("a", "text", inside)], "").content
    fence = text.split("\n")[1]
    assert fence.strip("`") == ""
    assert fence not in inside


def test_name_of_a_file_stays_on_one_line() -> None:
    assert make_attachment("a\n```\nb.txt", "text", "x").name == "a ``` b.txt"


def test_joined_messages_keep_the_ends_of_their_files() -> None:
    one = prompt_text([make_attachment("a", "text", "One")], "First")
    joined = join_prompts(one, one)
    parts = [joined.content[:end] for end in joined.part_ends]
    assert [part.endswith("```\n\n") for part in parts] == [True, True]


def test_message_without_text_adds_no_blank_line() -> None:
    empty, text = prompt_text([], ""), prompt_text([], "First")
    assert join_prompts(empty, text).content == join_prompts(text, empty).content == "First"
    assert join_prompts(empty, empty).content == ""


def test_send_takes_the_files_of_the_draft_and_an_edit_keeps_them() -> None:
    conv = set_draft_attachments(new_conversation(ConversationId("A"), now=0.0), (BOOK,))
    turn = plan_send(conv, "What?", IDS, now=1.0)
    assert turn.conversation.draft_attachments == ()
    assert turn.conversation.nodes[IDS.user].attachments == (BOOK,)
    ids = TurnIds(user=NodeId("u2"), reply=NodeId("r2"))

    edited = plan_edit(turn.conversation, IDS.user, "Why?", ids, now=2.0)

    end = edited.messages[-1].part_ends[0]
    assert edited.messages[-1].content[:end] == turn.messages[-1].content[:end]
    assert edited.messages[-1].content[end:] == "Why?"


def test_file_without_a_question_can_be_sent_and_names_the_chat() -> None:
    conv = set_draft_attachments(new_conversation(ConversationId("A"), now=0.0), (BOOK,))
    assert conv.title == "book.pdf"
    turn = plan_send(conv, " ", IDS, now=1.0)
    assert turn.conversation.title == "book.pdf"
    assert messages_ahead(conv)[-1].content == turn.messages[-1].content.rstrip(" ")


def test_chosen_pages_keep_their_marks_and_name_the_part() -> None:
    part = chosen_pages(BOOK, parse_pages("2-3, 7"))
    assert part is not None
    assert part.part == "Pages 2\u20133, 7"
    assert part == chosen_pages(BOOK, parse_pages("7, 3-2"))
    assert part.text.startswith("[Page 2]\nWords of page 2.\n\n[Page 3]")
    assert part.digest != BOOK.digest
    assert chosen_pages(BOOK, parse_pages("99-999999")) is None


def test_first_part_ends_with_a_whole_page_or_paragraph() -> None:
    part = first_part(BOOK, 100)
    assert part.part == "Pages 1\u20133"
    assert part.text.endswith("Words of page 3.")
    plain = make_attachment("a.txt", "text", "First paragraph.\n\nSecond paragraph is longer.")
    cut = first_part(plain, 30)
    assert cut.text == "First paragraph."
    assert cut.part == "First 36%"


def test_part_that_is_cut_again_names_its_share_of_the_whole_file() -> None:
    whole = make_attachment("a.txt", "text", "word " * 200)
    fifth = first_part(first_part(whole, 500), 200)
    assert len(fifth.text) == 199
    assert fifth.part == "First 20%"
    assert first_part(whole.with_text(whole.text, "First ²%"), 500).part == "First 50%"
    small = first_part(make_attachment("b.txt", "text", "word " * 50_000), 1_000)
    assert small.part == "First 0.4%"
    assert first_part(small, 500).part == "First 0.2%"
    assert first_part(small, 10).part == "First 0.1%"


@pytest.mark.parametrize("typed", ["", "x", "1-", "1..3", "9" * 9])
def test_pages_that_are_not_understood_are_none(typed: str) -> None:
    assert parse_pages(typed) == ()
