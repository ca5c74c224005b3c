"""Requests to the local server for pictures of its page."""

from __future__ import annotations

import time

from app.server.chat_request import Ended
from app.server.known_chats import ChangedLine
from app.server.live_requests import (
    MAX_CHARS,
    RequestState,
    RequestTexts,
    SeenRequest,
    SeenRequests,
)
from app.server.report import Report
from engine.types import Role

_CHANGE = ChangedLine(
    0,
    Role.SYSTEM,
    "…working directory: /Users/me/boats. Today is Thursday, 26 November 2026. Git status: clean…",
    "…working directory: /Users/me/boats. Today is Friday, 27 November 2026. Git status: 2 files changed…",
)
_TEXTS = RequestTexts(
    number=3,
    role=Role.TOOL,
    message=("def restore(chat, node):\n    point = chat.nearest(node)\n" * 80)[:MAX_CHARS],
    message_len=12_310,
    reply="The test fails because `nearest` returns None for the first message. I add a check.",
    reply_len=83,
)


def requests(number: int) -> SeenRequests:
    """Return requests in all states. number: of the request whose texts are known."""
    open_ones = (
        _request(5, "claude-cli", RequestState.WAITS, age_s=2),
        _request(4, "opencode", RequestState.READS, age_s=12),
        _request(3, "codex_cli_rs", RequestState.WRITES, age_s=31, change=_CHANGE),
    )
    ended = Ended(
        at_limit=False,
        stop=None,
        prompt_tokens=28_210,
        restored=27_900,
        replayed=0,
        read=310,
        output_tokens=212,
        reasoning_tokens=0,
        first_word_ms=400,
    )
    report = Report(client="claude-cli", ended=ended)
    done = (
        _request(2, "claude-cli", RequestState.ENDED, report=report),
        _request(1, "curl", RequestState.GONE),
    )
    return SeenRequests((*open_ones, *done), _TEXTS if number == _TEXTS.number else None)


def _request(
    number: int,
    client: str,
    state: RequestState,
    *,
    age_s: float = 60,
    change: ChangedLine | None = None,
    report: Report | None = None,
) -> SeenRequest:
    return SeenRequest(
        number=number,
        client=client,
        state=state,
        came_at=time.monotonic() - age_s,
        num_read=1200,
        num_to_read=4310,
        num_written=85,
        report=report,
        change=change,
    )
