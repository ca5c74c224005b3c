"""Export of chats from the menus: the dialog, the kinds of files, and the sentence afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from app.widgets.commands import CommandId
from tests.app.controllers.test_exports import hold_second_load
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)


def dialog_of(stage: Stage, command: CommandId) -> QFileDialog:
    stage.run(command)
    return stage.window.findChildren(QFileDialog)[-1]


def test_chat_is_exported_as_markdown(stage: Stage, tmp_path: Path) -> None:
    assert not stage.window.commands[CommandId.EXPORT].isEnabled()
    stage.chat("Why: a/b?", "Because **b**.")
    dialog = dialog_of(stage, CommandId.EXPORT)
    (suggested,) = dialog.selectedFiles()
    assert Path(suggested).name == "Why a b.md"
    dialog.fileSelected.emit(str(tmp_path / "chat.md"))
    stage.wait_until(lambda: stage.window.toast.text == "Exported to “chat.md”.")
    text = (tmp_path / "chat.md").read_text(encoding="utf-8")
    assert "## You\n\nWhy: a/b?" in text
    assert "Because **b**." in text


def test_all_chats_are_exported_as_json(stage: Stage, tmp_path: Path) -> None:
    for text in ("One", "Two"):
        stage.run(CommandId.NEW_CHAT)
        stage.chat(text, "Noted.")
    dialog = dialog_of(stage, CommandId.EXPORT_ALL)
    assert dialog.defaultSuffix() == "json"
    dialog.fileSelected.emit(str(tmp_path / "all.json"))
    stage.wait_until(lambda: stage.window.toast.text == "Exported 2 chats to “all.json”.")


def test_toast_shows_the_progress_of_an_export_and_cancels_it(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.controllers.exports._QUIET_S", 0.0)
    is_cancelled = hold_second_load(monkeypatch)
    for text in ("One", "Two", "Three"):
        stage.run(CommandId.NEW_CHAT)
        stage.chat(text, "Noted.")
    toast, texts = stage.window.toast, list[str]()

    def cancel(share: float) -> None:
        texts.append(toast.text)
        if share > 0:
            toast.button.click()
            is_cancelled.set()

    stage.core.exports.progressed.connect(cancel)
    dialog_of(stage, CommandId.EXPORT_ALL).fileSelected.emit(str(tmp_path / "all.json"))

    stage.wait_until(lambda: bool(texts) and not toast.isVisible())
    assert texts == ["Exporting chats… 0%", "Exporting chats… 33%"]
    assert not (tmp_path / "all.json").exists()


def test_kind_in_the_dialog_gives_the_ending(stage: Stage) -> None:
    stage.chat("One", "1")
    dialog = dialog_of(stage, CommandId.EXPORT)
    assert dialog.defaultSuffix() == "md"
    dialog.filterSelected.emit("Web page (*.html)")
    assert dialog.defaultSuffix() == "html"


def test_file_with_another_ending_is_refused_with_a_sentence(stage: Stage, tmp_path: Path) -> None:
    stage.chat("One", "1")
    dialog_of(stage, CommandId.EXPORT).fileSelected.emit(str(tmp_path / "chat.docx"))
    words = "The file name must end in .md, .json, .html or .txt."
    stage.wait_until(lambda: stage.window.toast.text == words)
    assert not list(tmp_path.glob("chat*"))


def test_chat_is_copied_as_markdown(stage: Stage) -> None:
    stage.chat("One", "It is *1*.")
    stage.run(CommandId.COPY_CHAT)
    assert QGuiApplication.clipboard().text().startswith("# One\n\n## You\n\nOne\n\n")
    assert "It is *1*." in QGuiApplication.clipboard().text()


def test_chat_is_copied_and_exported_with_the_text_of_a_running_answer(
    stage: Stage, tmp_path: Path
) -> None:
    stage.send("One")
    stage.engine.write("It is *1*")
    stage.settle()
    stage.run(CommandId.COPY_CHAT)
    assert "It is *1*" in QGuiApplication.clipboard().text()
    dialog_of(stage, CommandId.EXPORT).fileSelected.emit(str(tmp_path / "chat.md"))
    stage.wait_until(lambda: stage.window.toast.text == "Exported to “chat.md”.")
    assert "It is *1*" in (tmp_path / "chat.md").read_text(encoding="utf-8")
    assert stage.engine.running is not None


def test_chat_is_exported_with_the_texts_of_several_running_answers(
    stage: Stage, tmp_path: Path
) -> None:
    assert stage.rig.chat.send(stage.current, "One", answers=2)
    for number, text in ((1, "It is 1"), (2, "It is 2")):
        stage.engine.turn_to(number)
        stage.engine.write(text)
    stage.settle()
    dialog_of(stage, CommandId.EXPORT).fileSelected.emit(str(tmp_path / "chat.json"))
    stage.wait_until(lambda: stage.window.toast.text == "Exported to “chat.json”.")
    exported = (tmp_path / "chat.json").read_text(encoding="utf-8")
    assert "It is 1" in exported
    assert "It is 2" in exported


def test_chat_is_saved_as_pdf(stage: Stage, tmp_path: Path) -> None:
    stage.chat("Why: a/b?", "Because **b**.")
    dialog = dialog_of(stage, CommandId.SAVE_PDF)
    (suggested,) = dialog.selectedFiles()
    assert Path(suggested).name == "Why a b.pdf"
    dialog.fileSelected.emit(str(tmp_path / "chat.pdf"))
    stage.wait_until(lambda: stage.window.toast.text == "Saved as “chat.pdf”.")
    assert (tmp_path / "chat.pdf").read_bytes().startswith(b"%PDF")


def test_pdf_that_cannot_be_written_is_reported(stage: Stage, tmp_path: Path) -> None:
    stage.chat("One", "1")
    dialog_of(stage, CommandId.SAVE_PDF).fileSelected.emit(str(tmp_path / "none" / "chat.pdf"))
    assert "The disk could not be written." in stage.window.toast.text


def test_progress_of_a_long_pdf_can_be_cancelled(stage: Stage, tmp_path: Path) -> None:
    stage.chat("One", "1")
    dialog_of(stage, CommandId.SAVE_PDF).fileSelected.emit(str(tmp_path / "chat.pdf"))
    toast, printing = stage.window.toast, stage.window.printing
    printing.progressed.emit(40)
    assert toast.text == "Making pages… 40%"
    toast.button.click()
    assert printing.is_idle
    assert not toast.isVisible()
    assert not list(tmp_path.glob("chat*"))
