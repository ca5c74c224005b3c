"""Actions of the random user that export chats to files and import them again."""

from __future__ import annotations

from PySide6.QtTest import QSignalSpy
from PySide6.QtWidgets import QFileDialog

from app.controllers.imports import ImportResult
from app.widgets.commands import CommandId
from app.words import exchange as words
from tests.person.kinds.organising import MAX_CHATS
from tests.person.kinds.registry import kind
from tests.person.person import Person

_NUM_FILES = 5


@kind("export chats")
def export_chats(person: Person) -> bool:
    command = person.random.choice((CommandId.EXPORT, CommandId.EXPORT_ALL))
    if not person.try_to_run(command):
        return False
    name = f"chats-{person.random.randrange(_NUM_FILES)}{person.random.choice(list(words.KINDS))}"
    path = person.export_dir / name
    path.unlink(missing_ok=True)
    dialog = person.window.findChildren(QFileDialog)[-1]
    dialog.fileSelected.emit(str(path))
    dialog.close()
    person.wait_until(path.exists)
    person.settle()
    return True


@kind("save a chat as PDF, or cancel it")
def save_pdf(person: Person) -> bool:
    if not person.try_to_run(CommandId.SAVE_PDF):
        return False
    path = person.export_dir / "chat.pdf"
    path.unlink(missing_ok=True)
    dialog = person.window.findChildren(QFileDialog)[-1]
    dialog.fileSelected.emit(str(path))
    dialog.close()
    is_cancelled = person.random.random() < 0.3
    if is_cancelled:
        person.window.printing.cancel()
    person.wait_until(lambda: person.window.printing.is_idle)
    person.settle()
    assert path.exists() is not is_cancelled
    return True


@kind("import exported chats")
def import_chats(person: Person) -> bool:
    """Import a file of an earlier export. No chat may be lost, listed twice or unreadable."""
    paths = sorted(person.export_dir.glob("*.json"))
    before = person.listed
    if not paths or len(before) > MAX_CHATS or not person.try_to_run(CommandId.IMPORT):
        return False
    spy = QSignalSpy(person.core.imports.ended)
    dialog = person.window.findChildren(QFileDialog)[-1]
    dialog.filesSelected.emit([str(person.random.choice(paths))])
    dialog.close()
    person.wait_until(lambda: spy.count() == 1)
    person.settle()
    result = spy.at(0)[0]
    assert isinstance(result, ImportResult)
    assert not result.unreadable, result.unreadable
    assert set(before) <= set(person.listed)
    assert len(set(person.listed)) == len(person.listed)
    return True
