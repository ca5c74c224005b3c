"""Fixtures and requests of the tests about pictures: a tiny model that sees, and two pictures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.events import RequestFinished, Submit
from engine.questions import CheckResult, Verify
from engine.types import (
    ConversationId,
    Message,
    Picture,
    Request,
    RequestId,
    Role,
    SamplingParams,
)
from tests.fakes.inline_engine import InlineClient
from tests.fakes.seeing_model import build_seeing, write_picture
from tests.fakes.tiny_model import Template

OpenSeeing = Callable[..., InlineClient]


@pytest.fixture(scope="session")
def seeing_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Template], Path]:
    built: dict[tuple[str, Template], Path] = {}
    root = tmp_path_factory.mktemp("seeing")

    def get(name: str, template: Template) -> Path:
        key = (name, template)
        if key not in built:
            built[key] = build_seeing(root / f"{name}-{template}", name, template)
        return built[key]

    return get


@pytest.fixture
def open_seeing(seeing_model: Callable[[str, Template], Path], tmp_path: Path) -> OpenSeeing:
    def get(
        name: str = "qwen3_5", template: Template = Template.KEEPING, **options: object
    ) -> InlineClient:
        fields = {"idle_work": False, "saves_battery": False, "cache_budget_bytes": 1 << 30}
        folder = {"picture_folder": tmp_path / "pictures", "disk_rest_s": 0.0}
        config = EngineConfig(use_openblas=False, **fields | folder | options)  # type: ignore[arg-type]
        client = InlineClient(config)
        load_model(client, seeing_model(name, template), lambda _: None)
        return client

    return get


@pytest.fixture
def cat(tmp_path: Path) -> Picture:
    return write_picture(tmp_path / "pictures", 192, 128)


@pytest.fixture
def dog(tmp_path: Path) -> Picture:
    return write_picture(tmp_path / "pictures", 64, 160, seed=1)


def seen(text: str, *pictures: Picture) -> Message:
    return Message(role=Role.USER, content=text, pictures=pictures)


def submit(
    client: InlineClient, messages: Sequence[Message], chat: str = "A", *, max_drafts: int = 0
) -> None:
    request = Request(
        request_id=RequestId("r"),
        conversation_id=ConversationId(chat),
        messages=tuple(messages),
        new_messages=frozenset({len(messages) - 1}),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=24 if max_drafts else 6,
        max_drafts=max_drafts,
        record_logits=True,
    )
    client.send(Submit(request, time.perf_counter()))


def verified(
    client: InlineClient, messages: Sequence[Message], chat: str = "A", *, max_drafts: int = 0
) -> tuple[RequestFinished, CheckResult]:
    """Return an answer, and its comparison with runs without cached state."""
    submit(client, messages, chat, max_drafts=max_drafts)
    (finished,) = (e for e in client.run_until_idle() if isinstance(e, RequestFinished))
    return finished, client.answer(client.ask(Verify(RequestId("r"), tuple(messages))))


def asked(
    client: InlineClient, messages: Sequence[Message], chat: str = "A"
) -> tuple[RequestFinished, str]:
    """Return an answer that is exact, and the hash of its logits."""
    finished, result = verified(client, messages, chat)
    assert result.prompt_equal, result.detail
    assert result.equal, result
    assert result.replay_difference == 0
    return finished, result.logits_hash


def num_fed(finished: RequestFinished) -> int:
    plan = finished.usage.plan
    return plan.prompt_tokens - plan.restored
