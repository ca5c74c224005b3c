"""The stream of a reply: its text in two channels, answer and reasoning, and its token ids."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from engine.chat.reply import ReplyStream, TextPiece
from engine.types import Channel
from tests.fakes.texts import VOCAB_SIZE, chat_tokenizer

TOKENIZER = chat_tokenizer()


def stream(
    token_ids: tuple[int, ...], *, in_reasoning: bool
) -> tuple[ReplyStream, list[TextPiece]]:
    reply = ReplyStream(TOKENIZER, in_reasoning=in_reasoning)
    pieces = [piece for token_id in token_ids for piece in reply.add(token_id)]
    return reply, pieces + reply.flush()


def joined(pieces: list[TextPiece], channel: Channel) -> str:
    return "".join(piece.text for piece in pieces if piece.channel is channel)


def test_reply_that_starts_in_reasoning_is_split_at_the_end_mark() -> None:
    token_ids = TOKENIZER.encode_template("Let me see.\n</think>\n\nYes, of course.")
    reply, pieces = stream(token_ids, in_reasoning=True)

    assert (reply.reasoning, reply.content) == ("Let me see.", "Yes, of course.")
    assert joined(pieces, Channel.ANSWER) == reply.content
    assert joined(pieces, Channel.REASONING).rstrip("\n") == reply.reasoning
    tokens = reply.tokens()
    assert tokens.token_ids == token_ids
    assert TOKENIZER.decode(tokens.token_ids[tokens.answer_start :]) == "\n\nYes, of course."


@pytest.mark.parametrize("blank", ["", "\n", " \n\n"])
def test_reply_that_opens_its_reasoning_shows_no_marks(blank: str) -> None:
    token_ids = TOKENIZER.encode_template(f"{blank}<think>\nhm\n</think>\n\nYes.")
    reply, pieces = stream(token_ids, in_reasoning=False)

    assert (reply.reasoning, reply.content) == ("hm", "Yes.")
    assert not any("think" in piece.text for piece in pieces)


def test_reply_stopped_inside_its_reasoning_has_no_answer() -> None:
    token_ids = TOKENIZER.encode_template("Let me")
    reply, _ = stream(token_ids, in_reasoning=True)

    assert reply.content == ""
    assert reply.tokens().answer_start == len(token_ids)


def test_think_mark_inside_an_answer_is_plain_text() -> None:
    token_ids = TOKENIZER.encode_template("Say <think> and </think>.")
    reply, _ = stream(token_ids, in_reasoning=False)

    assert (reply.reasoning, reply.content) == ("", "Say <think> and </think>.")


def test_leading_space_of_a_reply_is_kept() -> None:
    reply, _ = stream(TOKENIZER.encode_template(" dog"), in_reasoning=False)

    assert reply.content == " dog"


@settings(deadline=None)
@given(st.lists(st.integers(0, VOCAB_SIZE - 6), max_size=30).map(tuple))
def test_reply_of_plain_tokens_has_the_decoded_text(token_ids: tuple[int, ...]) -> None:
    reply, pieces = stream(token_ids, in_reasoning=False)

    assert reply.content == TOKENIZER.decode(token_ids) == joined(pieces, Channel.ANSWER)


@pytest.mark.parametrize("in_reasoning", [True, False])
def test_continued_reply_is_split_like_an_uncut_one(in_reasoning: bool) -> None:
    opened = "" if in_reasoning else "<think>"
    token_ids = TOKENIZER.encode_template(
        f"{opened}\nhm \N{GRINNING FACE}\n</think>\n\nYes, \u00e9t\u00e9."
    )
    whole, _ = stream(token_ids, in_reasoning=in_reasoning)
    for cut in range(len(token_ids)):
        reply = ReplyStream(TOKENIZER, in_reasoning=in_reasoning, begun=token_ids[:cut])
        before = reply.content
        pieces = [piece for token_id in token_ids[cut:] for piece in reply.add(token_id)]
        pieces += reply.flush()

        assert (reply.reasoning, reply.content) == (whole.reasoning, whole.content)
        assert reply.tokens() == whole.tokens()
        assert reply.content == before + joined(pieces, Channel.ANSWER)
