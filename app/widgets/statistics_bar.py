"""The bar at the bottom of the window that shows engine statistics with --debug. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from app.controllers.statistics import EngineStatistics
from app.theme.tokens import Space


class StatisticsBar(QLabel):
    """A line of small text that can be selected and copied. A long line wraps."""

    def __init__(self, statistics: EngineStatistics, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("statisticsBar")
        self.setProperty("type", "small")
        self.setProperty("tone", "secondary")
        self.setContentsMargins(Space.M, Space.XS, Space.M, Space.XS)
        self.setWordWrap(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        statistics.line_changed.connect(self.setText)
