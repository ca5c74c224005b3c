"""Smaller copies of models in the Models window: progress, cancel, failure, completion."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.viewmodels.offer import OfferAction
from app.widgets.commands import CommandId
from app.widgets.models_window import ModelsTab, ModelsWindow
from app.widgets.offer_row import OfferRow
from engine.catalog.card import ModelCard
from engine.errors import ModelFolderError
from engine.local_models import OpenedModel
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, Progress, card
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
FULL = card("Full-9B-bf16", bits=16.0, size_bytes=18_000_000_000)


@dataclass
class Copier:
    """A copy that is half done until the test lets it end."""

    ends: Event = field(default_factory=Event)
    bits: int = 0
    problem: ModelFolderError | None = None
    is_cancelled: bool = False

    def __call__(self, source: ModelCard, bits: int, progress: Progress) -> OpenedModel:
        self.bits = bits
        try:
            while not self.ends.wait(0.005):
                progress(0.5)
        except Exception:
            self.is_cancelled = True
            raise
        if self.problem is not None:
            raise self.problem
        return OpenedModel(Path("/models/Full-9B-4bit"))


@pytest.fixture
def copier() -> Copier:
    return Copier()


@pytest.fixture
def stage(make_stage: MakeStage, copier: Copier) -> Stage:
    return make_stage(catalog=FakeCatalog(cards=(FULL, card()), copies=copier))


def row(stage: Stage, name: str = FULL.title) -> OfferRow:
    window = stage.window.findChild(ModelsWindow)
    assert window is not None
    return next(one for one in window.local.rows if one.title.text() == name)


@pytest.fixture
def opened(stage: Stage) -> Stage:
    """The window with a copy that is half done."""
    stage.run(CommandId.GET_MODELS)
    window = stage.window.findChild(ModelsWindow)
    assert window is not None
    window.show_tab(ModelsTab.LOCAL)
    stage.wait_until(lambda: bool(window.local.rows))
    row(stage).entries[OfferAction.COPY_4].trigger()
    stage.wait_until(lambda: row(stage).state.text() == "Making a 4-bit copy: 50%")
    return stage


def test_only_models_in_full_precision_can_be_copied(opened: Stage) -> None:
    assert OfferAction.COPY_4 not in row(opened, card().title).entries


def test_copy_shows_its_progress_and_then_the_model(opened: Stage, copier: Copier) -> None:
    assert row(opened).bar.isVisible()
    assert copier.bits == 4
    made = replace(card("Full-9B-4bit"), path=Path("/models/Full-9B-4bit"))
    opened.rig.catalog.cards = (*opened.rig.catalog.cards, made)
    copier.ends.set()
    window = opened.window.findChild(ModelsWindow)
    assert window is not None
    opened.wait_until(lambda: len(window.local.rows) == 3)
    assert not row(opened).bar.isVisible()
    assert opened.window.toast.text == "Full 9B 4-bit is ready to use."


def test_cancelled_copy_ends_and_can_be_made_again(opened: Stage, copier: Copier) -> None:
    QTest.mouseClick(row(opened).buttons[OfferAction.CANCEL_COPY], Qt.MouseButton.LeftButton)
    opened.wait_until(lambda: OfferAction.COPY_4 in row(opened).entries)
    assert copier.is_cancelled
    assert row(opened).sentence.text() == ""
    row(opened).entries[OfferAction.COPY_8].trigger()
    opened.wait_until(lambda: row(opened).state.text() == "Making an 8-bit copy: 50%")


def test_failed_copy_says_why_in_its_row(opened: Stage, copier: Copier) -> None:
    copier.problem = ModelFolderError("5,000 MB are needed.", advice="Free some space.")
    copier.ends.set()
    opened.wait_until(
        lambda: "5,000 MB are needed. Free some space." in row(opened).sentence.text()
    )
    assert OfferAction.COPY_4 in row(opened).entries


def test_closing_the_app_ends_the_copy(opened: Stage, copier: Copier) -> None:
    opened.close()
    assert copier.is_cancelled
