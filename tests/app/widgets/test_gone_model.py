"""A model whose folder is gone: the line that says so, and what happens when it is back."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from typing_extensions import override

from app.settings import Settings
from app.viewmodels.models import ModelPhase
from app.widgets.commands import CommandId
from app.widgets.models_window import ModelsWindow
from app.words import computer
from engine.errors import ModelFolderError
from engine.events import LoadModel, ModelUnloaded
from tests.app.conftest import MakeStage
from tests.fakes.rig import DEMO, FakeCatalog, card
from tests.fakes.stage import Key, Stage

pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)

CHOSEN = card("Chosen-27B", path=Path("/Volumes/Disk/Chosen-27B"), num_parameters=27_000_000_000)
GONE = str(CHOSEN.path)
SENTENCE = (
    f"Chosen 27B is no longer on {computer.THIS_COMPUTER}. "
    "Connect its disk, choose another model, or download "
    "it again."
)


def loads(stage: Stage) -> list[str]:
    return [command.path for command in stage.engine.commands if isinstance(command, LoadModel)]


def remove(stage: Stage, path: str) -> None:
    stage.rig.catalog.gone.add(path)
    stage.rig.catalog.cards = tuple(c for c in stage.rig.catalog.cards if str(c.path) != path)
    stage.rig.models.refresh()


@dataclass
class SlowCatalog(FakeCatalog):
    """A catalog whose next check of the folders lasts until it may end."""

    is_slow: bool = False
    has_looked: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event = field(default_factory=threading.Event)

    @override
    def fingerprint(self, folders: tuple[str, ...]) -> str:
        found = super().fingerprint(folders)
        if self.is_slow:
            self.has_looked.set()
            assert self.may_end.wait(60)
        return found


@pytest.fixture
def without_chosen(make_stage: MakeStage) -> Stage:
    """A window at whose start the model chosen last is gone, and another one is there."""
    catalog = FakeCatalog(gone={GONE})
    settings = Settings(model_path=GONE, model_name="Chosen-27B")
    return make_stage(settings=settings, catalog=catalog)


def test_gone_model_is_not_replaced_at_the_start(without_chosen: Stage) -> None:
    stage = without_chosen
    assert stage.rig.models.status.phase is ModelPhase.GONE
    assert loads(stage) == []
    assert stage.pane.gone_model.isVisible()
    assert stage.pane.gone_model.sentence.text() == SENTENCE
    assert not stage.pane.empty.model_note.isVisible()


@pytest.mark.parametrize("is_answered", [True, False])
def test_model_folder_added_later_changes_the_next_start_only_if_no_model_has_answered(
    make_stage: MakeStage, *, is_answered: bool
) -> None:
    catalog = FakeCatalog(cards=(), starter=DEMO)
    stage = make_stage(catalog=catalog)
    stage.wait_until(lambda: stage.rig.models.status.phase is ModelPhase.READY)
    if is_answered:
        stage.chat("Hello", "Hi")
    catalog.cards = (*catalog.cards, CHOSEN)
    stage.rig.core.folder_search.add(CHOSEN.path.parent)
    stage.settle()
    assert loads(stage) == [str(DEMO.path)]
    settings = stage.rig.core.preferences.value
    stage.close()
    again = make_stage(settings=settings, catalog=catalog)
    assert loads(again) == [str(DEMO.path) if is_answered else GONE]


def test_message_to_a_gone_model_stays_in_the_composer_and_opens_the_picker(
    without_chosen: Stage,
) -> None:
    stage = without_chosen
    stage.type("Hello")
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.settle()
    assert stage.edit.toPlainText() == "Hello"
    assert stage.texts == []
    assert stage.window.picker.isVisible()
    assert not stage.pane.notice.isVisible()
    QTest.keyClick(stage.window.picker.list, Key.Key_Down)
    QTest.keyClick(stage.window.picker.list, Key.Key_Return)
    stage.settle()
    assert loads(stage) == ["/models/Tiny-9B-4bit"]
    assert not stage.pane.gone_model.isVisible()


def test_chat_of_a_model_that_is_there_offers_it_while_the_model_in_use_is_gone(
    make_stage: MakeStage,
) -> None:
    catalog = FakeCatalog()
    stage = make_stage(catalog=catalog)
    stage.chat("Hello", "Hi")
    stage.close()
    catalog.gone = {GONE}
    settings = Settings(model_path=GONE, model_name="Chosen-27B")
    stage = make_stage(settings=settings, catalog=catalog)
    stage.settle()
    assert stage.pane.gone_model.isVisible()
    stage.click_row("Hello")
    question = stage.pane.model_question
    assert question.sentence.text() == "This chat used Tiny 9B 4-bit."
    assert not stage.pane.gone_model.isVisible()
    assert not question.second.isVisible()
    stage.type("And you?")
    QTest.keyClick(stage.edit, Key.Key_Return)
    assert question.first.hasFocus()
    QTest.keyClick(question.first, Key.Key_Space)
    stage.settle()
    assert loads(stage) == ["/models/Tiny-9B-4bit"]
    stage.answer("I am fine")
    assert stage.texts[-2:] == ["And you?", "I am fine"]


def test_chat_of_a_gone_model_offers_no_other_one(make_stage: MakeStage) -> None:
    catalog = FakeCatalog(cards=(CHOSEN, *FakeCatalog().cards))
    stage = make_stage(catalog=catalog)
    stage.chat("Hello", "Hi")
    stage.close()
    remembered = stage.rig.core.preferences.value
    catalog.gone, catalog.cards = {GONE}, FakeCatalog().cards
    stage = make_stage(settings=remembered, catalog=catalog)
    stage.settle()
    stage.click_row("Hello")
    assert stage.pane.gone_model.sentence.text() == SENTENCE
    assert not stage.pane.model_question.isVisible()


def test_get_models_button_opens_the_models_window(without_chosen: Stage) -> None:
    stage = without_chosen
    QTest.mouseClick(stage.pane.gone_model.second, Qt.MouseButton.LeftButton)
    models = stage.window.findChild(ModelsWindow)
    assert models is not None
    assert models.isVisible()


def test_gone_model_is_loaded_when_it_is_back(without_chosen: Stage) -> None:
    stage = without_chosen
    stage.rig.catalog.gone.clear()
    stage.rig.catalog.cards = (CHOSEN, *stage.rig.catalog.cards)
    stage.rig.models.refresh()
    stage.wait_until(lambda: loads(stage) == [GONE])
    stage.wait_until(lambda: not stage.pane.gone_model.isVisible())


def test_demo_model_does_not_replace_a_gone_model(make_stage: MakeStage) -> None:
    catalog = FakeCatalog(cards=(), starter=DEMO, gone={GONE})
    stage = make_stage(settings=Settings(model_path=GONE), catalog=catalog)
    assert loads(stage) == []
    assert stage.pane.gone_model.isVisible()


def test_new_revision_in_the_cache_of_the_hub_replaces_the_old_one(make_stage: MakeStage) -> None:
    snapshots = "/hub/models--owner--Tiny-9B/snapshots"
    catalog = FakeCatalog(cards=(card(path=Path(snapshots, "new")),), gone={f"{snapshots}/old"})
    stage = make_stage(settings=Settings(model_path=f"{snapshots}/old"), catalog=catalog)
    assert loads(stage) == [f"{snapshots}/new"]


def test_model_that_failed_because_it_is_gone_is_named(stage: Stage) -> None:
    path = "/models/Tiny-9B-4bit"
    stage.engine.lose_model(ModelFolderError("model.safetensors can’t be read.").problem)
    remove(stage, path)
    stage.wait_until(stage.pane.gone_model.isVisible)
    assert stage.pane.gone_model.sentence.text().startswith("Tiny 9B 4-bit is no longer")


def test_unloaded_model_that_is_gone_is_named_and_a_loaded_one_goes_on(stage: Stage) -> None:
    remove(stage, "/models/Tiny-9B-4bit")
    stage.wait_until(lambda: stage.rig.models.gone == frozenset({"/models/Tiny-9B-4bit"}))
    assert not stage.pane.gone_model.isVisible()
    stage.chat("Hello", "Hi")
    stage.engine.on_event(ModelUnloaded(loads_again=True))
    stage.rig.models.refresh()
    stage.wait_until(stage.pane.gone_model.isVisible)
    assert stage.texts == ["Hello", "Hi"]


def test_model_whose_removal_was_seen_before_its_unloading_is_named(stage: Stage) -> None:
    remove(stage, "/models/Tiny-9B-4bit")
    stage.wait_until(lambda: stage.rig.models.gone == frozenset({"/models/Tiny-9B-4bit"}))
    stage.engine.on_event(ModelUnloaded(loads_again=True))
    stage.wait_until(stage.pane.gone_model.isVisible)
    assert stage.rig.models.status.phase is ModelPhase.GONE


def test_chat_names_its_gone_model_before_another_one_reads_it(make_stage: MakeStage) -> None:
    other = card("Other-4B", num_parameters=4_000_000_000)
    stage = make_stage(catalog=FakeCatalog(cards=(card(), other)))
    stage.chat("Hello", "Hi")
    stage.rig.models.choose(other.path)
    remove(stage, "/models/Tiny-9B-4bit")
    stage.wait_until(lambda: "no longer" in stage.composer.caption)
    assert stage.composer.caption == f"Tiny 9B 4-bit is no longer on {computer.THIS_COMPUTER}."


def test_model_that_is_removed_during_a_check_is_noticed(make_stage: MakeStage) -> None:
    """The check has looked for the model, and lasts until another one is asked for."""
    other = card("Other-4B", num_parameters=4_000_000_000)
    catalog = SlowCatalog(cards=(card(), other))
    stage = make_stage(catalog=catalog)
    stage.chat("Hello", "Hi")
    stage.rig.models.choose(other.path)
    stage.settle()
    catalog.is_slow = True
    stage.rig.models.refresh()
    assert catalog.has_looked.wait(60)
    remove(stage, "/models/Tiny-9B-4bit")
    catalog.may_end.set()

    stage.wait_until(lambda: "no longer" in stage.composer.caption)


def test_continue_of_an_answer_of_a_gone_model_names_it(stage: Stage) -> None:
    stage.send("Count")
    stage.engine.write("One, ")
    stage.run(CommandId.STOP)
    stage.engine.facts = replace(stage.engine.facts, template_hash="another")
    stage.rig.models.choose(Path("/models/other"))
    remove(stage, "/models/Tiny-9B-4bit")
    stage.wait_until(lambda: "no longer" in stage.composer.caption)
    stage.run(CommandId.CONTINUE)
    assert stage.pane.notice.text == (
        "Another model began this answer. "
        f"Tiny 9B 4-bit is no longer on {computer.THIS_COMPUTER}. Regenerate "
        "the answer with the model in use."
    )
    assert stage.texts == ["Count", "One, "]
