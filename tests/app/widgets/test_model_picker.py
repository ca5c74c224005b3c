from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QFontMetrics
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.hub.values import Download, DownloadState
from app.settings import Settings
from app.theme.tokens import LIGHT, Size, Type
from app.viewmodels.models import ModelPhase
from app.widgets.commands import CommandId
from app.widgets.models_window import ModelsWindow
from app.words.commands import LOAD_AGAIN
from app.words.models import DEMO_NOTE
from engine.errors import EngineEndedError, ModelFolderError, NoModelError, OutOfMemoryError
from engine.events import LoadModel, LoadStage, ModelLoading, ModelUnloaded
from tests.app.conftest import MakeStage
from tests.fakes.pixels import pixels_of
from tests.fakes.rig import DEMO, FakeCatalog, Rig, card
from tests.fakes.stage import Key, Stage

# The offscreen platform logs these messages for every popup.
pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)

BROKEN = card("Broken-7B", problem=ModelFolderError("model.safetensors is missing.").problem)
OTHER = card("Other-4B", num_parameters=4_000_000_000)


def loads(stage: Stage) -> list[str]:
    return [command.path for command in stage.engine.commands if isinstance(command, LoadModel)]


def test_best_model_is_loaded_at_the_start(make_stage: MakeStage) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(DEMO, OTHER, card(), BROKEN)))
    assert loads(stage) == ["/models/Tiny-9B-4bit"]
    assert stage.window.toolbar.model_button.text() == "Tiny 9B 4-bit"


def test_chosen_model_is_loaded_now_and_at_the_next_start(make_stage: MakeStage) -> None:
    catalog = FakeCatalog(cards=(card(), OTHER))
    stage = make_stage(catalog=catalog)
    stage.run(CommandId.CHOOSE_MODEL)
    picker = stage.window.picker
    assert picker.isVisible()
    assert picker.list.currentIndex().row() == 0
    QTest.keyClick(picker.list, Key.Key_Return)
    stage.settle()
    assert loads(stage) == ["/models/Tiny-9B-4bit"], "it is loaded already"
    stage.run(CommandId.CHOOSE_MODEL)
    QTest.keyClick(picker.list, Key.Key_Down)
    QTest.keyClick(picker.list, Key.Key_Return)
    stage.settle()
    assert not picker.isVisible()
    assert loads(stage)[-1] == "/models/Other-4B"
    assert stage.window.toolbar.model_button.text() == "Other 4B"
    remembered = stage.rig.core.preferences.value
    stage.close()
    again = make_stage(settings=remembered, catalog=catalog)
    assert loads(again) == ["/models/Other-4B"]


def test_chosen_starter_model_is_found_after_the_app_has_moved(make_stage: MakeStage) -> None:
    chosen = Settings(model_path="/Volumes/Rejoinder/models/SmolLM2-135M-Instruct")
    stage = make_stage(settings=chosen, catalog=FakeCatalog(cards=(card(), DEMO)))
    assert loads(stage) == [str(DEMO.path)]


def test_broken_model_cannot_be_chosen(make_stage: MakeStage) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(card(), BROKEN)))
    stage.run(CommandId.CHOOSE_MODEL)
    picker = stage.window.picker
    index = picker.list.model().index(1, 0)
    QTest.mouseClick(
        picker.list.viewport(),
        Qt.MouseButton.LeftButton,
        pos=picker.list.visualRect(index).center(),
    )
    assert picker.isVisible()
    assert loads(stage) == ["/models/Tiny-9B-4bit"]
    picker.hide()


def test_footer_shows_progress_while_a_model_loads(make_stage: MakeStage) -> None:
    stage = make_stage(hold_load=True)
    stage.engine.load_progress(0.62)
    stage.settle()
    assert "Loading 62%" in stage.window.sidebar.footer.accessibleName()
    stage.engine.check_model()
    stage.settle()
    assert "Checking the model" in stage.window.sidebar.footer.accessibleName()
    stage.engine.finish_load()
    stage.settle()
    assert "Ready" in stage.window.sidebar.footer.accessibleName()


def test_footer_shows_the_answers_that_are_read_for_and_written(stage: Stage) -> None:
    footer = stage.window.sidebar.footer

    def shown() -> str:
        stage.settle()
        return footer.accessibleName()

    stage.send("One")
    stage.engine.prefill(150, 600)
    assert "Reading 25%" in shown()
    stage.engine.write("Text")
    assert "Answering." in shown()
    stage.run(CommandId.NEW_CHAT)
    stage.send("Two")
    assert "Answering." in shown(), "the second chat has not begun"
    for _ in range(2):
        stage.engine.finish()
        stage.settle()
    assert "Ready" in shown()


def test_message_sent_while_the_model_loads_is_answered_later(make_stage: MakeStage) -> None:
    stage = make_stage(hold_load=True)
    stage.send("Early bird")
    stage.engine.load_progress(0.62)
    stage.settle()
    line = stage.items[1].state_line
    assert line is not None
    assert line.text == "Loading Tiny 9B 4-bit · 62% · 3.2 of 5.2 GB"
    stage.engine.finish_load()
    stage.settle()
    stage.answer("Worm")
    assert stage.texts == ["Early bird", "Worm"]


def test_failed_load_shows_the_reason_and_keeps_the_message(make_stage: MakeStage) -> None:
    stage = make_stage(hold_load=True)
    stage.send("Early bird")
    stage.engine.fail_load(ModelFolderError("model.safetensors is cut short.").problem)
    stage.settle()
    assert stage.rig.models.status.phase is ModelPhase.FAILED
    assert "cut short" in stage.pane.empty.model_note.sentence.text()
    assert stage.edit.toPlainText() == "Early bird"


def test_lost_model_is_reported_with_a_button_that_loads_it_again(stage: Stage) -> None:
    stage.send("One")
    stage.answer("Two")
    stage.engine.lose_model(EngineEndedError("It says: panic.").problem)
    stage.settle()
    notice = stage.pane.notice
    assert notice.isVisible()
    assert stage.rig.models.status.phase is ModelPhase.FAILED

    QTest.mouseClick(notice.button, Qt.MouseButton.LeftButton)
    stage.wait_until(lambda: stage.rig.models.status.phase is ModelPhase.READY)
    assert not notice.isVisible()
    stage.send("Three")
    stage.answer("Four")
    assert stage.texts == ["One", "Two", "Three", "Four"]


@pytest.mark.parametrize("has_begun", [False, True])
def test_failed_reload_of_an_unloaded_model_shows_the_reason_and_keeps_the_message(
    stage: Stage, has_begun: bool
) -> None:
    stage.chat("One", "Two")
    engine, path = stage.engine, stage.engine.facts.path
    engine.on_event(ModelUnloaded(loads_again=True))
    engine.hold_start = True
    stage.send("Three")
    if has_begun:
        engine.on_event(ModelLoading(path, LoadStage.LOADING, 0.1, 1, 10))
    engine.lose_model(OutOfMemoryError("8.1 GB were needed.").problem)
    engine.fail(NoModelError("The request came before a model was ready.").problem)
    stage.settle()

    assert "8.1 GB were needed." in stage.pane.notice.text
    assert stage.pane.notice.button.text() == LOAD_AGAIN
    assert stage.edit.toPlainText() == "Three"
    engine.hold_start = False
    QTest.mouseClick(stage.pane.notice.button, Qt.MouseButton.LeftButton)
    stage.settle()
    QTest.keyClick(stage.edit, Qt.Key.Key_Return)
    stage.settle()
    stage.answer("Four")
    assert stage.texts == ["One", "Two", "Three", "Four"]


def test_demo_model_has_a_note_and_its_button_opens_the_models_window(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(BROKEN,), starter=DEMO))
    assert loads(stage) == [str(DEMO.path)]
    note = stage.pane.empty.model_note
    stage.wait_until(lambda: note.sentence.text() == f"{DEMO_NOTE}.")
    QTest.mouseClick(note.button, Qt.MouseButton.LeftButton)
    window = stage.window.findChild(ModelsWindow)
    assert window is not None
    assert window.isVisible()
    assert [row.title.text() for row in window.recommended.rows] == [
        "Qwen3.5 9B 4-bit",
        "Qwen3.5 4B 4-bit",
    ]


def test_picker_opens_the_models_window(stage: Stage) -> None:
    stage.run(CommandId.CHOOSE_MODEL)
    QTest.mouseClick(stage.window.picker.get_models, Qt.MouseButton.LeftButton)
    assert not stage.window.picker.isVisible()
    window = stage.window.findChild(ModelsWindow)
    assert window is not None
    assert window.isVisible()


def test_sending_without_a_model_opens_the_picker(make_stage: MakeStage) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=()))
    assert "no model" in stage.pane.empty.model_note.sentence.text()
    stage.send("Anybody?")
    assert stage.edit.toPlainText() == "Anybody?"
    assert stage.window.picker.isVisible()
    stage.window.picker.hide()


def test_model_added_later_is_found_and_loaded(make_stage: MakeStage) -> None:
    catalog = FakeCatalog(cards=())
    stage = make_stage(catalog=catalog)
    catalog.cards = (card(),)
    stage.rig.models.refresh()
    stage.wait_until(lambda: stage.rig.models.status.phase is ModelPhase.READY)
    assert loads(stage) == ["/models/Tiny-9B-4bit"]


def test_model_of_the_command_line_is_searched_with_the_folders(
    tmp_path: Path, qtbot: QtBot
) -> None:
    rig = Rig(tmp_path, model=OTHER.path, settings=Settings(model_folders=("/added",)))
    try:
        rig.start()
        qtbot.waitUntil(lambda: rig.catalog.folders == ("/added", str(OTHER.path)))
    finally:
        rig.close()
    assert rig.core.preferences.value.model_folders == ("/added",)


def test_added_model_folder_is_remembered_and_searched(stage: Stage, tmp_path: Path) -> None:
    search, toast = stage.core.folder_search, stage.window.toast
    search.add(tmp_path / "empty")
    stage.wait_until(lambda: toast.text == "No models found in “empty”.")
    stage.rig.models.remove_folder(str(tmp_path / "empty"))
    search.add(card().path.parent)
    stage.wait_until(lambda: toast.text == "1 model found in “models”.")
    stage.wait_until(lambda: stage.rig.catalog.folders == ("/models",))
    assert stage.rig.core.preferences.value.model_folders == ("/models",)
    assert loads(stage) == ["/models/Tiny-9B-4bit"]


def test_added_folder_with_models_that_cannot_be_loaded_says_how_many(stage: Stage) -> None:
    search, toast, catalog = stage.core.folder_search, stage.window.toast, stage.rig.catalog
    broken = card("Broken", problem=ModelFolderError("config.json is empty.").problem)
    for cards, said in (
        ((broken,), "The model in “models” can’t be loaded. config.json is empty."),
        ((broken, card()), "2 models found in “models”. 1 of them can’t be loaded."),
        (
            (broken, replace(broken, path=broken.path.with_name("Other"))),
            "2 models found in “models”. None of them can be loaded.",
        ),
    ):
        catalog.cards = cards
        search.add(broken.path.parent)
        stage.wait_until(lambda said=said: toast.text == said)


@pytest.mark.slow
def test_caption_after_model_change_has_the_tokens_to_read(make_stage: MakeStage) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(card(), OTHER)))
    stage.chat("Hello there, model", "Hi. " * 100)
    assert "Nothing leaves it" in stage.composer.caption
    stage.rig.models.choose(OTHER.path)
    stage.wait_until(lambda: "will read" in stage.composer.caption)
    assert stage.composer.caption == (
        "Other 4B will read this chat with your next message: about 110 tokens."
    )
    assert len(stage.texts) == 2
    stage.engine.work_idly(10, 110, shown=stage.current)
    stage.settle()
    assert "about 100 tokens" in stage.composer.caption, "this is left to read"
    stage.engine.work_idly(60, 110, shown=stage.current)
    stage.settle()
    assert "will read" not in stage.composer.caption, "little is left to read"
    stage.engine.num_cached = 110
    stage.engine.stop_idle_work()
    stage.wait_until(lambda: len(stage.engine.counts) == 2)
    stage.settle()
    assert "Nothing leaves it" in stage.composer.caption, "the chat has been read ahead"
    stage.chat("Again", "Yes")
    assert "Nothing leaves it" in stage.composer.caption


@pytest.mark.parametrize("size", [(640, 480), (1180, 780)], ids=str)
def test_picker_stays_inside_the_window_and_its_list_scrolls(
    make_stage: MakeStage, size: tuple[int, int]
) -> None:
    cards = tuple(card(f"Model-{number}") for number in range(12))
    stage = make_stage(catalog=FakeCatalog(cards=cards))
    stage.window.resize(*size)
    stage.settle()
    stage.run(CommandId.CHOOSE_MODEL)
    picker, window = stage.window.picker, stage.window
    inside = QRect(window.mapToGlobal(QPoint(0, 0)), window.size())
    assert inside.contains(picker.geometry())
    assert picker.height() <= Size.PICKER_HEIGHT
    assert picker.list.verticalScrollBar().maximum() > 0
    assert picker.rect().contains(picker.add_folder.geometry())
    picker.hide()


def test_picker_shows_a_line_while_something_is_downloaded(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads: list[Download] = []
    monkeypatch.setattr(type(stage.core.hub), "downloads", property(lambda _: tuple(downloads)))
    stage.run(CommandId.CHOOSE_MODEL)
    picker = stage.window.picker
    assert not picker.fetching.isVisible()
    downloads.append(
        Download(
            repo_id="owner/Other-4bit",
            state=DownloadState.RUNNING,
            done_bytes=1,
            total_bytes=4,
        )
    )
    stage.core.hub.downloads_changed.emit()
    assert picker.fetching.text() == "Downloading Other 4-bit · 25%"
    assert picker.fetching.isVisible()
    assert picker.rect().contains(picker.fetching.geometry())
    downloads.clear()
    stage.core.hub.downloads_changed.emit()
    assert not picker.fetching.isVisible()
    picker.hide()


def test_picker_tells_what_another_model_reads_of_the_chat(make_stage: MakeStage) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(DEMO, card())))
    stage.run(CommandId.CHOOSE_MODEL)
    assert stage.window.picker.cost.isHidden(), "there is no chat to read"
    stage.window.picker.close()
    stage.chat("Hello", "word " * 3_500)
    stage.wait_until(lambda: stage.core.prompt_sizes.num_tokens is not None)
    stage.run(CommandId.CHOOSE_MODEL)
    cost = stage.window.picker.cost
    assert cost.isVisible()
    sentence = "A model that has not read this chat first reads about 4,400 tokens."
    assert cost.text() == sentence
    stage.window.picker.close()


def test_bar_of_a_loading_model_is_as_long_as_the_words_above_it(make_stage: MakeStage) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(card(), OTHER)))
    stage.engine.hold_load = True
    stage.core.models.choose(OTHER.path)
    stage.engine.load_progress(0.62)
    stage.settle()
    stage.run(CommandId.CHOOSE_MODEL)
    picker = stage.window.picker
    picture = pixels_of(picker.list.viewport().grab().toImage())
    track = QColor(LIGHT.track).rgb()
    y = int((picture == track).any(axis=1).argmax()) + 1  # in the middle of the bar
    filled = picture[y] == QColor(LIGHT.secondary).rgb()
    length = int((filled | (picture[y] == track)).sum())
    words = QFontMetrics(stage.theme.zoomed_font(Type.SMALL)).horizontalAdvance("Loading 62%")
    assert abs(length - words) <= 3
