from __future__ import annotations

from pathlib import Path

from app.viewmodels.model_question import uses_other_model
from app.viewmodels.models import ModelPhase, ModelStatus
from tests.app.viewmodels.test_items import EMPTY, finished, generation, send
from tests.fakes.rig import card

SNAPSHOTS = "/hub/models--owner--Tiny-9B/snapshots"


def in_use(path: str, phase: ModelPhase = ModelPhase.READY) -> ModelStatus:
    return ModelStatus(phase=phase, path=path)


def test_newer_revision_of_the_chats_model_is_the_same_model() -> None:
    chat = finished(send(EMPTY, 1, generation(f"{SNAPSHOTS}/old")))
    cards = (card(path=Path(SNAPSHOTS, "new")),)
    assert not uses_other_model(chat, in_use(f"{SNAPSHOTS}/new"), cards)
    assert uses_other_model(chat, in_use("/models/b"), cards)


def test_chat_without_answer_uses_no_other_model() -> None:
    assert not uses_other_model(EMPTY, in_use("/models/b"), ())


def test_model_that_cannot_answer_raises_no_question() -> None:
    chat = finished(send(EMPTY, 1))
    assert uses_other_model(chat, in_use("/models/b", ModelPhase.LOADING), ())
    assert not uses_other_model(chat, in_use("/models/b", ModelPhase.FAILED), ())
    assert not uses_other_model(chat, in_use("/models/b", ModelPhase.GONE), ())


def test_chat_from_another_app_raises_no_question() -> None:
    chat = finished(send(EMPTY, 1, generation("")))
    assert not uses_other_model(chat, in_use("/models/b"), ())
