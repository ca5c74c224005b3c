"""The problems of the chat on show, in the notice of the pane. Main thread.

They are: a message or turn that was refused, a chat that is too long, and a model that was lost.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, SignalInstance

from app.controllers.core import Core
from app.controllers.refusal import Refusal
from app.widgets.composer import Composer
from app.widgets.composer_draft import ComposerDraft
from app.widgets.longer_model import TooLongNotice, is_too_long
from app.widgets.notice import Notice
from app.words import commands, several
from engine.problem import Problem


class ChatProblems(QObject):
    """Chooses what the notice says and which ways out it offers."""

    said = Signal(str)  # argument: a problem, as a sentence for a toast

    def __init__(
        self,
        core: Core,
        notice: Notice,
        composer: Composer,
        draft: ComposerDraft,
        choose_model: SignalInstance,
        has_model_note: Callable[[], bool],
    ) -> None:
        """Connect the notice.

        Args:
            core: the controllers.
            notice: shows one problem at a time.
            composer: the field of the next message; disabled if the chats cannot be opened.
            draft: the text in the composer.
            choose_model: opens the model picker.
            has_model_note: returns True if a note about the model in use is on show.
        """
        super().__init__(notice)
        self._core = core
        self._notice = notice
        self._composer = composer
        self._choose_model = choose_model
        self._has_model_note = has_model_note
        self._facts = core.models.status.facts  # facts of the model that was loaded last
        self.too_long = TooLongNotice(core, notice, composer, draft.flush, self)
        core.models.lost.connect(self._on_model_lost)
        core.models.status_changed.connect(self._on_status_changed)

    def show_refusal(self, refusal: Refusal) -> None:
        """Show why a message of the chat on show was not sent, or its turn not started."""
        problem = refusal.problem
        if problem is None:
            return
        if is_too_long(problem):
            is_new_text = bool(refusal.text) and refusal.edit is None
            self.too_long.show(problem, is_new_text=is_new_text)
        elif self._has_model_note():
            self._choose_model.emit()  # no notice: the note already gives the reason
        elif self._core.models.status.facts is None:
            self._notice.offer(problem, commands.CHOOSE_MODEL, self._choose_model.emit)
        else:
            self._notice.say(problem)

    def _on_model_lost(self, problem: Problem) -> None:
        word = several.START_AGAIN if self._core.several.is_on else commands.LOAD_AGAIN
        self._notice.offer(problem, word, self._core.models.load_again)

    def _on_status_changed(self) -> None:
        """Hide the notice when a model is loaded: it was about the model that was in use before.

        If a part of the new model cannot be used, say so.
        """
        facts = self._core.models.status.facts
        if facts is None or facts is self._facts:
            return
        self._facts = facts
        if self._composer.isEnabled():  # False: the notice says that the store cannot be used
            self._notice.hide()
        if facts.head_fault:
            self.said.emit(facts.head_fault)
