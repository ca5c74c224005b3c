"""The line above the composer that asks which model continues the chat on show. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.viewmodels.model_question import model_question
from app.widgets.button_row import Label
from app.widgets.choice_line import ChoiceLine
from app.words import models as words
from engine.types import ConversationId


class ModelQuestionLine(ChoiceLine):
    """The question, with buttons to load the chat's model and to stay with the model in use.

    An action that needs an answer, such as Send, moves the focus to the buttons and does nothing
    else. After the choice a message is sent, and the user repeats any other action.

    The number of tokens is counted after the line has appeared. It stands in the sentence, which
    grows upwards: the buttons stay where they are.
    """

    answered = Signal()  # emitted when the user has pressed one of the buttons
    chosen = Signal(str)  # argument: text of the message that has waited for the choice

    def __init__(self, core: Core, parent: QWidget) -> None:
        super().__init__(parent)
        self._core = core
        self._is_urgent = False  # True after an action that needs an answer
        self._unsent: str | None = None  # text of the message that is sent after the choice
        self._cost = ""  # kept while the tokens are counted again, for example after typing
        core.chat.may_begin = self._may_begin
        self.set_choices(("", self._use), ("", self._stay))
        core.library.current_changed.connect(self._on_shown)
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
            unsent = self._unsent
            self._on_shown()
            self.show_text("")
            if unsent is not None and core.chat_models.is_chosen(current):
                self.chosen.emit(unsent)
            return
        to_read = core.prompt_sizes.to_read
        question = model_question(
            core.desk.get(current),
            models.status,
            models.cards,
            models.gone,
            None if to_read is None else to_read.num_tokens,
        )
        if to_read is not None or core.prompt_sizes.is_counted:
            self._cost = question.cost
        advice = words.CHOOSE_FIRST if self._unsent is None else words.CHOOSE_TO_SEND
        advice = advice if self._is_urgent else ""
        self.show_choices(
            " ".join(text for text in (question.sentence, self._cost, advice) if text),
            Label(question.use, question.name),
            Label(question.stay, question.name_in_use),
        )

    def note_unsent(self, text: str) -> None:
        """Note the text of a message that is sent only after the user has chosen a model."""
        if self._is_urgent:
            self._unsent = text
            self._refresh()

    def forget_unsent(self) -> None:
        """Send nothing after the choice, because the user has changed the message."""
        if self._unsent is not None:
            self._unsent = None
            self._refresh()

    def _use(self) -> None:
        self._core.chat_models.use()
        self.answered.emit()

    def _stay(self) -> None:
        self._core.chat_models.stay()
        self.answered.emit()

    def _on_shown(self) -> None:
        self._is_urgent, self._unsent = False, None
        self._cost = ""

    def _may_begin(self, conversation_id: ConversationId) -> bool:
        """Return False, and focus the first button, if the user must choose a model first."""
        is_shown = conversation_id == self._core.library.current
        if not is_shown or not self._core.chat_models.must_ask(conversation_id):
            return True
        self._is_urgent, self._unsent = True, None
        self._refresh()
        button = self.second if self.first.isHidden() else self.first
        button.setFocus(Qt.FocusReason.TabFocusReason)
        return False
