"""Passages of an answer that stand in a document."""

from __future__ import annotations

import pytest

from app.conversation.quotes import DocumentIndex
from app.viewmodels.document_text import DocumentText
from app.viewmodels.long_lines import LONG_LINE, PIECE

SENTENCE = "The pump must be switched off before the lid of the tank is opened."
DOCUMENT = f"[Page 1]\nSafety rules.\n{SENTENCE} Wear gloves.\n[Page 2]\nNothing else matters here."


def quoted(document: str, answer: str) -> list[str]:
    return [document[one.start : one.end] for one in DocumentIndex(document).passages(answer)]


@pytest.mark.parametrize(
    "answer",
    [
        SENTENCE,
        f"As the manual says: “{SENTENCE}” So do that.",
        "**The pump** must be _switched off_ before the `lid` of the\n> tank is opened.",
        "1. the PUMP must be switched-off\n2. before the lid of the tank is opened",
        f"No. {SENTENCE} And once more: {SENTENCE}",
    ],
)
def test_sentence_of_a_document_is_found_once_in_any_form(answer: str) -> None:
    if "switched-off" in answer:  # a hyphen joins two words: the passage begins behind it
        assert quoted(DOCUMENT, answer) == ["before the lid of the tank is opened"]
    else:
        assert quoted(DOCUMENT, answer) == [SENTENCE.rstrip(".")]


def test_seven_words_are_no_passage() -> None:
    document = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    seven, eight = document.split()[1:8], document.split()[1:9]
    assert quoted(document, f"x {' '.join(seven)} x") == []
    assert quoted(document, f"x {' '.join(eight)} x") == [" ".join(eight)]


@pytest.mark.parametrize("start", range(12))
def test_eight_words_are_found_wherever_they_begin(start: int) -> None:
    words = [f"word{number}" for number in range(24)]
    part = " ".join(words[start : start + 8])
    assert quoted(" ".join(words), f"Well: {part}!") == [part]


def test_divided_words_ligatures_and_accents_are_equal() -> None:
    document = "The \ufb01rst exam-\n  ple of a nai\u0308ve cafe\u0301 owner stands on this page."
    answer = "the first example of a na\u00efve caf\u00e9 owner stands on this page"
    assert quoted(document, answer) == [document.rstrip(".")]


def test_chinese_passage_needs_sixteen_characters() -> None:
    document = "水泵必须先关闭然后才能打开水箱的盖子。"
    assert quoted(document, "水泵必须先关闭。然后") == []
    assert quoted(document, f"手册说“{document}”") == [document.rstrip("。")]


def test_longest_of_several_equal_beginnings_is_found() -> None:
    start = "in the event of a failure of the main"
    document = f"{start} pump call us. {start} valve close the red tap at once."
    answer = f"{start} valve close the red tap at once"
    assert quoted(document, answer) == [answer]


def test_passage_is_found_at_every_place_of_the_document() -> None:
    numbered = [f"{number}. {SENTENCE}" for number in range(1, 41)]
    document = "\n".join(["Safety rules.", *numbered, f"{SENTENCE} {SENTENCE}", "The end."])
    places = DocumentIndex(document).passages(f"Well: {SENTENCE}")
    starts = [at for at in range(len(document)) if document.startswith(SENTENCE, at)]
    assert [place.start for place in places] == starts
    assert len(starts) == 42


def test_passages_have_the_order_of_the_answer() -> None:
    first = "one sentence with enough words to be a passage here"
    second = "another sentence that also has more than eight words"
    assert quoted(f"{first}. {second}.", f"{second}, and {first}") == [second, first]


def test_place_in_the_shown_text_is_in_utf16_units_and_counts_added_breaks() -> None:
    text = f"a\r\n😀\r{'x' * (LONG_LINE + 1)}\u2029end"
    shown = DocumentText(text)
    place = text.index("end")
    units = shown.text.encode("utf-16-le")
    at = shown.position(place) * 2
    assert units[at : at + 6].decode("utf-16-le") == "end"
    assert max(map(len, shown.text.split("\n"))) == PIECE
    first = shown.position(text.index("x")) * 2
    assert units[first : first + 2].decode("utf-16-le") == "x"
