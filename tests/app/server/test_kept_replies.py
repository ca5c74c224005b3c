"""The file of the model's own replies: found by place and by words, within limits, replaced if damaged."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from app.server import kept_replies
from app.server.kept_replies import KeptReplies, delete_replies
from engine.types import Message, ReplyTokens, Role

TOKENS = ReplyTokens.of((1, 2, 3), answer_start=1, tokenizer_hash="hash")
REPLY = Message(role=Role.ASSISTANT, content="A boat.", reasoning="Well.", reply=TOKENS)
PLACE, WORDS = b"place", b"words"


def test_reply_is_found_after_a_restart_by_place_and_by_words(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    first = KeptReplies(path)
    first.add(PLACE, WORDS, REPLY)
    first.close()

    second = KeptReplies(path)
    assert second.find(PLACE, None) == REPLY
    assert second.find(b"other", WORDS) == REPLY
    assert second.find(b"other", None) is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    second.close()


def test_reply_at_its_place_comes_before_one_with_the_same_words() -> None:
    replies = KeptReplies(None)
    other = Message(role=Role.ASSISTANT, content="A boat.", reply=TOKENS)
    replies.add(PLACE, WORDS, REPLY)
    replies.add(b"other", WORDS, other)

    assert replies.find(PLACE, WORDS) == REPLY
    assert replies.find(b"elsewhere", WORDS) == other
    replies.close()


@pytest.mark.parametrize("content", [b"no database" * 1000, b""])
def test_damaged_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "replies.db"
    path.write_bytes(content)
    replies = KeptReplies(path)
    replies.add(PLACE, WORDS, REPLY)

    assert replies.find(PLACE, None) == REPLY
    replies.close()


def test_full_file_loses_the_oldest_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_replies, "_MAX_BYTES", 1_000_000)
    replies = KeptReplies(None)
    long = Message(role=Role.ASSISTANT, content="word " * 10_000, reply=TOKENS)
    for number in range(60):
        replies.add(f"{number}".encode(), WORDS, long)

    kept = [number for number in range(60) if replies.find(f"{number}".encode(), None)]
    assert kept == list(range(kept[0], 60))
    assert 10 < len(kept) < 30
    replies.close()


def test_old_replies_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = KeptReplies(None)
    replies.add(PLACE, WORDS, REPLY)
    monkeypatch.setattr(kept_replies, "_MAX_AGE_S", -1.0)
    replies.add(b"other", WORDS, REPLY)

    assert replies.find(PLACE, None) is None
    replies.close()


def test_cleared_and_deleted_replies_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    replies = KeptReplies(path)
    replies.add(PLACE, WORDS, REPLY)
    replies.clear()

    assert replies.find(PLACE, WORDS) is None
    assert not any(REPLY.content.encode() in file.read_bytes() for file in tmp_path.iterdir())
    replies.close()
    delete_replies(path)
    assert not list(tmp_path.iterdir())


def test_file_that_cannot_be_opened_keeps_replies_in_memory(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "replies.db"):
        replies = KeptReplies(path)
        replies.add(PLACE, WORDS, REPLY)

        assert replies.find(PLACE, None) == REPLY
        replies.close()
