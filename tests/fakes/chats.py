"""Chats on an engine in the test's thread, step by step as in a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from app.cli.step_report import StepReport
from engine.cache.prefix_cache import PrefixCache
from engine.events import Cancel, PrefillProgress
from engine.usage import ReasonKind
from tests.fakes.asking import cache_of
from tests.fakes.inline_engine import InlineClient

ANSWER = {"text": "One, two."}
THOUGHT = {"text": "One, two.", "reasoning": "A list of numbers is what is wanted."}


class Chats:
    """A helper that plays single script steps on an engine in the test's thread."""

    def __init__(self, client: InlineClient) -> None:
        self.client = client
        self._player = ScriptPlayer(client, Path(), check=False)

    @property
    def cache(self) -> PrefixCache:
        return cache_of(self.client)

    def do(self, op: str, **fields: object) -> None:
        self.play({"op": op, **fields})

    def answer(self, op: str, chat: str = "A", **fields: object) -> StepReport:
        step = {"op": op, "chat": chat, "max_tokens": 64, "reply": ANSWER, **fields}
        (report,) = self.play(step)
        check_plan(report)
        return report

    def send(self, text: str, chat: str = "A", **fields: object) -> StepReport:
        return self.answer("send", chat, text=text, **fields)

    def stop_reading(self, op: str, *, num_chunks: int = 1, **fields: object) -> StepReport:
        """Stop a request after some chunks of its prompt were fed."""
        self.do(op, chat="A", wait=False, **fields)
        progress = None
        for _ in range(num_chunks):
            progress = self.client.next_event()
            while not isinstance(progress, PrefillProgress):
                progress = self.client.next_event()
        assert progress is not None
        self.client.send(Cancel(progress.request_id))
        (report,) = self._player.join()
        assert report.read + report.replayed == progress.done < progress.total
        return report

    def play(self, step: dict[str, Any]) -> list[StepReport]:
        return list(self._player.play(parse_step(json.dumps(step))))


def check_plan(report: StepReport) -> None:
    """Assert that every fed token has exactly one reason, and that no restored token has any."""
    end = report.restored
    for reason in report.reasons:
        assert reason.at == end
        assert reason.num_tokens > 0
        end += reason.num_tokens
    assert end == report.prompt_tokens
    assert report.matched >= report.restored


def kinds(report: StepReport) -> list[ReasonKind]:
    return [reason.kind for reason in report.reasons]
