from __future__ import annotations

from sys import getsizeof

from engine.bounded_cache import ENTRY_BYTES, ID_BYTES, BoundedCache

NUM_IDS = 10
ENTRY = ENTRY_BYTES + getsizeof("a") + NUM_IDS * ID_BYTES


class Recorder:
    """A function that records its calls, with a cache for `room` results of one letter."""

    def __init__(self, room: int) -> None:
        self.calls: list[str] = []
        self.cached = BoundedCache(self._call, len, room * ENTRY)

    def _call(self, text: str, *, suffix: str = "") -> str:
        self.calls.append(text + suffix)
        return (text + suffix) * NUM_IDS


def test_result_is_kept_for_equal_arguments() -> None:
    recorder = Recorder(room=8)
    assert [recorder.cached("a"), recorder.cached("a")] == ["a" * NUM_IDS] * 2
    assert [recorder.cached("a", suffix=s)[:2] for s in "xyx"] == ["ax", "ay", "ax"]
    assert recorder.calls == ["a", "ax", "ay"]


def test_least_recently_used_results_are_dropped_beyond_the_bytes() -> None:
    recorder = Recorder(room=4)
    for text in "abcdae":
        recorder.cached(text)
    assert recorder.cached.held_bytes == 4 * ENTRY
    recorder.calls.clear()
    for text in "aecdb":
        recorder.cached(text)
    assert recorder.calls == ["b"]


def test_large_result_is_not_kept_and_displaces_nothing() -> None:
    recorder = Recorder(room=4)
    large = "large" * NUM_IDS
    for text in ("a", large, large, "a"):
        recorder.cached(text)
    assert recorder.calls == ["a", large, large]
    assert recorder.cached.held_bytes == ENTRY
