"""Ids of pictures: identity, spans, positions, and cuts."""

from __future__ import annotations

from engine.picture_ids import (
    MAX_POSITIONS,
    PICTURE_ID,
    before_picture,
    has_pictures,
    picture_ids,
    picture_spans,
    position_shift,
    without_pictures,
)

CAT = picture_ids("cat", 60, 11)
DOG = picture_ids("dog", 4)


def test_ids_are_the_same_for_the_same_picture_only() -> None:
    assert picture_ids("cat", 60, 11) == CAT
    assert not set(picture_ids("cat.", 60, 11)) & set(CAT)
    assert len(set(CAT)) == 60
    assert all(PICTURE_ID <= token_id < (1 << 32) - 1 for token_id in CAT)
    assert all(picture_ids(f"{number}", 1, MAX_POSITIONS)[0] % 2 == 0 for number in range(64))


def test_first_ids_of_different_pictures_differ() -> None:
    # Cached state is shared up to the first id that differs.
    assert len({picture_ids(f"picture {number}", 4, 11)[0] for number in range(4000)}) == 4000


def test_spans_of_pictures_with_and_without_text_between() -> None:
    token_ids = (5, *CAT, *CAT, 6, *DOG)

    spans = list(picture_spans(token_ids))

    assert [(span.start, span.end) for span in spans] == [(1, 61), (61, 121), (122, 126)]
    assert [span.num_positions for span in spans] == [11, 11, 4]
    assert position_shift(token_ids) == 2 * (11 - 60)
    assert position_shift(picture_ids("x", 1, 1)) == 0
    assert position_shift((5, 6)) == position_shift(()) == position_shift(DOG) == 0


def test_a_cut_never_divides_a_picture() -> None:
    token_ids = (5, *CAT, *DOG, 6)

    assert [before_picture(token_ids, end) for end in (0, 1, 2, 60, 61, 62, 64, 65, 66)] == [
        0, 1, 1, 1, 61, 61, 61, 65, 66,
    ]  # fmt: skip


def test_ids_of_the_vocabulary_are_no_pictures() -> None:
    assert not has_pictures(())
    assert not has_pictures((0, PICTURE_ID - 1))
    assert has_pictures((0, *DOG))
    assert without_pictures((3, *DOG, 4)) == [3, 4]
