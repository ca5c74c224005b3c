"""Switching the engine's idle work on and off, and a note while it runs. Main thread.

The note appears and disappears with a delay, so that short work does not make it flicker.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.engine_bridge import EngineBridge, IdleEvent
from app.controllers.preferences import Preferences
from app.viewmodels.idle_note import idle_note
from engine.events import IdleWorking

# Delay before the note appears or disappears. Work or pauses shorter than this do not change the
# note.
HOLD_MS = 500


class IdleController(QObject):
    """The switch for the engine's idle work, and a note about running idle work.

    The controller sends the user's setting to the engine. The note is empty while no idle work
    runs.
    """

    note_changed = Signal()

    def __init__(self, bridge: EngineBridge, preferences: Preferences) -> None:
        super().__init__()
        self._engine = bridge.engine
        self._preferences = preferences
        # value of the read-ahead setting that was last sent to the engine; None if none was sent
        # yet
        # newest event of the running idle work; None if no idle work runs
        self._working: IdleWorking | None = None
        self.note = ""
        self.hold = QTimer(self, singleShot=True, interval=HOLD_MS)
        self.hold.timeout.connect(self._refresh)
        bridge.idle_changed.connect(self._on_idle_changed)
        preferences.changed.connect(self._send_switch)
        self._send_switch()

    def stop(self) -> None:
        self.hold.stop()

    def _send_switch(self) -> None:
        self._engine.set_idle_work(enabled=self._preferences.value.read_ahead)

    def _on_idle_changed(self, event: IdleEvent) -> None:
        self._working = event if isinstance(event, IdleWorking) else None
        if bool(self.note) == (self._working is not None):
            self.hold.stop()
            self._refresh()
        elif not self.hold.isActive():
            self.hold.start()

    def _refresh(self) -> None:
        note = "" if self._working is None else idle_note(self._working)
        if note != self.note:
            self.note = note
            self.note_changed.emit()
