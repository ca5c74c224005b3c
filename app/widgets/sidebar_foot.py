"""The rows below the list of conversations: archive, deleted chats, downloads. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.controllers.hub import HubController
from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.widgets.button import Button
from app.widgets.download_line import DownloadLine
from app.widgets.icon_button import MAX_ZOOM
from app.words import deleted, folders as words


class SidebarFoot(QWidget):
    """The rows, below a line that ends the list. Hidden while no row is on show."""

    def __init__(self, theme: Theme, hub: HubController, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("sidebarFoot")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._shows_archived = False  # True: the first row leads back to the other chats
        self.archived = Button(words.ARCHIVED, self)
        self.deleted = Button(deleted.TITLE, self)
        self.downloads = DownloadLine(hub, self)
        for button, name in ((self.archived, "archived"), (self.deleted, "recentlyDeleted")):
            button.setObjectName(name)
            button.setProperty("kind", "row")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.S, Space.S, Space.S, Space.XS)
        layout.setSpacing(0)
        for button in (self.archived, self.deleted, self.downloads):
            layout.addWidget(button)
        hub.downloads_changed.connect(self._fit)
        theme.changed.connect(self._tint)
        theme.zoomed.connect(self._tint)
        self._tint()

    def show_archive(self, num_chats: int, *, is_open: bool) -> None:
        """Show the row of the archive if it has chats. An open archive has the way back instead."""
        self._shows_archived = is_open
        self.archived.setText(words.BACK_TO_CHATS if is_open else words.archived(num_chats))
        self.archived.setVisible(num_chats > 0)
        self._tint()
        self._fit()

    def show_deleted(self, num_items: int) -> None:
        self.deleted.setVisible(num_items > 0)
        self._fit()

    def _fit(self) -> None:
        rows = (self.archived, self.deleted, self.downloads)
        self.setVisible(any(row.isVisibleTo(self) for row in rows))

    def _tint(self) -> None:
        theme, ink = self._theme, self._theme.colors.secondary
        side = theme.scaled(GRID, MAX_ZOOM)
        first = Icon.CHEVRON_LEFT if self._shows_archived else Icon.ARCHIVE
        for button, icon in ((self.archived, first), (self.deleted, Icon.TRASH)):
            # Beside an icon, the words in still larger text would be cut.
            has_room = theme.zoom <= MAX_ZOOM
            button.setIcon(theme.icons.icon(icon, ink, size=side) if has_room else QIcon())
            button.setIconSize(QSize(side, side))
