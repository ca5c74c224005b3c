from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from app.conversation.attachments import make_attachment
from app.viewmodels import comparing
from app.viewmodels.comparing import (
    ComparedPart,
    ComparedText,
    ComparisonSteps,
    compare_branches,
    compare_texts,
)
from tests.fakes.conversations import ConversationWriter

LONG = 100_000
WORDS = st.lists(st.sampled_from("abc"), max_size=12)
TEXTS = st.text(alphabet="ab. \n\u4e00", max_size=40)


def _parts(first: str, second: str) -> tuple[ComparedPart, ...]:
    return compare_texts(first, second, ComparisonSteps())


def _marked(text: ComparedText) -> list[str]:
    return [text.text[begin:end] for begin, end in text.marks]


def _unmarked(text: ComparedText) -> str:
    """Return the text without its marks and without white space."""
    left = list(text.text)
    for begin, end in text.marks:
        left[begin:end] = " " * (end - begin)
    return "".join("".join(left).split())


def test_words_that_differ_are_marked() -> None:
    (part,) = _parts("The quick brown fox jumps.", "The slow brown fox sits down.")

    assert _marked(part.first) == ["quick", "jumps"]
    assert _marked(part.second) == ["slow", "sits down"]


def test_lines_that_are_the_same_stand_beside_each_other() -> None:
    parts = _parts("one\nsame\nsame too\n", "same\nsame too\nnew\n")

    assert [(part.first.text, part.second.text) for part in parts] == [
        ("one\n", ""),
        ("same\nsame too\n", "same\nsame too\n"),
        ("", "new\n"),
    ]
    assert [part.is_same for part in parts] == [False, True, False]


def test_words_in_common_are_not_marked_however_few_they_are() -> None:
    (part,) = _parts(
        "The sea is a vast and mysterious realm that exists in a world of chaos.",
        "The sea is a vast, mysterious, and awe-inspiring being that surrounds our fabric.",
    )

    assert _marked(part.first) == ["and", "realm", "exists in a world of chaos"]
    assert _marked(part.second) == [",", ", and awe-inspiring being", "surrounds our fabric"]


def test_long_texts_with_many_differences_keep_their_common_words_unmarked() -> None:
    first = " ".join(f"one{number} and" for number in range(1_500))
    (part,) = _parts(first, first.replace("one", "two"))

    assert len(part.first.marks) == 1_500
    assert _unmarked(part.second) == "and" * 1_500


@given(WORDS, WORDS)
def test_marked_words_are_as_few_as_possible(first: list[str], second: list[str]) -> None:
    parts = _parts(" ".join(first), " ".join(second))

    lengths = [0] * (len(second) + 1)  # of the longest common words so far, by a table
    for word in first:
        before = lengths
        lengths = [0]
        for at, other in enumerate(second):
            longest = before[at] + 1 if word == other else max(before[at + 1], lengths[-1])
            lengths.append(longest)
    assert sum(len(_unmarked(part.second)) for part in parts) == lengths[-1]


def test_characters_of_a_script_without_blanks_are_marked_alone() -> None:
    (part,) = _parts("\u4eca\u65e5\u662f\u597d\u5929", "\u4eca\u65e5\u662f\u574f\u5929")
    assert (_marked(part.first), _marked(part.second)) == (["\u597d"], ["\u574f"])


@given(TEXTS, TEXTS)
def test_parts_have_the_whole_texts_and_the_same_words_outside_of_marks(
    first: str, second: str
) -> None:
    parts = _parts(first, second)

    assert "".join(part.first.text for part in parts) == first
    assert "".join(part.second.text for part in parts) == second
    for part in parts:
        assert _unmarked(part.first) == _unmarked(part.second)
        assert not part.is_same or not part.first.marks


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("".join(f"{number} " for number in range(LONG // 6)), "a b c d " * (LONG // 8)),
        ("a " * (LONG // 2), "a b " * (LONG // 4)),
        ("a\nb\n" * (LONG // 4), "b\na\n" * (LONG // 4)),
        ("." * LONG, ".!" * (LONG // 2)),
        ("\n" * LONG, "a\n" * (LONG // 2)),
    ],
    ids=["other", "repeated", "lines", "marks", "breaks"],
)
def test_long_texts_take_a_limited_number_of_steps(first: str, second: str) -> None:
    steps = ComparisonSteps()

    parts = compare_texts(first, second, steps)

    assert "".join(part.second.text for part in parts) == second
    assert steps.left >= 0


def test_all_words_are_marked_where_the_steps_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "MAX_STEPS", 3)

    (part,) = _parts("a b c d e f", "b c d e f a")

    assert _marked(part.first) == ["a b c d e f"]
    assert _marked(part.second) == ["b c d e f a"]


def test_names_of_attached_files_are_compared() -> None:
    writer = ConversationWriter()
    writer.send("one", "1")
    message = next(iter(writer.conv.nodes.values()))
    file = make_attachment("a.txt", "text", "words")

    (compared,) = compare_branches([message], [replace(message, attachments=(file,))])

    assert compared.num_differences == 1


def test_branches_of_different_length_end_with_missing_messages() -> None:
    writer = ConversationWriter()
    turn = writer.send("one", "1")
    first = tuple(writer.conv.nodes.values())
    writer.send("two", "2")
    second = tuple(writer.conv.nodes.values())

    messages = compare_branches(first, second)

    assert turn.reply_id == first[-1].node_id
    assert [message.num_differences for message in messages] == [0, 0, 1, 1]
    assert messages[2].first is None
    assert messages[2].parts[0].second == ComparedText("two")
