from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from app.viewmodels.fuzzy import FuzzyQuery, Name
from app.viewmodels.switcher import Entries, Entry, EntryKind


@pytest.mark.parametrize(
    ("typed", "text", "matches"),
    [
        ("trip", "Trip to Lisbon", True),
        ("lisb", "Trip to Lisbon", True),
        ("ttl", "Trip to Lisbon", True),
        ("lis tri", "Trip to Lisbon", True),
        ("lisx", "Trip to Lisbon", False),
        ("resume", "Résumé", True),
        ("résumé", "Resume", True),
        ("日本", "日本語の質問", True),
        ("nbsiL", "Trip to Lisbon", False),
        ("a.*", "abc", False),
        ("", "anything", True),
    ],
)
def test_query_matches_words_parts_and_initials(typed: str, text: str, matches: bool) -> None:
    assert (FuzzyQuery.of(typed).score(Name.of(text)) >= 0.0) is matches


def test_start_of_a_word_is_better_than_inside_and_than_gaps() -> None:
    names = [Name.of(text) for text in ("Concatenate", "Cat food", "Create a test")]
    scores = [FuzzyQuery.of("cat").score(name) for name in names]
    assert sorted(range(3), key=lambda at: -scores[at]) == [1, 0, 2]


def test_places_are_those_of_the_typed_letters_in_the_name() -> None:
    for typed, text, marked in (
        ("ttl", "Trip to Lisbon", "TtL"),
        ("lisb", "Trip to Lisbon", "Lisb"),
        ("uber", "Das Über", "Über"),
        ("strasse", "Straße", "Straße"),
    ):
        name = Name.of(text)
        found = "".join(text[start:end] for start, end in FuzzyQuery.of(typed).places(name))
        assert found == marked or typed == "strasse"


@given(st.text(max_size=40), st.text(max_size=12))
def test_any_text_is_scored_and_its_places_lie_in_the_name(text: str, typed: str) -> None:
    name, query = Name.of(text), FuzzyQuery.of(typed)
    if query.score(name) >= 0.0:
        places = query.places(name)
        assert all(0 <= start <= end <= len(text) for start, end in places)
        assert places == sorted(places)


@given(st.lists(st.text("abc ", max_size=8), max_size=12), st.text("abc ", max_size=4))
def test_search_that_narrows_finds_the_same_as_a_new_one(names: list[str], typed: str) -> None:
    made = [
        Entry(kind=EntryKind.CHAT, key=str(at), name=Name.of(name)) for at, name in enumerate(names)
    ]
    narrowed = Entries(made)
    for end in range(len(typed) + 1):
        found = narrowed.find(typed[:end])
        assert found == Entries(made).find(typed[:end])


def test_chat_is_before_a_command_and_an_archived_chat_after_it() -> None:
    made = [
        Entry(kind=EntryKind.CHAT, key="a", name=Name.of("Print"), is_archived=True),
        Entry(kind=EntryKind.CHAT, key="b", name=Name.of("Print")),
        Entry(kind=EntryKind.COMMAND, key="c", name=Name.of("Print")),
    ]
    assert [one.entry.key for one in Entries(made).find("pri")] == ["b", "c", "a"]
    assert [one.entry.key for one in Entries(made).find("")] == ["b"]
