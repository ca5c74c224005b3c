"""Conversations after a restart: their state comes from disk, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.events import Forget, RequestFinished, Shutdown
from engine.types import ConversationId, Message
from tests.fakes.asking import ask, cache_of, reply_of, user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template

LONG = "a long question about nothing in particular " * 12
KINDS = ["qwen3_5", "llama", "falcon_h1", "mamba2", "gemma3_text", "lfm2"]


def _close(client: InlineClient) -> None:
    client.send(Shutdown())
    client.core.run()


def _turns(client: InlineClient, count: int, chat: str = "A") -> list[Message]:
    messages: list[Message] = []
    for number in range(count):
        messages.append(user(f"{LONG} {chat} {number}"))
        messages.append(reply_of(ask(client, *messages, chat=chat)))
    return messages


def _answer(finished: RequestFinished) -> tuple[object, ...]:
    return finished.content, finished.reasoning, finished.reply


@pytest.mark.parametrize("kind", KINDS)
def test_a_conversation_goes_on_after_a_restart(
    open_tiny: OpenTiny, tmp_path: Path, kind: str
) -> None:
    without = open_tiny(kind)
    messages = _turns(without, 2)
    expected = ask(without, *messages, user("more"))

    first = open_tiny(kind, disk_folder=tmp_path / "disk")
    assert _turns(first, 2) == messages
    _close(first)
    second = open_tiny(kind, disk_folder=tmp_path / "disk")
    again = ask(second, *messages, user("more"))

    assert _answer(again) == _answer(expected)
    plan, usual = again.usage.plan, expected.usage.plan
    assert (plan.restored, plan.read, plan.replayed) == (
        usual.restored, usual.read, usual.replayed
    )  # fmt: skip
    assert plan.restored_disk == plan.restored > 0
    assert again.usage.disk_ms > 0
    _close(second)
