"""The line above the composer that asks which model continues the chat on show. Main thread."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.viewmodels.model_question import model_question
from app.widgets.button_row import Label
from app.widgets.choice_line import ChoiceLine


class ModelQuestionLine(ChoiceLine):
    """The question, with buttons to load the chat's model and to stay with the model in use."""

    def __init__(self, core: Core, parent: QWidget) -> None:
        super().__init__(parent, "", "")
        self._core = core
        self.first.clicked.connect(core.chat_models.use)
        self.second.clicked.connect(core.chat_models.stay)
        for changed in (
            core.library.current_changed,
            core.desk.changed,
            core.turns.activity_changed,
            core.models.status_changed,
            core.models.cards_changed,
            core.prompt_sizes.changed,
            core.chat_models.stayed,
        ):
            changed.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        core = self._core
        current, models = core.library.current, core.models
        if not core.chat_models.must_ask(current):
            self.show_text("")
            return
        to_read = core.prompt_sizes.to_read
        question = model_question(
            core.desk.get(current),
            models.status,
            models.cards,
            models.gone,
            None if to_read is None else to_read.num_tokens,
        )
        self.show_choices(
            question.sentence,
            Label(question.use, question.name),
            Label(question.stay, question.name_in_use),
        )
