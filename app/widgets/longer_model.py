"""The notice of a chat or a text too long for the model in use, and its ways out. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject

from app.controllers.core import Core
from app.widgets.button_row import Label
from app.widgets.composer import Composer
from app.widgets.notice import Notice
from app.words import composer as words, folder_documents as document_words, models, units
from engine.catalog.card import ModelCard
from engine.problem import Problem, ProblemKind


def is_too_long(problem: Problem) -> bool:
    """Return True if the problem is that a chat or a text exceeds the model's context."""
    return problem.kind in (ProblemKind.CONTEXT_FULL, ProblemKind.TEXT_TOO_LONG)


class TooLongNotice(QObject):
    """Offers ways out in the pane's notice.

    They are a new chat, a chat without documents, and a model that can read the chat or the text.
    """

    def __init__(
        self,
        core: Core,
        notice: Notice,
        composer: Composer,
        flush: Callable[[], object],
        parent: QObject,
    ) -> None:
        """Create the offer. `flush` saves the draft in the composer."""
        super().__init__(parent)
        self._core = core
        self._notice = notice
        self._composer = composer
        self._flush = flush
        self._problem: Problem | None = None  # the problem that was shown last
        self._is_new_text = False  # the last argument of show()
        composer.emptied.connect(self._end)
        # Saving the empty draft ends the caption that the text is too long.
        composer.emptied.connect(flush)
        core.prompt_sizes.changed.connect(self._on_size_changed)

    def show(self, problem: Problem, *, is_new_text: bool) -> None:
        """Show the problem. is_new_text: True if the message's text is in the composer again."""
        self._is_new_text = is_new_text
        problem = self._problem = self._worded(problem)
        if self._has_documents:
            self._notice.offer(problem, document_words.WITHOUT, self._leave_documents)
        elif is_new_text and problem.kind is ProblemKind.CONTEXT_FULL:
            self._notice.offer(problem, words.MOVE_TO_NEW_CHAT, self._move_to_new_chat)
        else:
            self._notice.say(problem)
        if problem.num_tokens:
            self._core.longer_models.find(
                problem.num_tokens, partial(self._offer_model, problem.kind)
            )

    def may_send(self, text: str) -> bool:
        """Return True if the text can be sent. Otherwise show why not: the prompt is too long."""
        refusal = self._core.prompt_sizes.refusal_of(text)
        if refusal is not None:
            self.show(refusal, is_new_text=True)
        return refusal is None

    @property
    def _has_documents(self) -> bool:
        """True if the new text would be the first message, behind the documents of a folder."""
        conversation = self._core.desk.get(self._core.library.current)
        return self._is_new_text and bool(conversation.documents)

    def _worded(self, problem: Problem) -> Problem:
        """Return a problem that names the documents, if they are a part of what is too long."""
        if not self._has_documents:
            return problem
        title, advice = document_words.MESSAGE_TOO_LONG, document_words.MESSAGE_TOO_LONG_ADVICE
        return replace(problem, title=title, advice=advice)

    def _leave_documents(self) -> None:
        self._notice.hide()
        self._core.chat.set_without_documents(self._core.library.current, True)
        self._composer.edit.setFocus()

    def _offer_model(self, kind: ProblemKind, card: ModelCard) -> None:
        """Add a model to the notice, if it still shows a problem of this kind."""
        problem = self._problem
        if problem is None or not self._is_on_show or problem.kind is not kind:
            return
        is_chat = kind is ProblemKind.CONTEXT_FULL
        self._notice.add_choice(
            words.can_read(card.title, units.tokens(card.context_len), is_chat=is_chat),
            Label(models.use_model(card.title), card.title),
            lambda: self._core.models.choose(card.path),
        )

    def _move_to_new_chat(self) -> None:
        """Open a new chat, with the text of the composer as its draft."""
        text = self._composer.text
        self._composer.set_text("")
        self._flush()
        self._core.library.new_chat()
        self._composer.set_text(text)
        self._composer.edit.setFocus()

    def _on_size_changed(self) -> None:
        """Show the counted size, or hide the notice if the prompt now fits, with part of a file."""
        size, problem = self._core.prompt_sizes.size, self._problem
        if size is None or problem is None or not self._is_on_show:
            return
        if size.refusal is None:
            self._notice.hide()
        elif size.refusal.kind is problem.kind:
            self._problem = self._worded(size.refusal)
            self._notice.change_cause(self._problem)
        else:
            self.show(size.refusal, is_new_text=self._is_new_text)

    @property
    def _is_on_show(self) -> bool:
        return self._notice.isVisible() and self._notice.problem is self._problem

    def _end(self) -> None:
        """Hide the notice: what it describes is not so any more."""
        if self._is_on_show:
            self._notice.hide()
