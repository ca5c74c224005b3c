"""Restarts of the app, and comparisons of the window and the store before and after a restart."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from app.conversation.attachments import Attachment
from app.conversation.tree import Conversation, MessageStatus
from app.conversation.unsent import join_texts
from app.settings import Settings
from app.viewmodels.items import TranscriptItems
from app.viewmodels.transcript import TranscriptItem
from engine.types import ConversationId
from tests.person.person import Person


@dataclass(frozen=True, slots=True)
class Kept:
    """The contents of the window that must be equal before and after a restart.

    Figures of answers, open editors, the scroll position and the width of the sidebar are left out.
    """

    listed: tuple[tuple[ConversationId, str], ...]
    current: ConversationId | None
    items: tuple[TranscriptItem, ...]
    composer: str
    files: tuple[Attachment, ...]  # queued and attached files
    settings: Settings
    size: tuple[int, int]
    presets: object
    places: object  # the places of the chats in the list
    folders: object


def kept(person: Person) -> Kept:
    summaries = person.core.library.listed.all
    is_listed = person.current in person.listed
    return Kept(
        listed=tuple((one.conversation_id, one.title) for one in summaries),
        current=person.current if is_listed else None,
        items=tuple(_lasting(item) for item in person.items),
        composer=_unsent(person),
        files=(
            *person.core.chat.queued(person.current).files,
            *person.conversation.draft_attachments,
        ),
        settings=replace(
            person.core.preferences.value,
            window_geometry="",
            selected_conversation=None,
            read_message="",
            read_offset=0,
            sidebar_width=0,
        ),
        size=(person.window.width(), person.window.height()),
        presets=person.core.presets.value,
        places={one.conversation_id: one.placement for one in summaries},
        folders={one.folder_id: one for one in person.core.folders.folders},
    )


def _unsent(person: Person) -> str:
    """Join the queued message and the composer's text, as the app does when it restarts."""
    return join_texts(person.core.chat.queued(person.current).text, person.edit.toPlainText())


def _lasting(item: TranscriptItem) -> TranscriptItem:
    """Return the item without the parts that a restart drops: state line, figures, open editor."""
    return replace(item, phase=None, figures=None, reasoning_s=None, editing=False)


def relaunch(person: Person) -> None:
    """Close and launch the app, and compare the window before and after.

    In half of the cases the app is closed only after all answers have ended."""
    if at_rest := person.random.random() < 0.5:
        person.wait_for_answers()
    # Store the draft: after the restart, a chat without messages is listed only if it has a draft.
    person.pane.draft.flush()
    person.settle()
    before = kept(person)
    desk = {one: person.core.desk.get(one) for one in person.listed if one in person.core.desk}
    person.close()
    person.launch()
    if before.current is not None:
        person.wait_until(lambda: person.current == before.current)
    person.settle()
    if at_rest:
        assert_same(before, kept(person))
    else:
        assert_continued(before, kept(person))
    assert_nothing_lost(person)
    assert_window_is_true(person)
    for conversation_id, conversation in desk.items():
        if at_rest:
            assert_same(_content(conversation), _content(_load(person, conversation_id)))


def assert_same(before: Kept | Conversation, after: Kept | Conversation) -> None:
    """Assert that two dataclasses are equal. The message names the first field that differs."""
    for field in fields(before):
        old, new = getattr(before, field.name), getattr(after, field.name)
        assert old == new, f"{field.name}:\n{old}\nis now\n{new}"


def assert_continued(before: Kept, after: Kept) -> None:
    """Assert that a restart during an answer lost no text.

    The cut-off answer starts with the text shown before the restart. A queued message may have been
    sent in the meantime. If the engine had not started a turn, its text must be in the composer.
    """
    both = [
        (old, new)
        for old, new in zip(before.items, after.items, strict=False)
        if old.key == new.key
    ]
    for old, new in both:
        assert _whole(new.text).startswith(_whole(old.text)), (old.text, new.text)
        assert _whole(new.reasoning).startswith(_whole(old.reasoning)), (old, new)
    gone = before.items[len(both) :]
    assert all(item.text in after.composer for item in gone), gone
    sent = [item.text for item in after.items]
    assert before.composer in after.composer or any(before.composer in text for text in sent)
    # The files of a turn that was not started return to the composer with its text.
    returned = {chip.name for item in gone for chip in item.files}
    assert {file.name for file in after.files} == {file.name for file in before.files} | returned
    rest = {"items": (), "listed": (), "composer": "", "files": ()}
    assert_same(replace(before, **rest), replace(after, **rest))
    # Titles may differ: a chat is named after its first message, which may have become a draft
    # again.
    assert {key for key, _title in after.listed} == {key for key, _title in before.listed}


def _whole(text: str) -> str:
    """Return a text without its incomplete characters.

    A reply that is stopped inside a character ends with such a character. While the reply is
    continued, the character stays on show. In the finished text it is complete.
    """
    return text.replace("\ufffd", "")


def assert_nothing_lost(person: Person) -> None:
    """Assert that each sent message is in the stored conversation, as a message or in its draft."""
    places: dict[ConversationId, str] = {}
    for marker, conversation_id in person.entrusted.items():
        if conversation_id not in places:
            conversation = _load(person, conversation_id)
            texts = [node.content for node in conversation.nodes.values()]
            places[conversation_id] = "\n".join((*texts, conversation.draft))
        assert marker in places[conversation_id], f"message {marker} is lost"


def assert_window_is_true(person: Person) -> None:
    """Assert that the messages in the transcript equal those of the stored conversation."""
    if person.current in person.listed:
        stored = TranscriptItems().of(_load(person, person.current), person.core.turns.live, None)
        # The name of the folder, and the quotes of files, are added to the items that are on show.
        shown = tuple(replace(item, folder="", quotes=()) for item in person.items)
        differing = [pair for pair in zip(shown, stored, strict=False) if pair[0] != pair[1]]
        assert shown == stored, f"shown and stored differ: {differing}"
        assert all(item.status is not MessageStatus.STREAMING for item in stored)
    view = person.pane.view
    assert [view.text_of(item.key) for item in person.items] == person.shown_texts


def _load(person: Person, conversation_id: ConversationId) -> Conversation:
    return person.stored(lambda store: store.load(conversation_id))


def _content(conversation: Conversation) -> Conversation:
    """Return the conversation without the values that may differ after a restart.

    Left out are the draft, which is saved half a second after typing, each answer's record of its
    generation, and the documents of its folder, which the app adds when it opens a chat.
    """
    nodes = {key: replace(node, generation=None) for key, node in conversation.nodes.items()}
    return replace(conversation, draft="", nodes=nodes, documents=())
