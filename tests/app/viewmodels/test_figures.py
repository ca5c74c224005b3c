from __future__ import annotations

import pytest

from app.viewmodels import figures


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [(0.0, "1 ms"), (6.2, "6 ms"), (999.4, "999 ms"), (999.6, "1.0 s"), (9_949, "9.9 s"),
     (9_950, "10 s"), (89_000, "89 s"), (212_100, "3 min 32 s")],
)  # fmt: skip
def test_milliseconds_chooses_the_unit_by_size(value_ms: float, text: str) -> None:
    assert figures.milliseconds(value_ms) == text


@pytest.mark.parametrize(
    ("value_s", "text"),
    [(1.0, "1 s"), (89.4, "89 s"), (240.0, "4 min"), (89.4 * 60, "89 min"), (5_400.0, "1 h 30 min"),
     (7_200.0, "2 h"), (35_990.0, "10 h"), (3_700_000.0, "1,028 h")],
)  # fmt: skip
def test_long_time_chooses_the_unit_by_size(value_s: float, text: str) -> None:
    assert figures.long_time(value_s) == text


@pytest.mark.parametrize(
    ("number", "rounded"), [(0, 0), (9, 9), (95, 95), (242, 240), (12_601, 13_000), (999, 1_000)]
)
def test_about_returns_two_significant_digits(number: int, rounded: int) -> None:
    assert figures.about(number) == rounded


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (10, "1 KB"),
        (98_400_000, "98 MB"),
        (999_600_000, "1 GB"),
        (5_200_000_000, "5.2 GB"),
        (16_000_000_000, "16 GB"),
        (128_400_000_000, "128 GB"),
    ],
)
def test_file_size_uses_decimal_units(num_bytes: int, text: str) -> None:
    assert figures.file_size(num_bytes) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(579_000, "579K"), (999_600, "1M"), (135_000_000, "135M"), (999_600_000, "1B"), (1_700_000_000, "1.7B"), (9_000_000_000, "9B"),
     (35_200_000_000, "35B")],
)  # fmt: skip
def test_parameters_are_rounded_to_their_unit(number: int, text: str) -> None:
    assert figures.parameters(number) == text


def test_share_uses_the_unit_of_the_total() -> None:
    assert figures.share(310_000_000, 5_200_000_000) == "0.3 of 5.2 GB"
    assert figures.share(58_000_000_000, 135_000_000_000) == "58 of 135 GB"
    assert figures.share(31_000_000, 98_000_000) == "31 of 98 MB"


def test_percent_is_rounded_down() -> None:
    assert figures.percent(0.999) == "99%"
    assert figures.percent(1.0) == "100%"
