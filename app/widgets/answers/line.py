"""The line above the composer while answers that are not on show are being written. Main thread."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.conversation.tree import shown_path
from app.widgets.answers.area import ReadingArea
from app.widgets.choice_line import ChoiceLine
from app.words import answers as words


class AnswersLine(ChoiceLine):
    """The number of running answers of the shown chat, with a button that shows them side by side.

    The line is hidden while they are side by side, while all of them are in the transcript, and
    while the message that they answer is not.
    """

    def __init__(self, core: Core, area: ReadingArea, parent: QWidget) -> None:
        super().__init__(parent)
        self._core = core
        self._area = area
        self.set_choices((words.SHOW_SHORT, self._show))
        area.changed.connect(self._refresh)
        core.library.current_changed.connect(self._refresh)
        core.desk.changed.connect(self._refresh)
        core.turns.activity_changed.connect(self._refresh)

    def _refresh(self) -> None:
        chat = self._core.library.current
        running = self._core.turns.unstopped_in(chat)
        count = len(running) if running and not self._area.is_open else 0
        if count:
            conversation = self._core.desk.get(chat)
            shown = {node.node_id for node in shown_path(conversation)}
            is_on_show = conversation.nodes[running[0]].parent in shown
            count = count if is_on_show and not shown.issuperset(running) else 0
        self.show_text(words.still_written(count) if count else "")

    def _show(self) -> None:
        running = self._core.turns.unstopped_in(self._core.library.current)
        if running:
            self._area.show_answers(running[0])
