"""The expected time of reading: it slows down with length, and with other programs."""

from __future__ import annotations

import pytest

from engine.reading_pace import ReadingPace


def read(pace: ReadingPace, start: int, end: int, *, at: float, slow: float = 1.0) -> float:
    """Measure a reading at 1 ms a token, and 1 ms more after 10,000 tokens. Return the time."""
    seconds = slow * (end - start) * (1 + (start + end) / 2 / 10_000) / 1000
    pace.note(start, end, seconds, at)
    return at + seconds


def test_time_is_unknown_before_the_first_measurement() -> None:
    assert ReadingPace().time(0, 100) is None


def test_time_of_a_longer_prompt_grows_with_its_length() -> None:
    pace, now = ReadingPace(), 0.0
    for start in range(0, 8_000, 1_000):
        now = read(pace, start, start + 1_000, at=now)
    expected = pace.time(8_000, 32_000)
    assert expected is not None
    assert expected.seconds == pytest.approx(72.0), "proportionally to the tokens it were 34 s"
    assert not expected.is_open
    farther = pace.time(0, 33_000)
    assert farther is not None
    assert farther.is_open


def test_time_before_all_measured_places_is_unknown_if_it_is_far_before_them() -> None:
    pace = ReadingPace()
    read(pace, 5_600, 5_900, at=0.0)
    assert pace.time(0, 100) is None
    assert pace.time(4_000, 5_000) is not None


def test_newest_measurements_decide_and_different_ones_make_a_range() -> None:
    pace, now = ReadingPace(), 0.0
    for _ in range(20):
        now = read(pace, 0, 500, at=now)
    now = read(pace, 0, 500, at=now, slow=4.0)
    first = pace.time(0, 500)
    assert first is not None
    assert first.most > 1.5 * first.least
    for _ in range(7):
        now = read(pace, 0, 500, at=now, slow=4.0)
    later = pace.time(0, 500)
    assert later is not None
    assert later.seconds == pytest.approx(2.05, rel=0.15)
    assert later.most < 1.5 * later.least


def test_time_left_approaches_the_truth_while_a_machine_becomes_busy() -> None:
    """The rate of the whole reading would give half of the truth after three quarters of it."""
    pace, now = ReadingPace(), 0.0
    errors: list[float] = []
    cells = range(0, 20_000, 500)
    durations = [0.5 * (1 + at / 10_000) * (3 if at > 5_000 else 1) for at in cells]
    for index, (at, seconds) in enumerate(zip(cells, durations, strict=True)):
        now += seconds
        pace.note(at, at + 500, seconds, now)
        left, expected = sum(durations[index + 1 :]), pace.time(at + 500, 20_000)
        assert expected is not None
        errors.append(abs(expected.seconds - left) / max(left, 1.0))
    assert max(errors[20:]) < 0.25, "half of the tokens are read"
    assert max(errors[30:]) < 0.1


def test_pass_over_one_token_says_little_about_the_time_of_many() -> None:
    pace = ReadingPace()
    pace.note(0, 1, 0.5, 0.5)
    assert pace.time(1, 1949) is None
    pace.note(24, 49, 2.0, 1.0)
    pace.note(0, 1, 0.5, 10.0)
    left = pace.time(1, 1949)
    assert left is not None
    assert left.seconds < 300  # by the one token alone: 974 s
