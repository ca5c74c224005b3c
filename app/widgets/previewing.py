"""The connection between the previews of answers and the editor of a message. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.controllers.core import Core
from app.widgets.transcript.editor.host import EditorHost


class Previewing(QObject):
    """Shows the preview in the editor, and the switch as the setting has it."""

    def __init__(self, core: Core, host: EditorHost) -> None:
        super().__init__(host)
        self._core = core
        self._host = host
        host.preview_toggled.connect(core.preferences.toggle_previews)
        core.previews.changed.connect(self._refresh)
        core.preferences.changed.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        self._host.set_preview(self._core.previews.shown, is_on=self._core.previews.is_on)
