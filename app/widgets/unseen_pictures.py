"""The line above the composer if the model in use can't see the chat's pictures. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Signal, SignalInstance
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.conversation.tree import Conversation, shown_path
from app.viewmodels.models import seeing_model
from app.widgets.button_row import Label
from app.widgets.choice_line import ChoiceLine
from app.words import attachments as words, commands, models


class UnseenPictures(ChoiceLine):
    """The sentence, with a button for a model that sees pictures, or for the window Models."""

    changed = Signal()  # emitted when `note` may have changed

    def __init__(self, core: Core, get_models: SignalInstance, parent: QWidget) -> None:
        super().__init__(parent)
        self._core = core
        self.note = ""  # why a message can't be sent; empty if it can
        self.set_choices(("", self._use_model), ("", get_models))
        for source in (
            core.library.current_changed,
            core.desk.changed,
            core.models.status_changed,
            core.models.cards_changed,
            core.chat_models.stayed,
        ):
            source.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the line, or hide it if the model sees pictures or there are none.

        It is hidden too while another line asks for the model of the chat, which sees.
        """
        core = self._core
        status = core.models.status
        conversation = core.desk.get(core.library.current)
        note = ""
        if status.facts is not None and not status.facts.sees:
            name = status.name or status.facts.title
            if _has_pictures_in_draft(conversation):
                note = words.sees_none(name)
            elif _has_pictures_on_show(conversation):
                note = words.sees_none_of_chat(name)
        card = seeing_model(core.models.cards)
        use = "" if card is None else models.use_model(card.title)
        get = commands.GET_MODELS if card is None else ""
        if note and not core.chat_models.offers_seeing_model(core.library.current):
            self.show_choices(note, Label(use, "" if card is None else card.title), Label(get))
        else:
            self.show_text("")
        if note != self.note:
            self.note = note
            self.changed.emit()

    def _use_model(self) -> None:
        card = seeing_model(self._core.models.cards)
        if card is not None:
            self._core.models.choose(card.path)


def _has_pictures_in_draft(conversation: Conversation) -> bool:
    return any(one.picture is not None for one in conversation.draft_attachments)


def _has_pictures_on_show(conversation: Conversation) -> bool:
    attachments = (one for node in shown_path(conversation) for one in node.attachments)
    return any(one.picture is not None for one in attachments)
