"""The connection of the inspector to the controllers, in both directions. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.controllers.core import Core
from app.conversation.preset import PRESET_NAME_LEN, Preset, preset_of
from app.conversation.text import one_line
from app.viewmodels.models import shown_name
from app.viewmodels.prompt_cost import prompt_cost
from app.widgets.inspector import Inspector
from engine.types import ConversationId


class InspectorBinding(QObject):
    """The connection of one inspector to the controllers. The inspector owns this object.

    The user's changes go to the controllers. The inspector shows the setup of the current
    conversation.
    """

    def __init__(self, inspector: Inspector, core: Core) -> None:
        super().__init__(inspector)
        self._inspector = inspector
        self._core = core
        inspector.prompt_changed.connect(core.chat.set_system_prompt)
        inspector.setup_changed.connect(core.chat.set_setup)
        inspector.preset.chosen.connect(self._apply_preset)
        inspector.preset.saved.connect(self._save_preset)
        inspector.preset.deleted.connect(core.presets.delete)
        inspector.preset.default_chosen.connect(core.presets.choose)
        core.prompt_sizes.changed.connect(self._refresh_cost)
        for changed in (
            core.library.current_changed,
            core.library.list_changed,  # a new, unused chat uses the default preset
            core.models.status_changed,
            core.models.cards_changed,
            core.presets.changed,
        ):
            changed.connect(self._refresh)
        core.desk.changed.connect(self._on_chat_changed)
        self._refresh()

    def _on_chat_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._core.library.current:
            self._refresh()

    def _refresh(self) -> None:
        core = self._core
        conversation, status = core.desk.get(core.library.current), core.models.status
        self._inspector.show_conversation(conversation, status.facts)
        self._inspector.preset.show_presets(
            core.presets.value, conversation, status.path, shown_name(status, core.models.cards)
        )
        self._refresh_cost()

    def _refresh_cost(self) -> None:
        core, sizes = self._core, self._core.prompt_sizes
        conversation = core.desk.get(core.library.current)
        self._inspector.show_prompt_cost(
            prompt_cost(conversation, core.models.status, sizes.num_tokens, sizes.to_read)
        )

    def _apply_preset(self, preset: Preset) -> None:
        self._inspector.drop_typing()
        self._core.chat.apply_preset(self._core.library.current, preset)

    def _save_preset(self, text: str) -> None:
        self._inspector.flush()
        name = one_line(text, PRESET_NAME_LEN)
        if name:
            conversation = self._core.desk.get(self._core.library.current)
            self._core.presets.save_preset(preset_of(conversation, name))
