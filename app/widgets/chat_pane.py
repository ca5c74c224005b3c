"""The middle of the window: the transcript of one conversation, its composer and notices.

ChatPane shows the current conversation of LibraryController, and loads another one when
`current_changed` is emitted. It connects the composer to ChatController. It also shows queued
messages, and puts refused ones back. ComposerDraft saves the draft, and ChatProblems shows what
went wrong. Answers belong to the controllers and continue when another conversation is shown. In an
empty conversation the transcript is hidden, and the parts of EmptyChat take its place. ChatColumn
has the heights of all parts. Main thread.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.controllers.core import Core
from app.controllers.refusal import Refusal, RefusedEdit
from app.conversation.attachments import document_text
from app.conversation.tree import MessageNode, NodeId, Setup, has_messages
from app.theme.palette import Theme
from app.theme.tokens import Size
from app.viewmodels.notes import context_share, gone_note, last_generation
from app.viewmodels.phases import Waiting
from app.widgets.answers.area import ReadingArea
from app.widgets.answers.line import AnswersLine
from app.widgets.app_notice import AppNotice
from app.widgets.attaching import Attaching
from app.widgets.card_stack import CardStack
from app.widgets.chat_column import ChatColumn
from app.widgets.chat_problems import ChatProblems
from app.widgets.choice_line import ChoiceLine
from app.widgets.composer import Composer
from app.widgets.composer_caption import caption, note_on_reading
from app.widgets.composer_draft import ComposerDraft
from app.widgets.cost_tips import CostTips
from app.widgets.document_texts import DocumentTexts
from app.widgets.editing import focused_field, has_text
from app.widgets.editing_files import EditingFiles
from app.widgets.empty_chat import EmptyChat
from app.widgets.find_bar import FindBar
from app.widgets.focus_ring import FocusRing
from app.widgets.long_files import LongFiles
from app.widgets.lost_store import LostStore
from app.widgets.model_question import ModelQuestionLine
from app.widgets.notice import Notice
from app.widgets.picture_actions import PictureActions
from app.widgets.previewing import Previewing
from app.widgets.queued_message import QueuedMessage
from app.widgets.return_note import ReturnNote
from app.widgets.transcript.binding import TranscriptBinding
from app.widgets.transcript.view import TranscriptView
from app.widgets.unseen_pictures import UnseenPictures
from app.widgets.unsent_note import UnsentNote
from app.words import commands, composer as words, undo as undo_words
from engine.types import ConversationId


class ChatPane(QWidget):
    """The transcript and composer of the current conversation, and the lines between them."""

    choose_model_requested = Signal()  # emitted to open the model picker
    get_models_requested = Signal()  # emitted to open the Models window
    # emitted before a message is sent, so that an unsaved system prompt is saved first
    sending = Signal()
    said = Signal(str)  # argument: a problem, as a sentence for a toast

    def __init__(self, theme: Theme, core: Core, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("chatPane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._core = core
        self._shown = core.library.current  # id of the conversation on screen
        self.reading = ReadingArea(theme, core, self)
        self.view = TranscriptView(theme, self.reading, pictures=core.pictures)
        self.reading.add_transcript(self.view)
        self.view.focus_moved.connect(FocusRing(theme, self.view).setHidden)
        self.transcript = TranscriptBinding(self.view, core)
        self.find_bar = FindBar(theme, self.view, self)
        self.empty = EmptyChat(theme, core, self)
        self.cards = CardStack(self)
        self._make_lines(theme)
        self.composer = Composer(theme, self.view.shelves.pictures, self)
        CostTips(core, self.view, self.composer.thinking)
        Previewing(core, self.view.editor_host)
        pictures = PictureActions(
            theme, self.view.shelves.pictures, core.attachments.make_full, self
        )
        self.attaching = Attaching(
            core, self.composer, self.long_files, self.unseen, pictures, self
        )
        self.texts = DocumentTexts(theme, core, self.view, self.attaching)
        # cards and lines above the composer, in order
        self._lines = (
            self.app_notice, self.notice, self.gone_model, self.model_question,
            self.return_note, self.long_files, self.unseen, self.queued, UnsentNote(core, self),
            self.answers_line,
        )  # fmt: skip
        self.cards.show_cards(self._lines)
        self._column = ChatColumn(
            self, self.empty, self.find_bar, self.reading, self.cards, self.composer
        )
        self.draft = ComposerDraft(core, self.composer)
        self._problems = ChatProblems(
            core,
            self.notice,
            self.composer,
            self.draft,
            self.choose_model_requested,
            lambda: self.empty.model_note.isVisible() or self.gone_model.isVisible(),
        )
        LostStore(core, self.notice, self.composer, self).changed.connect(self._refresh_words)
        self._connect()
        self._apply_preferences()
        self._show_current()

    def _make_lines(self, theme: Theme) -> None:
        """Create the cards and lines above the composer."""
        core, area = self._core, self.cards.content
        self.app_notice = AppNotice(theme, core, area)
        self.notice = Notice(theme, area)
        self.gone_model = ChoiceLine(area)
        self.model_question = ModelQuestionLine(core, area)
        self.return_note = ReturnNote(theme, core, area)
        self.long_files = LongFiles(area)
        self.unseen = UnseenPictures(core, self.get_models_requested, area)
        self.queued = QueuedMessage(theme, area)
        self.answers_line = AnswersLine(core, self.reading, area)

    def focus_text(self) -> None:
        """Focus the editor of a message if one is open, else the composer."""
        if not self.view.editor_host.focus():
            self.composer.edit.setFocus()

    def stop(self) -> None:
        """Stop the shown conversation's answer, if one is in progress."""
        self._core.chat.stop(self._shown)

    def _stop_in_transcript(self) -> None:
        self.stop()
        self.focus_text()  # the Stop button in the transcript is gone

    def show_message(self, conversation_id: ConversationId, node_id: NodeId) -> None:
        """Scroll to a message in the transcript: now, or when its conversation is shown."""
        if conversation_id == self._shown:
            self.reading.close_answers()
        self.transcript.show_message(conversation_id, node_id)

    def edit_last(self) -> None:
        """Return the queued message to the composer; without one, edit the last sent message."""
        if any(self._core.chat.queued(self._shown)):
            self._withdraw()
        else:
            self.reading.close_answers()
            self.transcript.edit_last()

    def escape(self) -> None:
        """Handle Esc: close the find bar, the answers or the message edit, else stop the answer.

        The answers may cover the editor of a message, which stays open.
        """
        if self.find_bar.isVisible():
            self.find_bar.end()
        elif self.reading.close_answers():
            pass
        elif self.transcript.is_editing:
            self.transcript.end_editing()
        else:
            self.stop()

    def _connect(self) -> None:
        core = self._core
        core.library.current_changed.connect(self._show_current)
        core.library.list_changed.connect(self._on_list_changed)
        core.desk.changed.connect(self._on_changed)
        core.turns.activity_changed.connect(self._on_activity_changed)
        core.chat.refused.connect(self._on_refused)
        core.chat.queue_changed.connect(self._on_queue_changed)
        core.chat.continued.connect(self._on_continued)
        core.models.status_changed.connect(self._refresh_chat)
        core.preferences.changed.connect(self._apply_preferences)
        sizes, chat_models = core.prompt_sizes, core.chat_models
        for changed in (core.models.cards_changed, sizes.changed, chat_models.stayed):
            changed.connect(self._refresh_words)
        EditingFiles(core, self.view.editor_host, self.attaching)
        self.view.editor_host.edited.connect(self._refresh_caption)
        core.attachments.changed.connect(self._on_files_changed)
        self.app_notice.said.connect(self.said)
        self._problems.said.connect(self.said)
        self.view.click_actions.file_requested.connect(self.attaching.open_sent_file)
        self.view.click_actions.picture_requested.connect(self.attaching.act_on_sent_picture)
        self.model_question.chosen.connect(self._send)
        for left in (
            self.cards.left,
            self.find_bar.left,
            self.reading.left,
            self.view.editor_host.focus_left,
            self.model_question.answered,
        ):
            left.connect(self.focus_text)
        self.view.typed.connect(self.composer.type)
        self.view.quoted.connect(self.composer.quote)
        self.transcript.stop_requested.connect(self._stop_in_transcript)
        self.transcript.fork_requested.connect(core.chat_copies.fork)
        self._connect_composer()
        self._connect_answers()
        self.transcript.edit_dropped.connect(self._on_edit_dropped)
        self.queued.withdrawn.connect(self._withdraw)
        self.empty.choose_model_requested.connect(self.choose_model_requested)
        self.empty.get_models_requested.connect(self.get_models_requested)
        self.gone_model.set_choices(
            (commands.CHOOSE_MODEL, self.choose_model_requested),
            (commands.GET_MODELS, self.get_models_requested),
        )

    def _connect_composer(self) -> None:
        composer = self.composer
        composer.send_requested.connect(self._send)
        composer.several_requested.connect(self._send)
        composer.stop_requested.connect(self.stop)
        composer.escaped.connect(self.escape)
        composer.edit_last_requested.connect(self.edit_last)
        composer.text_changed.connect(self.model_question.forget_unsent)
        composer.setup_changed.connect(self._set_setup)

    def _connect_answers(self) -> None:
        """Connect the area in which answers can cover the transcript."""
        reading = self.reading
        self.transcript.side_by_side_requested.connect(reading.show_answers)
        self.find_bar.opened.connect(reading.close_answers)
        reading.opened.connect(self.find_bar.end)
        reading.why_requested.connect(self.transcript.why_requested)
        reading.noted.connect(self.composer.button.set_note)

    def _apply_preferences(self) -> None:
        value = self._core.preferences.value
        zoom = value.text_zoom / 100
        self.view.set_zoom(zoom)
        self.composer.set_zoom(zoom)
        self.empty.set_zoom(zoom)
        for line in self._lines:
            line.setMaximumWidth(round(Size.COLUMN * zoom))
        self.composer.set_return_sends(value.return_sends)
        self.view.editor_host.return_sends = value.return_sends

    def _show_current(self) -> None:
        self.find_bar.end()
        self._shown = self._core.library.current
        self.notice.hide()
        self.draft.show(self._shown)
        self.attaching.refresh()
        self._refresh_activity()
        self._refresh_queue()
        self._refresh_setup()
        self._refresh_words()
        # Compute the height of the transcript, which restoring the scroll position needs.
        self._column.activate()
        self._column.place_composer()
        self.transcript.show(self._shown)

    def _on_edit_dropped(self, chat: ConversationId, open_again: Callable[[], bool]) -> None:
        self._core.undo.add(undo_words.CANCEL_EDIT, open_again, chat)

    def _send(self, text: str, answers: int = 1) -> None:
        if not self.attaching.may_send() or not self._problems.too_long.may_send(text):
            return
        self.sending.emit()
        self.reading.use_to_continue()
        self.notice.hide()
        self.app_notice.end_refusal()
        if self._core.chat.send(self._shown, text, answers=answers):
            self.draft.clear()
        else:
            self.model_question.note_unsent(text)

    def _on_files_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._shown:
            self._refresh_caption()

    def _set_setup(self, setup: Setup) -> None:
        self._core.chat.set_setup(self._shown, setup)

    def _on_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._shown:
            self._refresh_chat()

    def _on_list_changed(self) -> None:
        self._refresh_setup()  # a new, unused chat uses the default preset, which may have changed
        self.empty.refresh_list(self._shown, can_write=self.composer.isEnabled())
        self._refresh_caption()

    def _refresh_chat(self) -> None:
        self._refresh_setup()
        self._refresh_words()

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._shown:
            self._refresh_activity()

    def _on_queue_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._shown:
            self._refresh_queue()

    def _on_continued(self, conversation_id: ConversationId, _before: MessageNode) -> None:
        if conversation_id == self._shown:
            self.composer.edit.setFocus()

    def _withdraw(self) -> None:
        self._core.chat.withdraw(self._shown)
        self.composer.edit.setFocus()

    def _refresh_queue(self) -> None:
        queued = self._core.chat.queued(self._shown)
        self.queued.show_text(document_text(queued.files, queued.text))

    def _on_refused(self, refusal: Refusal) -> None:
        if refusal.edit is not None:
            self._edit_again(refusal.conversation_id, refusal.edit)
        if refusal.conversation_id == self._shown:
            self.draft.give_back(refusal.text)
            self._problems.show_refusal(refusal)
        elif refusal.problem is not None:
            # The conversation itself may no longer be in memory.
            title = self._core.library.listed.summary(refusal.conversation_id).title
            self.said.emit(words.not_sent(title=title, problem=refusal.problem.title))

    def _edit_again(self, conversation_id: ConversationId, edit: RefusedEdit) -> None:
        """Open the editor again. It takes the focus, unless that is in a field with typed text."""
        field = focused_field()
        self._core.edited_files.set(conversation_id, edit.node_id, edit.files)
        self.transcript.edit_again(conversation_id, edit.node_id, edit.text)
        if field is not None and has_text(field):
            field.setFocus()

    def _refresh_activity(self) -> None:
        live = self._core.turns.live_in(self._shown)
        phase = None if live is None else live.phase
        ahead = phase.ahead if isinstance(phase, Waiting) else 0
        note = words.answers_ahead(ahead) if ahead else ""
        self.composer.set_answering(live is not None, note)

    def _refresh_setup(self) -> None:
        setup = self._core.desk.get(self._shown).setup
        self.composer.thinking.show_setup(setup, self._core.models.status.facts)

    def _refresh_words(self) -> None:
        """Show or hide the parts of an empty chat; update the note on the model and the caption."""
        models = self._core.models
        conversation = self._core.desk.get(self._shown)
        self.reading.setVisible(has_messages(conversation))
        self.empty.refresh(conversation, can_write=self.composer.isEnabled())
        must_ask = self._core.chat_models.must_ask(self._shown)
        self.gone_model.show_text("" if must_ask else gone_note(models.status))
        generation = last_generation(conversation)
        models.check("" if generation is None else generation.model_path)
        share, tip = context_share(conversation, models.status) or (None, "")
        self.composer.ring.show_share(share, tip)
        self._refresh_caption()

    def _refresh_caption(self) -> None:
        conversation = self._core.desk.get(self._shown)
        has_note = not self.empty.model_note.isHidden()
        edits = self.view.editor_host.edit is not None
        text = caption(self._core, conversation, has_model_note=has_note, is_editing=edits)
        self.composer.set_caption(text, keeps_line=not self.reading.isHidden())
        if edits and self._core.prompt_sizes.is_counted:  # else keep the note while the user types
            self.view.editor_host.set_note(
                note_on_reading(self._core, conversation, is_editing=True)
            )

    @override
    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self._column.fit()
        return done
