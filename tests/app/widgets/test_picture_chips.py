"""Pictures in the composer: pasted, dropped, chosen; thumbnails, prices, sizes. On the real window."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.conversation.attachments import AttachedPicture
from app.settings import PictureSize
from app.store import pictures as stored
from app.viewmodels.attachments import Chip
from app.widgets.commands import CommandId
from app.widgets.menu import Menu
from app.widgets.picture_window import PictureWindow
from app.widgets.settings_chat import ChatPage
from app.widgets.transcript.editor.file_chips import FileChip
from app.words import attachments as words
from engine.events import IdleKind, IdleStopped, IdleWorking
from engine.problem import Problem
from engine.questions import CountPictures
from tests.fakes.fake_engine import FACTS
from tests.fakes.stage import Stage
from tests.fakes.stored_pictures import png, scene

Key = Qt.Key


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "data", sees=True)
    yield stage
    stage.close()
    # Data that a test leaves in the clipboard crash Qt at the end of the process.
    QGuiApplication.clipboard().clear()


@cache
def content(width: int, height: int) -> bytes:
    return png(scene(width, height))


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "hills.png"
    path.write_bytes(content(320, 200))
    return path


@pytest.fixture
def large_photo(tmp_path: Path) -> Path:
    """Return a photo that is larger than medium size."""
    path = tmp_path / "hills.png"
    path.write_bytes(content(1400, 1000))
    return path


def drop(stage: Stage, *paths: Path) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    drop_data(stage, mime)


def drop_data(stage: Stage, mime: QMimeData) -> None:
    enter = QDragEnterEvent(
        stage.window.rect().center(),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(stage.window, enter)
    event = QDropEvent(
        QPointF(stage.window.rect().center()),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(stage.window, event)
    opened(stage)


def opened(stage: Stage) -> None:
    stage.wait_until(lambda: not stage.core.attachments.is_opening(stage.current))
    stage.settle()


def chips(stage: Stage) -> list[FileChip]:
    return stage.composer.files.chips


def chip(stage: Stage) -> Chip:
    return chips(stage)[0].chip


def pictures(stage: Stage) -> list[AttachedPicture]:
    files = stage.core.desk.get(stage.current).draft_attachments
    return [file.picture for file in files if file.picture is not None]


def test_dropped_picture_is_a_chip_with_its_price_and_is_sent(
    stage: Stage, large_photo: Path
) -> None:
    drop(stage, large_photo)
    assert chip(stage).picture is not None
    assert chip(stage).details == "1,198 tokens"
    assert chips(stage)[0].accessibleName() == "Picture hills.png, 1,198 tokens"
    stage.send("What is this?")
    (picture,) = stage.engine.submitted[-1].messages[-1].pictures
    assert stage.core.pictures.view(picture).exists()
    assert picture.width * picture.height <= 1200 * 1024
    assert not chips(stage)


def test_picture_without_words_can_be_sent(stage: Stage, photo: Path) -> None:
    drop(stage, photo)
    assert stage.composer.button.isEnabled()
    QTest.mouseClick(stage.composer.button, Qt.MouseButton.LeftButton)
    stage.settle()
    assert stage.engine.submitted[-1].messages[-1].pictures


def test_pasted_image_is_attached_and_no_copy_stays(stage: Stage) -> None:
    QGuiApplication.clipboard().setImage(scene(320, 200))
    stage.run(CommandId.PASTE)
    opened(stage)
    assert chip(stage).name == words.PASTED
    (picture,) = pictures(stage)
    assert (picture.width, picture.height) == (320, 200)
    assert stage.core.desk.get(stage.current).draft_attachments[0].source == ""


def test_pasted_image_file_is_taken_as_it_is(stage: Stage) -> None:
    mime = QMimeData()
    mime.setData("image/png", png(scene(64, 48)))
    mime.setImageData(scene(32, 32))
    stage.edit.insertFromMimeData(mime)
    opened(stage)
    assert [(one.width, one.height) for one in pictures(stage)] == [(64, 48)]


def test_pasted_damaged_image_is_refused_with_a_sentence(stage: Stage) -> None:
    mime = QMimeData()
    mime.setData("image/png", png(scene(64, 48))[:60])
    said: list[str] = []
    stage.core.attachments.refused.connect(partial(note_said, said))
    stage.core.attachments.attach_image(stage.current, lambda: bytes(mime.data("image/png").data()))
    opened(stage)
    assert not chips(stage)
    assert len(said) == 1


def test_pasted_text_with_an_image_stays_text(stage: Stage) -> None:
    mime = QMimeData()
    mime.setText("three cells")
    mime.setImageData(scene(64, 48))
    stage.edit.insertFromMimeData(mime)
    assert stage.composer.text == "three cells"
    assert not chips(stage)


def note_said(said: list[str], _chat: object, sentences: str | tuple[str, ...]) -> None:
    said.extend([sentences] if isinstance(sentences, str) else sentences)


def sizes_menu(stage: Stage) -> Menu:
    QTest.mouseClick(chips(stage)[0].size_button, Qt.MouseButton.LeftButton)
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, Menu)
    return menu


@pytest.mark.qt_log_ignore("does not support", extend=True)
def test_menu_has_the_price_of_each_size_and_changes_it(stage: Stage, large_photo: Path) -> None:
    drop(stage, large_photo)
    menu = sizes_menu(stage)
    texts = [action.text() for action in menu.actions()]
    assert texts == ["Small · 299 tokens", "Medium · 1,198 tokens", "Full · 1,367 tokens"]
    assert [action.isChecked() for action in menu.actions()] == [False, True, False]
    menu.actions()[2].trigger()
    menu.close()
    stage.wait_until(lambda: pictures(stage)[0].size is PictureSize.FULL)
    stage.settle()
    (picture,) = pictures(stage)
    assert (picture.view.width, picture.view.height) == (1400, 1000)
    assert stage.core.pictures.view(picture.view).exists()
    assert chip(stage).details == "1,367 tokens"
    stage.run(CommandId.UNDO)
    assert pictures(stage)[0].size is PictureSize.MEDIUM


def test_small_picture_has_one_price_and_no_choice(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "icon.png"
    path.write_bytes(png(scene(64, 64)))
    drop(stage, path)
    assert chip(stage).details == "4 tokens"
    assert chips(stage)[0].size_button.isHidden()


def test_price_has_the_time_once_a_rate_is_measured(stage: Stage, large_photo: Path) -> None:
    drop(stage, large_photo)
    rate = stage.core.reading_rate
    rate._pace.note(0, 1000, 4.0, 0.0)  # pyright: ignore[reportPrivateUsage]
    rate.changed.emit()
    assert chip(stage).details.startswith("1,198 tokens · ")
    assert chip(stage).details.endswith(" s")


def test_price_has_no_time_that_nobody_notices(stage: Stage, large_photo: Path) -> None:
    drop(stage, large_photo)
    rate = stage.core.reading_rate
    rate._pace.note(0, 10_000, 1.0, 0.0)  # pyright: ignore[reportPrivateUsage]
    rate.changed.emit()
    assert chip(stage).details == "1,198 tokens"


def test_picture_of_a_message_that_is_instant_has_no_time_left(
    stage: Stage, large_photo: Path
) -> None:
    drop(stage, large_photo)
    rate = stage.core.reading_rate
    rate._pace.note(0, 1000, 4.0, 0.0)  # pyright: ignore[reportPrivateUsage]
    stage.engine.num_cached = 10_000
    stage.type("What is it?")
    stage.pane.draft.flush()
    stage.wait_until(lambda: stage.composer.caption == "Instant")
    assert chip(stage).details == "1,198 tokens"
    small = next(one for one in chip(stage).sizes if one.size is PictureSize.SMALL)
    assert small.label.endswith(" s")


def test_unanswered_count_leaves_the_size_in_pixels(stage: Stage, photo: Path) -> None:
    stage.engine.facts = replace(FACTS, sees=False)
    stage.core.models.load_again()
    stage.settle()
    drop(stage, photo)
    assert chip(stage).details == "320 \N{MULTIPLICATION SIGN} 200"
    assert not [one for one in stage.engine.questions if isinstance(one, CountPictures)]


def test_picture_that_the_model_refuses_leaves_the_price_of_another_one(
    stage: Stage, photo: Path, tmp_path: Path
) -> None:
    strip = tmp_path / "strip.png"
    strip.write_bytes(png(scene(2400, 10)))
    drop(stage, strip, photo)
    stage.core.models.load_again()  # both are counted again
    stage.wait_until(lambda: chips(stage)[1].chip.details == "62 tokens")
    assert chips(stage)[0].chip.details == "2,400 \N{MULTIPLICATION SIGN} 10"


def test_gone_original_keeps_the_size_and_says_so(stage: Stage, large_photo: Path) -> None:
    drop(stage, large_photo)
    stage.core.pictures.original(pictures(stage)[0]).unlink()
    said: list[str] = []
    stage.core.attachments.said.connect(partial(note_said, said))
    stage.core.attachments.resize(stage.current, 0, PictureSize.SMALL)
    stage.wait_until(lambda: bool(said))
    assert said == [f"{words.NOT_RESIZED} {words.ORIGINAL_MISSING}"]
    assert pictures(stage)[0].size is PictureSize.MEDIUM


def test_full_disk_keeps_the_size_and_says_why(
    stage: Stage, large_photo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop(stage, large_photo)
    said: list[str] = []
    stage.core.attachments.said.connect(partial(note_said, said))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(stored, "write_whole", full)
    stage.core.attachments.resize(stage.current, 0, PictureSize.SMALL)
    stage.wait_until(lambda: bool(said))
    assert said == [f"{words.NOT_RESIZED} No space left on device"]
    assert pictures(stage)[0].size is PictureSize.MEDIUM


def test_keys_move_open_and_remove_a_chip(stage: Stage, photo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.png"
    other.write_bytes(png(scene(300, 300, 200)))
    drop(stage, photo, other)
    chips(stage)[1].setFocus()
    QTest.keyClick(chips(stage)[1], Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert [one.chip.name for one in chips(stage)] == ["other.png", "hills.png"]
    QTest.keyClick(chips(stage)[0], Key.Key_Return)
    tops = QApplication.topLevelWidgets()
    (window,) = [one for one in tops if isinstance(one, PictureWindow) and one.isVisible()]
    assert window.windowTitle() == "other.png"
    window.close()
    QTest.keyClick(chips(stage)[0], Key.Key_Delete)
    assert [one.chip.name for one in chips(stage)] == ["hills.png"]
    stage.run(CommandId.UNDO)
    assert len(chips(stage)) == 2


def test_files_beside_a_picture_keep_their_own_sizes(
    stage: Stage, photo: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("The meeting is on Monday.", encoding="utf-8")
    drop(stage, photo, notes)
    assert chips(stage)[1].chip.details == "12 tokens"


def test_thumbnail_is_painted_in_the_chip(stage: Stage, photo: Path) -> None:
    drop(stage, photo)
    stage.wait_until(lambda: stage.pane.view.shelves.pictures.is_idle)
    image = chips(stage)[0].grab().toImage()
    before = image.pixelColor(QPoint(22, 8))
    assert before.hue() in range(190, 230)  # the sky


def test_new_pictures_have_the_size_of_the_settings(
    qapp: QApplication, tmp_path: Path, large_photo: Path
) -> None:
    stage = Stage(tmp_path / "data", sees=True)
    page = ChatPage(
        stage.theme, stage.core.preferences, stage.core.presets, stage.core.models, stage.window
    )
    page.picture_size.buttons[PictureSize.SMALL].click()
    drop(stage, large_photo)
    assert pictures(stage)[0].size is PictureSize.SMALL
    stage.close()


def test_problem_in_place_of_a_count_changes_nothing(stage: Stage, photo: Path) -> None:
    drop(stage, photo)
    problem = Problem(title="Not counted.", cause="", advice="")
    stage.engine.answer(CountPictures, problem)
    assert chip(stage).details == "62 tokens"


def test_window_shows_more_pixels_than_the_model_gets(stage: Stage, large_photo: Path) -> None:
    drop(stage, large_photo)
    assert pictures(stage)[0].view.width < 1400
    QTest.mouseClick(chips(stage)[0], Qt.MouseButton.LeftButton)
    tops = QApplication.topLevelWidgets()
    (window,) = [one for one in tops if isinstance(one, PictureWindow) and one.isVisible()]
    stage.wait_until(lambda: window.canvas.image_size.toTuple() == (1400, 1000))
    assert pictures(stage)[0].size is PictureSize.MEDIUM
    window.close()


def test_picture_dragged_from_a_web_page_is_attached(stage: Stage) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl("https://example.org/hills.png")])
    mime.setImageData(scene(64, 48))
    drop_data(stage, mime)
    assert [(one.width, one.height) for one in pictures(stage)] == [(64, 48)]


def test_reading_of_pictures_is_no_measurement_of_text(stage: Stage) -> None:
    rate = stage.core.reading_rate
    chat = stage.current
    for reads_pictures in (True, False):
        for done in (0, 1_000):
            stage.rig.origin.tick_s += 2.0
            event = IdleWorking(chat, IdleKind.DRAFT, done, 1_000, 0, reads_pictures)
            stage.engine.on_event(event)
            stage.settle()
        stage.engine.on_event(IdleStopped())
        stage.settle()
        assert (rate.time(0, 1_000) is None) == reads_pictures
