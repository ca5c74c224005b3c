from __future__ import annotations

import pytest

from app.theme.tokens import DARK, DARK_SHARP, LIGHT, LIGHT_SHARP, Colors
from tests.fakes.contrast import MIN_CONTRAST, PAINTED_PAIRS, PaintKind, Pair, contrast

APPEARANCES = {"light": LIGHT, "dark": DARK, "sharp light": LIGHT_SHARP, "sharp dark": DARK_SHARP}


@pytest.mark.parametrize("colors", APPEARANCES.values(), ids=APPEARANCES)
@pytest.mark.parametrize("pair", PAINTED_PAIRS, ids=str)
def test_painted_pairs_have_minimum_contrast(pair: Pair, colors: Colors) -> None:
    assert contrast(pair, colors) >= MIN_CONTRAST[pair.kind]


def test_contrast_of_known_pairs_matches_the_wcag_ratio() -> None:
    assert contrast(Pair("on_accent", "send"), LIGHT) == pytest.approx(17.2, abs=0.1)
    assert contrast(Pair("canvas", "canvas"), LIGHT) == 1


@pytest.mark.parametrize(("plain", "sharp"), [(LIGHT, LIGHT_SHARP), (DARK, DARK_SHARP)])
def test_more_contrast_palette_lowers_the_contrast_of_no_pair(plain: Colors, sharp: Colors) -> None:
    for pair in PAINTED_PAIRS:
        assert contrast(pair, sharp) >= contrast(pair, plain)
    lines = Pair("hairline", "canvas"), Pair("strong_line", "canvas")
    assert all(contrast(line, sharp) >= MIN_CONTRAST[PaintKind.TEXT] for line in lines)
    around = Pair("selection_line", "selected")
    assert (contrast(around, plain), contrast(around, sharp) > 10) == (1, True)


@pytest.mark.parametrize("colors", APPEARANCES.values(), ids=APPEARANCES)
@pytest.mark.parametrize("ink", ["secondary", "must_read.ink"])
def test_filled_part_of_a_ring_or_bar_differs_from_its_track(ink: str, colors: Colors) -> None:
    assert contrast(Pair(ink, "track"), colors) >= MIN_CONTRAST[PaintKind.MARK]


@pytest.mark.parametrize("colors", [LIGHT_SHARP, DARK_SHARP])
def test_more_contrast_shows_the_edges_of_filled_areas_and_a_disabled_send_button(
    colors: Colors,
) -> None:
    marks = (
        *(Pair("fill_line", ground) for ground in ("canvas", "sidebar", "hover", "user_bubble")),
        Pair("send_glyph", "disabled"),
    )
    assert all(contrast(mark, colors) >= MIN_CONTRAST[PaintKind.MARK] for mark in marks)


def test_translucent_background_blends_with_the_colour_below() -> None:
    over_white = contrast(Pair("text", "inline_code", "canvas"), LIGHT)
    over_bubble = contrast(Pair("text", "inline_code", "user_bubble"), LIGHT)
    assert over_bubble < over_white < contrast(Pair("text", "canvas"), LIGHT)
