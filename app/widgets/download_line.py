"""The line above the model in the sidebar: the progress of downloads."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.controllers.hub import HubController
from app.viewmodels.download_offers import fetching_line
from app.widgets.quiet_line import QuietLine


class DownloadLine(QuietLine):
    """The line. Hidden while nothing is downloaded and no download has failed."""

    def __init__(self, hub: HubController, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("downloadLine")
        self._hub = hub
        hub.downloads_changed.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        downloads, now = self._hub.downloads, self._hub.now
        spoken = fetching_line(downloads, now)
        self.show_line(fetching_line(downloads, now, is_short=True), spoken)
        self.setAccessibleName(spoken)
