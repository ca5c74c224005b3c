"""The commands for several answers, and for one answer with other options. Main thread.

The Chat menu has them: Several Answers, which sends the message for 2 to 4 answers, or regenerates
the last answer while there is no message; and Ask Again With, with the options and the models for
another version of the last answer. The Send button has the commands of Several Answers in a menu.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject

from app.controllers.core import Core
from app.conversation.preset import PRESET_NAME_LEN
from app.conversation.tree import Setup
from app.widgets.chat_pane import ChatPane
from app.widgets.commands import Actions, CommandId, connect_actions
from app.widgets.menu import Menu
from app.words import commands as words, window
from engine.types import ConversationId

_MAX_MODELS = 12  # in the menu; the picker has all
_TEMPERATURES = (0.0, 0.3, 0.7, 1.0, 1.3)

_SEVERAL = {2: CommandId.ANSWERS_2, 3: CommandId.ANSWERS_3, 4: CommandId.ANSWERS_4}


class AnswerCommands(QObject):
    """The commands. They act on the chat on show. Those without an effect are disabled."""

    def __init__(self, core: Core, pane: ChatPane, actions: Actions, chat_menu: Menu) -> None:
        """Connect the commands, and add the menu Ask Again With to the Chat menu."""
        super().__init__(pane)
        self._core = core
        self._pane = pane
        self._actions = actions
        self._ask_again = Menu(chat_menu, words.ASK_AGAIN_WITH)
        chat_menu.insertMenu(actions[CommandId.CONTINUE], self._ask_again)
        self._ask_again.aboutToShow.connect(self._fill)
        connect_actions(
            actions, {id_: partial(self._request, count) for count, id_ in _SEVERAL.items()}
        )
        pane.composer.button.set_choices([actions[id_] for id_ in _SEVERAL.values()])
        pane.composer.may_send_changed.connect(self._refresh)
        core.library.current_changed.connect(self._refresh)
        core.desk.changed.connect(self._on_chat_changed)
        core.turns.activity_changed.connect(self._on_chat_changed)
        self._fill()  # a Mac shows no menu without entries
        self._refresh()

    def _on_chat_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._core.library.current:
            self._refresh()

    def _refresh(self) -> None:
        turns, current = self._core.turns, self._core.library.current
        is_free = not turns.replies_in(current) or turns.is_stopping(current)
        sends = self._pane.composer.may_send
        text = words.send_times if sends else words.regenerate_times
        for count, id_ in _SEVERAL.items():
            self._actions[id_].setText(text(count))
            self._actions[id_].setEnabled(sends or (self._pane.transcript.has_messages and is_free))
        can_ask = self._pane.transcript.has_messages and not turns.replies_in(current)
        self._ask_again.menuAction().setEnabled(can_ask)

    def _request(self, count: int) -> None:
        """Send the message for several answers. Without one, regenerate the last answer."""
        if self._pane.composer.may_send:
            self._pane.composer.send(count)
        else:
            self._pane.transcript.regenerate_last(count)

    def _fill(self) -> None:
        """Fill the menu with the options that differ from those of the chat, and other models."""
        core = self._core
        self._ask_again.clear()
        if core.library.current not in core.desk:
            return
        setup = core.desk.get(core.library.current).setup
        self._add_options(setup)
        self._add_presets(setup)
        self._add_models(setup)

    def _add_options(self, setup: Setup) -> None:
        menu, facts = self._ask_again, self._core.models.status.facts
        used = setup.temperature
        if facts is not None:
            used = setup.sampling(facts.default_sampling).temperature
        for temperature in _TEMPERATURES:
            if temperature != used:
                with_it = replace(setup, temperature=temperature)
                menu.addAction(words.at_temperature(temperature), partial(self._ask, with_it))
        if facts is not None and facts.has_thinking:
            menu.addSeparator()
            for thinking, text in ((True, words.THINKING), (False, words.NO_THINKING)):
                if thinking != setup.thinking:
                    menu.addAction(text, partial(self._ask, replace(setup, thinking=thinking)))

    def _add_presets(self, setup: Setup) -> None:
        self._ask_again.addSeparator()  # Qt shows none at the end of a menu
        for preset in self._core.presets.value.by_name.values():
            with_it = replace(preset.setup, seed=setup.seed)
            name = window.in_menu(preset.name, PRESET_NAME_LEN)
            self._ask_again.addAction(name, partial(self._ask, with_it, preset.system_prompt))

    def _add_models(self, setup: Setup) -> None:
        models, menu = self._core.models, self._ask_again
        others = [card for card in models.cards if card.usable]
        others = [card for card in others if str(card.path) != models.status.path]
        menu.addSeparator()
        for card in others[:_MAX_MODELS]:
            choose = partial(models.choose, card.path, partial(self._ask, setup))
            menu.addAction(window.in_menu(card.title, PRESET_NAME_LEN), choose)

    def _ask(self, setup: Setup, system_prompt: str | None = None) -> None:
        answer = self._pane.transcript.last_answer
        if answer is not None:
            self._core.chat.ask_again(
                self._core.library.current, answer, setup, system_prompt=system_prompt
            )
