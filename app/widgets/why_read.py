"""Opens the window that explains why the prompt of an answer was read. Main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.conversation.tree import NodeId
from app.theme.palette import Theme
from app.widgets.transcript.binding import TranscriptBinding
from app.widgets.why_window import WhyWindow
from engine.types import ConversationId


class WhyRead(QObject):
    """The window, which is created when it is first asked for."""

    def __init__(
        self,
        theme: Theme,
        core: Core,
        transcript: TranscriptBinding,
        open_storage: Callable[[], object],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._theme = theme
        self._core = core
        self._open_storage = open_storage
        self._window = window
        self._why: WhyWindow | None = None
        transcript.why_requested.connect(self._open)

    def _open(self, conversation_id: ConversationId, answer: NodeId) -> None:
        if self._why is None:
            self._why = WhyWindow(self._theme, self._core, self._open_storage, self._window)
        self._why.open(conversation_id, answer)
