from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QStyle, QStyleOptionFrame
from typing_extensions import override

from app.hub.values import Download, DownloadState
from app.viewmodels.models import ModelPhase
from app.viewmodels.offer import OfferAction
from app.widgets.commands import CommandId
from app.widgets.message_sheet import MessageSheet
from app.widgets.model_defaults import ModelDefaultsSheet
from app.widgets.models_window import ModelsTab, ModelsWindow
from app.widgets.offer_row import OfferRow
from engine.catalog.installed import InstalledModel
from engine.catalog.removal import RemovalPlan
from engine.errors import DiskError
from engine.events import LoadModel, UnloadModel
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.sheets import default_of, find_sheet, press, sheet_in
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing|propagate)", extend=True)

OTHER = card("Other-4B-4bit", num_parameters=4_000_000_000, size_bytes=2_400_000_000)


@dataclass(slots=True, eq=False)
class WithRemoval(FakeCatalog):
    """A catalog that plans removals, and whose Trash takes nothing."""

    deleted: str = ""  # name of the model that was deleted for good

    @override
    def plan_removal(
        self, model: InstalledModel, models: tuple[InstalledModel, ...], folders: tuple[str, ...]
    ) -> RemovalPlan:
        return RemovalPlan(model=model, paths=(model.path,), freed_bytes=2_400_000_000)

    @override
    def remove(self, plan: RemovalPlan, trash: Callable[[Path], None] | None = None) -> None:
        if trash is None:
            raise DiskError("The Trash is on another volume.")
        for path in plan.paths:
            trash(path)

    @override
    def delete(self, plan: RemovalPlan) -> None:
        self.deleted = plan.model.name
        self.cards = tuple(card for card in self.cards if card.path not in plan.paths)
        self.gone.update(map(str, plan.paths))


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    return make_stage(catalog=WithRemoval(cards=(card(), OTHER)))


def opened(stage: Stage, tab: ModelsTab = ModelsTab.LOCAL) -> ModelsWindow:
    stage.run(CommandId.GET_MODELS)
    window = stage.window.findChild(ModelsWindow)
    assert window is not None
    window.show_tab(tab)
    stage.wait_until(lambda: len(window.local.rows) == 2)
    return window


def row_of(window: ModelsWindow, name: str) -> OfferRow:
    return next(row for row in window.local.rows if row.title.text() == name)


def question(stage: Stage, window: ModelsWindow, begins: str = "") -> MessageSheet:
    """Return the question on show. `begins` is the beginning of its title."""

    def is_there() -> bool:
        sheet = find_sheet(window)
        return sheet is not None and sheet.windowTitle().startswith(begins)

    stage.wait_until(is_there)
    return sheet_in(window)


def test_use_shows_loading_at_once_in_both_windows(stage: Stage) -> None:
    window = opened(stage)
    row = row_of(window, OTHER.title)
    stage.engine.hold_load = True
    QTest.mouseClick(row.buttons[OfferAction.USE], Qt.MouseButton.LeftButton)

    assert row.state.text() == "Loading"
    assert not row.bar.isHidden()
    assert stage.window.sidebar.footer.accessibleName().startswith(f"Model {OTHER.title}, Loading")
    stage.engine.load_progress(0.4)
    stage.settle()
    assert row.state.text() == "Loading 40%"
    stage.engine.finish_load()
    stage.settle()
    assert row.state.text() == "Loaded"


def test_model_has_one_name_in_every_place(stage: Stage) -> None:
    stage.engine.facts = replace(stage.engine.facts, name=card().name, path=str(card().path))
    stage.core.models.load_again()
    stage.settle()
    stage.chat("Hello", "Hi")
    title = card().title
    assert title != card().name

    main, window = stage.window, opened(stage)
    rows = main.picker.list.model()
    figures = stage.items[-1].figures
    assert figures is not None
    assert figures.model_name == title
    assert main.toolbar.model_button.text() == title
    assert main.sidebar.footer.accessibleName().startswith(f"Model {title}, ")
    assert title in [rows.data(rows.index(at, 0)) for at in range(rows.rowCount())]
    row_of(window, title).buttons[OfferAction.DEFAULTS].click()
    (sheet,) = window.findChildren(ModelDefaultsSheet)
    assert sheet.windowTitle() == f"Defaults for {title}"
    sheet.accept()


def test_unload_in_window_and_menu_frees_the_model_until_the_next_message(stage: Stage) -> None:
    window = opened(stage)
    row = row_of(window, card().title)
    row.buttons[OfferAction.UNLOAD].click()
    stage.settle()

    assert UnloadModel(until_needed=True) in stage.engine.commands
    assert row.state.text() == "Unloaded until the next message"
    action = stage.window.commands[CommandId.UNLOAD]
    assert not action.isEnabled()
    row.buttons[OfferAction.USE].click()
    stage.settle()
    assert action.isEnabled()
    loads = [one for one in stage.engine.commands if isinstance(one, LoadModel)]
    assert [Path(one.path).name for one in loads] == [card().name, card().name]


def test_model_that_is_answering_cannot_be_unloaded(stage: Stage) -> None:
    window = opened(stage)
    stage.send("Hello")
    stage.settle()

    assert not stage.window.commands[CommandId.UNLOAD].isEnabled()
    assert OfferAction.UNLOAD not in row_of(window, card().title).buttons
    stage.answer("Hi")
    assert stage.window.commands[CommandId.UNLOAD].isEnabled()
    assert OfferAction.UNLOAD in row_of(window, card().title).buttons


def test_question_before_a_removal_names_the_chats_and_keeps_by_default(stage: Stage) -> None:
    stage.rig.models.choose(OTHER.path)
    stage.engine.facts = replace(stage.engine.facts, path=str(OTHER.path))
    stage.settle()
    stage.chat("About whales", "They are large.")
    stage.rig.models.choose(card().path)
    stage.settle()
    window = opened(stage)
    row_of(window, OTHER.title).entries[OfferAction.REMOVE].trigger()
    box = question(stage, window)

    assert box.windowTitle() == f"Move {OTHER.title} to the Trash?"
    assert box.text.startswith(
        "1 chat was answered by it: “About whales”. It stays, and another model can continue it."
    )
    assert "Emptying the Trash frees 2.4 GB." in box.text
    assert default_of(box) == "Keep"
    box.close()


def test_model_that_the_trash_refuses_is_deleted_only_after_a_second_question(
    stage: Stage,
) -> None:
    window = opened(stage)
    catalog = stage.rig.catalog
    assert isinstance(catalog, WithRemoval)
    row_of(window, OTHER.title).entries[OfferAction.REMOVE].trigger()
    press(question(stage, window), "Move to Trash")
    box = question(stage, window, "The Trash can’t take")
    assert catalog.deleted == ""
    assert default_of(box) == "Keep"
    press(box, "Delete Immediately")
    stage.wait_until(lambda: catalog.deleted == OTHER.name)


def test_removal_of_the_model_in_use_unloads_it_first(stage: Stage) -> None:
    stage.chat("About whales", "They are large.")
    window = opened(stage)
    stage.send("And dolphins?")
    entry = row_of(window, card().title).entries[OfferAction.REMOVE]
    assert (entry.text(), entry.isEnabled()) == ("Remove… (it is answering)", False)
    stage.answer("Less.")
    row_of(window, card().title).entries[OfferAction.REMOVE].trigger()
    box = question(stage, window)
    assert "It is in use now, and is unloaded first." in box.text
    assert "“About whales”" in box.text
    press(box, "Move to Trash")
    assert isinstance(stage.engine.commands[-1], UnloadModel)
    box = question(stage, window, "The Trash can’t take")
    press(box, "Delete Immediately")
    stage.wait_until(lambda: stage.rig.models.status.phase is ModelPhase.GONE)
    assert stage.pane.gone_model.isVisible()
    stage.wait_until(lambda: [row.title.text() for row in window.local.rows] == [OTHER.title])


def test_model_that_begins_to_answer_during_the_question_is_kept(stage: Stage) -> None:
    window = opened(stage)
    row_of(window, card().title).entries[OfferAction.REMOVE].trigger()
    box = question(stage, window)
    stage.send("Hello")
    press(box, "Move to Trash")
    stage.settle()
    assert not any(isinstance(one, UnloadModel) for one in stage.engine.commands)
    assert stage.window.toast.text.startswith(f"{card().title} could not be removed.")


def test_finished_download_offers_use_in_the_main_window(stage: Stage) -> None:
    folder = Path("/hub/models--owner--New-4bit/snapshots/a")
    done = Download(repo_id="owner/New-4bit", state=DownloadState.DONE, folder=str(folder))
    stage.core.hub.completed.emit(done)
    stage.settle()

    assert stage.window.toast.text == "New 4-bit is ready to use."
    assert stage.window.toast.button.text() == "Use"
    stage.window.toast.button.click()
    stage.settle()
    loads = [one for one in stage.engine.commands if isinstance(one, LoadModel)]
    assert loads[-1].path == str(folder)


def test_line_about_downloads_opens_their_page(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Download(
        repo_id="owner/New-4bit", state=DownloadState.RUNNING, done_bytes=1, total_bytes=4
    )
    line = stage.window.sidebar.foot.downloads
    assert not line.isVisible()
    monkeypatch.setattr(type(stage.core.hub), "downloads", property(lambda _: (running,)))
    stage.core.hub.downloads_changed.emit()

    assert line.accessibleName() == "Downloading New 4-bit · 25%"
    assert line.text() == "↓ New 4-bit · 25%"
    assert line.isVisible()
    line.click()
    window = stage.window.findChild(ModelsWindow)
    assert window is not None
    assert window.pages.currentWidget() is window.downloads


@pytest.mark.parametrize("tab", ModelsTab)
def test_page_of_the_window_has_at_most_one_primary_button(stage: Stage, tab: ModelsTab) -> None:
    window = opened(stage, tab)
    page = window.pages.currentWidget()
    assert page is not None
    buttons = page.findChildren(QPushButton)
    primary = [one.text() for one in buttons if one.property("kind") == "primary"]
    assert primary == (["Search"] if tab is ModelsTab.SEARCH else [])
    assert buttons or tab is ModelsTab.DOWNLOADS


def test_larger_text_scales_the_window_and_clips_nothing(stage: Stage) -> None:
    window = opened(stage)
    parts = [*window.findChildren(QLabel), *window.findChildren(QPushButton)]
    shown = [part for part in parts if part.isVisible() and part.text()]
    before = {part: part.font().pixelSize() for part in shown}
    stage.core.preferences.set_zoom(150)
    stage.settle()

    same = [p.text() for p, size in before.items() if p.font().pixelSize() != round(1.5 * size)]
    assert same == []
    clipped = [p.text() for p in shown if p.height() < p.fontMetrics().height()]
    assert clipped == []
    tabs = window.tabs
    assert tabs.width() >= tabs.minimumSizeHint().width()


def test_larger_text_scales_the_picker(stage: Stage) -> None:
    picker = stage.window.picker
    stage.run(CommandId.CHOOSE_MODEL)
    width, list_height = picker.width(), picker.list.height()
    size = picker.get_models.font().pixelSize()
    picker.hide()
    stage.core.preferences.set_zoom(150)
    stage.run(CommandId.CHOOSE_MODEL)

    assert picker.width() > width
    assert picker.list.height() > 1.3 * list_height
    assert picker.get_models.font().pixelSize() == round(1.5 * size)


@pytest.mark.parametrize("zoom", [100, 200])
def test_context_length_shows_all_its_digits(make_stage: MakeStage, zoom: int) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(card(context_len=1_048_576), OTHER)))
    stage.core.preferences.set_zoom(zoom)
    window = opened(stage)
    row_of(window, card().title).buttons[OfferAction.DEFAULTS].click()
    sheet = window.findChild(ModelDefaultsSheet)
    assert sheet is not None
    field = sheet.context
    option = QStyleOptionFrame()
    field.initStyleOption(option)
    place = QStyle.SubElement.SE_LineEditContents
    room = field.style().subElementRect(place, option, field).width() - 4  # 2 px at both sides

    assert room >= field.fontMetrics().horizontalAdvance("1048576")
    sheet.accept()
