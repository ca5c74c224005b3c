from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from app.conversation.attachments import make_attachment
from app.viewmodels import comparing
from app.viewmodels.comparing import (
    MAX_STEPS,
    ComparedPart,
    ComparedText,
    ComparisonSteps,
    compare_branches,
    compare_texts,
)
from tests.fakes.conversations import ConversationWriter

LONG = 100_000
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


def test_lines_with_few_words_in_common_are_marked_as_a_whole() -> None:
    (part,) = _parts("It is a copy of all.", "Each token is added to the sum of one matrix.")

    assert _marked(part.first) == ["It is a copy of all."]
    assert _marked(part.second) == ["Each token is added to the sum of one matrix."]


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
    assert MAX_STEPS - steps.left < MAX_STEPS + 2 * LONG, "a run of equal words is one step"


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
