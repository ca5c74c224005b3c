"""Scenes of the list of chats: folders and pins, several selected chats, the archive, the sheet.

Each scene gets a function that fills the window with chats.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.conversation.folder import Folder, FolderColor
from app.conversation.placement import FolderId
from app.viewmodels.search_filters import Filters, Period
from app.widgets.commands import CommandId
from tests.fakes.stage import Stage

SHORT_MS = 60
FOLDERS = (("Engine", FolderColor.BLUE), ("Garden", FolderColor.GREEN), ("Taxes", FolderColor.RED))

DAY = 24 * 3600.0
OLD_CHATS = (
    ("Eviction by tokens per byte", 4),
    ("Tomatoes that split", 3),
    ("Snapshots at message boundaries", 6),
    ("Names for a cat", 20),
)

Fill = Callable[[Stage], object]


def folders(fill: Fill, stage: Stage) -> None:
    """Show pins, folders (one of them closed) and sections by date."""
    origin = stage.rig.origin
    now = origin.time_s
    for title, days in OLD_CHATS:
        origin.time_s = now - days * DAY
        stage.chat(title, "Of course.")
        stage.run(CommandId.NEW_CHAT)
    origin.time_s = now
    fill(stage)
    core = stage.core
    made = [
        core.folders.create(Folder(folder_id=FolderId(""), name=name, color=color))
        for name, color in FOLDERS
    ]
    by_title = {one.title: one.conversation_id for one in core.library.listed.unarchived}
    core.organiser.pin([by_title["Trip to Lisbon"]], pinned=True)
    core.organiser.move([by_title[OLD_CHATS[0][0]], by_title[OLD_CHATS[2][0]]], made[0].folder_id)
    core.organiser.move([by_title[OLD_CHATS[1][0]]], made[1].folder_id)
    core.organiser.toggle_folder(made[1].folder_id)
    core.organiser.archive([by_title["Names for a cat"]], archived=True)
    stage.settle()
    stage.window.sidebar.toast.hide()
    stage.wait(SHORT_MS)


def several_selected(fill: Fill, stage: Stage) -> None:
    folders(fill, stage)
    rect = stage.list.visualRect(stage.list.model().index(1, 0))
    at = rect.topLeft() + QPoint(20, rect.height() // 2)
    control = Qt.KeyboardModifier.ControlModifier
    QTest.mouseClick(stage.list.viewport(), Qt.MouseButton.LeftButton, control, at)
    stage.run(CommandId.DUPLICATE)
    stage.wait(SHORT_MS)


def several_menu(fill: Fill, stage: Stage) -> None:
    folders(fill, stage)
    stage.list.selectAll()
    rect = stage.list.visualRect(stage.list.currentIndex())
    at = QPoint(rect.right() - 24, rect.center().y())
    QTest.mouseClick(stage.list.viewport(), Qt.MouseButton.LeftButton, pos=at)
    stage.wait(SHORT_MS)


def archived(fill: Fill, stage: Stage) -> None:
    folders(fill, stage)
    stage.run(CommandId.ARCHIVED)
    stage.wait(SHORT_MS)


def switcher(fill: Fill, stage: Stage) -> None:
    folders(fill, stage)
    stage.run(CommandId.SWITCHER)
    QTest.keyClicks(stage.window.switching.popup.field, "de")
    QTest.keyClick(stage.window.switching.popup.field, Qt.Key.Key_Down)
    stage.wait(SHORT_MS)


def filtered(fill: Fill, stage: Stage) -> None:
    folders(fill, stage)
    stage.run(CommandId.SEARCH)
    QTest.keyClicks(stage.window.sidebar.search.edit, "course")
    engine = next(one for one in stage.core.folders.folders if one.name == "Engine")
    stage.core.search.set_filters(Filters(period=Period.WEEK, folder_id=engine.folder_id))
    stage.settle()
    stage.settle()
    stage.wait(SHORT_MS)


def folder_sheet(fill: Fill, stage: Stage) -> None:
    folders(fill, stage)
    folder = next(one for one in stage.core.folders.folders if one.name == "Engine")
    stage.window.sidebar.ask_for_folder(folder, [])
    stage.wait(SHORT_MS)
