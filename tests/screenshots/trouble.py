"""Scenes of trouble with files and of questions: rescue, backup, files too long, deletion, quitting.

Each scene gets a function that fills the window with chats.
"""

from __future__ import annotations

from PySide6.QtTest import QTest

from app.conversation.attachments import make_attachment
from app.store.errors import BackupError, DatabaseDamagedError
from app.widgets.commands import CommandId
from app.widgets.deleted_sheet import DeletedSheet
from app.words import problems
from engine.problem import Problem
from tests.fakes.stage import Key, Stage
from tests.screenshots.organising import SHORT_MS, Fill

DATABASE = "/Users/me/Library/Application Support/Rejoinder/chats.db"


def rescued(fill: Fill, stage: Stage) -> None:
    """Show the notice at the first start after a damaged database was rescued."""
    fill(stage)
    cause = problems.rescued(
        problems.lost_messages(2),
        garbled=1,
        changed=0,
        nameless=1,
        backup="2026-11-20.db",
        kept="chats.damaged-1.db",
    )
    stage.core.store.rescued.emit(
        Problem(title=problems.STORE_RESCUED, cause=cause, advice="", details=f"{DATABASE}.kept")
    )
    stage.wait(SHORT_MS)


def no_backup(fill: Fill, stage: Stage) -> None:
    """Show the notice after a daily backup could not be written."""
    fill(stage)
    problem = BackupError(f"{DATABASE} can’t be used: Permission denied.").problem
    stage.core.backups.failed.emit(problem)
    stage.wait(SHORT_MS)


def damaged(fill: Fill, stage: Stage) -> None:
    """Show the notice after the daily backup has found damage."""
    fill(stage)
    stage.core.backups.failed.emit(DatabaseDamagedError("chats.db is damaged.").problem)
    stage.wait(SHORT_MS)


def no_store(fill: Fill, stage: Stage) -> None:
    """Show the notice while another program uses the database."""
    fill(stage)
    problem = Problem(
        title=problems.STORE_LOCKED, cause="", advice=problems.STORE_LOCKED_ADVICE, details=""
    )
    stage.core.store.unavailable.emit(problem)
    stage.wait(SHORT_MS)


def long_files(fill: Fill, stage: Stage) -> None:
    """Show the offer for several files that are too long together."""
    fill(stage)
    files = tuple(
        make_attachment(name, "pdf", "All words of the book. " * 4000, num_pages=300)
        for name in ("Encyclopedia, volume 1.pdf", "Encyclopedia, volume 2.pdf")
    )
    stage.core.draft_files.set(stage.current, files)
    stage.settle()
    stage.wait(SHORT_MS)


def deletion(fill: Fill, stage: Stage) -> None:
    """Show the question before deleted chats and folders are deleted for good."""
    fill(stage)
    sheet = stage.window.findChildren(DeletedSheet)[-1]
    sheet.list.selectAll()
    QTest.keyClick(sheet.list, Key.Key_Delete)
    stage.wait(SHORT_MS)


def quitting(fill: Fill, stage: Stage) -> None:
    """Show the question before the app quits while an answer is being written."""
    fill(stage)
    stage.run(CommandId.QUIT)
    stage.wait(SHORT_MS)
