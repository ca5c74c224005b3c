"""The checks of the model folders for changes by other programs. Main thread.

The folders are checked when the app becomes active: until then, another program was in use.
Downloads of other programs end at any time, and disks are connected at any time. So the folders are
also checked every WATCH_MS, but only while a change would be seen: a list of models is in view, or
the main window is in view and has no model. Watching the folders by events of the system would take
an entry for each folder in the trees of all models, and disks that are not connected have none.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.controllers.models import ModelsController
from app.viewmodels.models import ModelPhase

WATCH_MS = 5000
_HAS_NO_MODEL: Final = frozenset({ModelPhase.NONE, ModelPhase.FAILED, ModelPhase.GONE})


class FolderWatch(QObject):
    """Starts a check of the model folders whenever its result may be seen."""

    def __init__(self, models: ModelsController, window: QWidget) -> None:
        super().__init__(window)
        self._models = models
        self._window = window
        # The main window and the lists that are in view. Events fill it: a widget cannot be called
        # while the window is being destroyed.
        self._in_view = set[QObject]()
        self._timer = QTimer(self, interval=WATCH_MS)
        self._timer.timeout.connect(models.refresh)
        models.status_changed.connect(self._update)
        window.installEventFilter(self)
        app = QGuiApplication.instance()
        assert isinstance(app, QGuiApplication)
        app.applicationStateChanged.connect(self._on_state_changed)

    @property
    def is_active(self) -> bool:
        """True while the folders are checked at intervals."""
        return self._timer.isActive()

    def add_list(self, widget: QWidget) -> None:
        """Add a widget that lists models."""
        widget.installEventFilter(self)

    def _on_state_changed(self, state: Qt.ApplicationState) -> None:
        is_started = self._models.status.phase is not ModelPhase.SEARCHING
        if state == Qt.ApplicationState.ApplicationActive and is_started:
            self._models.refresh()

    def _update(self) -> None:
        has_list = bool(self._in_view - {self._window})
        waits = self._models.status.phase in _HAS_NO_MODEL and self._window in self._in_view
        if not (has_list or waits):
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        match event.type():
            case QEvent.Type.Show:
                self._in_view.add(watched)
                self._update()
            case QEvent.Type.Hide:
                self._in_view.discard(watched)
                self._update()
            case QEvent.Type.WindowStateChange if isinstance(watched, QWidget):
                if watched.isMinimized() or not watched.isVisible():
                    self._in_view.discard(watched)
                else:
                    self._in_view.add(watched)
                self._update()
            case _:
                pass
        return False
