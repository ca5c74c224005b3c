"""The chunks that a prompt is cut into."""

from __future__ import annotations

from hypothesis import given, strategies as st

from engine.cache.points import PointKind, ResumePoint
from engine.runner.chunks import plan_chunks


def cuts(start: int, num_tokens: int, *points: int) -> list[int]:
    ends = [
        *(ResumePoint(p, PointKind.TURN) for p in points),
        ResumePoint(num_tokens, PointKind.PROMPT),
    ]
    chunks = plan_chunks(start, ends, token_ids=[0] * num_tokens, cell_len=512, stride_len=2048)
    return [chunk.end for chunk in chunks]


def test_short_prompt_is_one_chunk() -> None:
    assert cuts(0, 40) == [40]


def test_chunks_end_at_resume_points_and_cell_boundaries() -> None:
    assert cuts(0, 1200, 700) == [512, 700, 1024, 1184, 1200]


def test_prompt_restored_whole_has_no_chunks() -> None:
    assert cuts(40, 40) == []


def test_long_prompt_has_a_resume_point_after_every_stride() -> None:
    points = [ResumePoint(5000, PointKind.PROMPT)]
    chunks = plan_chunks(0, points, token_ids=[0] * 5000, cell_len=512, stride_len=2048)

    kept = {chunk.end: chunk.kind for chunk in chunks if chunk.kind}
    assert kept == {
        2048: PointKind.STRIDE,
        4096: PointKind.STRIDE,
        5000: PointKind.PROMPT,
    }


@given(st.integers(1, 4000), st.integers(0, 4000), st.lists(st.integers(1, 4000), max_size=5))
def test_restored_prompt_is_cut_at_the_same_tokens_as_a_cold_one(
    num_tokens: int, start: int, points: list[int]
) -> None:
    inside = [point for point in points if point < num_tokens]

    assert cuts(start, num_tokens, *inside) == [
        e for e in cuts(0, num_tokens, *inside) if e > start
    ]
