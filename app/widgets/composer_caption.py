"""The line below the composer, and the note in the editor of a message. Main thread."""

from __future__ import annotations

from app.controllers.core import Core
from app.controllers.requests import has_draft
from app.conversation.tree import Conversation
from app.viewmodels.notes import reading_note, too_long_note
from app.words import composer as words

PRIVACY_CHATS = 10  # the note on privacy is not shown if there are more chats than this


def caption(
    core: Core, conversation: Conversation, *, has_model_note: bool, is_editing: bool
) -> str:
    """Return the caption for the conversation on show.

    The progress of reading attached files comes first, then what the next message makes the model
    read, then the note on privacy, unless a note about the model is shown beside it. While a
    message is edited, its editor has the note on what the model will read.
    """
    files = core.attachments
    has_none = is_editing or files.excess_note
    on_reading = "" if has_none else note_on_reading(core, conversation, is_editing=False)
    return files.reading_note or on_reading or ("" if has_model_note else _privacy(core))


def note_on_reading(core: Core, conversation: Conversation, *, is_editing: bool) -> str:
    """Return what the next message, or the edited one, costs. Without a text only if it is much."""
    models, sizes = core.models, core.prompt_sizes
    size = sizes.size
    if size is None and not is_editing:
        size = sizes.kept_size(has_text=has_draft(conversation))
    too_long = too_long_note(models.status, size, is_editing=is_editing)
    if too_long or core.chat_models.must_ask(conversation.conversation_id):
        return too_long  # the question about the model has the tokens to read
    has_text = sizes.is_of_request
    return reading_note(conversation, models.status, sizes.to_read, models.gone, has_text=has_text)


def _privacy(core: Core) -> str:
    if len(core.library.listed.unarchived) > PRIVACY_CHATS:
        return ""
    return words.PRIVATE_ON_MACS if core.models.num_machines > 1 else words.PRIVATE
