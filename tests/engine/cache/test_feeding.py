"""Records of the forward pass that fed each token, compared with a plain list of passes."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, strategies as st

from engine.cache.feeding import Feed, add_feeds, add_pass, clip, common_feeding_end

Pass = tuple[int, int]


@dataclass
class Fed:
    """Tokens fed in passes. A pass may be cut, so that only its first tokens are kept."""

    feeds: list[Feed] = field(default_factory=list[Feed])
    passes: list[Pass] = field(default_factory=list[Pass])  # for each token, the pass that fed it

    def feed(self, length: int, kept: int) -> None:
        start = len(self.passes)
        add_pass(self.feeds, start, start + length)
        self.passes += [(start, start + length)] * kept
        self.feeds[:] = clip(self.feeds, 0, len(self.passes))


@st.composite
def fed(draw: st.DrawFn) -> Fed:
    made = Fed()
    for length in draw(st.lists(st.sampled_from([1, 1, 2, 5]), max_size=8)):
        made.feed(length, draw(st.integers(1, length)))
    return made


def passes_of(feeds: list[Feed], start: int, end: int) -> list[Pass]:
    return [[f for f in feeds if f.start <= at][-1].pass_of(at) for at in range(start, end)]


@given(fed(), st.data())
def test_clip_keeps_the_pass_of_every_token(made: Fed, data: st.DataObject) -> None:
    num_tokens = len(made.passes)
    start = data.draw(st.integers(0, num_tokens))
    end = data.draw(st.integers(start, num_tokens))

    assert passes_of(list(clip(made.feeds, start, end)), start, end) == made.passes[start:end]


@given(fed(), st.data())
def test_clipped_halves_of_feeds_join_to_the_whole(made: Fed, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(made.passes)))
    joined = list(clip(made.feeds, 0, at))
    add_feeds(joined, clip(made.feeds, at, len(made.passes)))

    assert joined == made.feeds


@given(fed(), fed(), st.data())
def test_common_feeding_end_is_where_the_passes_differ(a: Fed, b: Fed, data: st.DataObject) -> None:
    end = min(len(a.passes), len(b.passes))
    start = data.draw(st.integers(0, end))
    expected = start
    while expected < end and a.passes[expected] == b.passes[expected]:
        expected += 1

    assert common_feeding_end(a.feeds, b.feeds, start, end) == expected


def test_reply_fed_token_by_token_is_one_feed() -> None:
    feeds: list[Feed] = []
    add_pass(feeds, 0, 10)
    for position in range(10, 500):
        add_pass(feeds, position, position + 1)

    assert feeds == [Feed(0, 10, one_by_one=False), Feed(10, 500, one_by_one=True)]
