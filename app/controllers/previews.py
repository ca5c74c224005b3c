"""Previews: while the user edits a message, the engine writes the start of its answer. Main thread.

The preview is that of the request that sending the edited message would make. It is asked for
PAUSE_MS after the last change, and withdrawn when the text changes or the editor closes. If the
user sends exactly this request, its answer begins with the tokens of the preview on show.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.chat_models import ChatModels
from app.controllers.chat_services import ChatServices
from app.controllers.origin import Origin
from app.controllers.preferences import Preferences
from app.controllers.prompt_size import EditSource
from app.controllers.requests import (
    OpenEdit,
    generation_of,
    make_request,
    plan_open_edit,
    problem_of_pictures,
)
from app.conversation.actions import Turn, TurnIds, begin_reply
from app.conversation.tree import NodeId
from app.viewmodels.previews import PreviewText, preview_text
from app.words import previews as words
from engine.commands import Asked
from engine.events import ModelFacts, PreviewProgress, PreviewStage
from engine.questions import Preview
from engine.types import Request, RequestId, Role

# Delay after the last change before a preview is asked for.
PAUSE_MS = 500

_IDS = TurnIds(user=NodeId("previewed-user"), reply=NodeId("previewed-reply"))
_NOTHING = Preview()


class Previews(QObject):
    """The preview of the answer to the edited message. There is at most one."""

    changed = Signal()  # `shown` has changed
    # emitted when the edited message has been read and the preview begins to be written
    message_read = Signal()

    def __init__(
        self,
        services: ChatServices,
        chat_models: ChatModels,
        preferences: Preferences,
        origin: Origin,
    ) -> None:
        super().__init__()
        self._bridge = services.bridge
        self._desk = services.desk
        self._models = services.models
        self._chat_models = chat_models
        self._library = services.library
        self._preferences = preferences
        self._origin = origin
        self._edit: EditSource = _no_edit
        self._edited: OpenEdit | None = None  # the edit when `_edit` was last called
        self._seed = 0  # seed of the previews of the message in the editor
        self._is_over = False  # True once the app is closing
        # The request that was asked for, and the model then. None if no preview is asked for.
        self._previewed: tuple[Request, ModelFacts] | None = None
        self._asked: Asked[Preview] | None = None  # the question of the preview on show
        self._preview = _NOTHING  # the newest text and tokens
        self.shown = PreviewText()
        self.pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self.pause.timeout.connect(self._ask)
        services.bridge.preview_changed.connect(self._on_progress)
        for changed in (
            services.desk.changed,
            services.library.current_changed,
            services.models.status_changed,
            chat_models.stayed,
            preferences.changed,
        ):
            changed.connect(self._on_changed)
        services.chat.begin_edit = self.begin

    def stop(self) -> None:
        """Ask no more, because the app is closing. Idempotent."""
        self._is_over = True
        self.pause.stop()

    def watch_edit(self, edit: EditSource) -> None:
        """Set the function that returns the edited message. Call note_edit() when it changes."""
        self._edit = edit

    def note_edit(self) -> None:
        """Drop the preview if an editor was opened or closed, or its text has changed."""
        edit = self._edit()
        if edit == self._edited:
            return
        if edit is not None and (self._edited is None or edit.node_id != self._edited.node_id):
            self._seed = self._origin.new_seed()
        self._edited = edit
        self._drop()
        self._on_changed()

    @property
    def is_on(self) -> bool:
        return self._preferences.value.preview_edits

    def begin(self, turn: Turn) -> Turn:
        """Return an edit's turn. If the shown preview is of this turn, the reply begins with it."""
        facts = self._models.status.facts
        if facts is None or not self.is_on:
            return turn
        request = self._request(turn, facts)
        if self._previewed != (request, facts):
            return turn
        generation = generation_of(request, turn, facts)
        return begin_reply(turn, self._preview, request.max_tokens, generation)

    def _request(self, turn: Turn, facts: ModelFacts) -> Request:
        setup, cards = turn.conversation.setup, self._models.cards
        return make_request(
            RequestId("preview"), turn, setup, facts, new_seed=self._seed, cards=cards
        )

    def _on_changed(self) -> None:
        """Look after a pause if the preview is still that of the request, or must be replaced."""
        if self._is_over:
            return
        if self.is_on and self._edited is not None:
            self.pause.start()
        else:
            self.pause.stop()
            self._drop()

    def _ask(self) -> None:
        facts = self._models.status.facts
        turn = self._turn()
        if turn is None:
            self._drop()
            return
        why_not = self._why_not(turn)
        if why_not or facts is None:
            self._drop()
            self._show(PreviewText(why_not, is_complete=why_not != words.LOADING))
            return
        request = self._request(turn, facts)
        if self._previewed == (request, facts):
            return
        self._drop()
        self._previewed = request, facts
        asked = self._asked = self._bridge.engine.make_preview(request)
        self._bridge.when_answered(asked, partial(self._on_made, asked))

    def _turn(self) -> Turn | None:
        """Return the turn that sending the edited message would begin. None: it can't be sent."""
        conversation = self._desk.get(self._library.current)
        if self._edited is None:
            return None
        node = conversation.nodes.get(NodeId(self._edited.node_id))
        if node is None or node.role is not Role.USER or not self._edited.text.strip():
            return None
        return plan_open_edit(conversation, self._edited, _IDS)

    def _why_not(self, turn: Turn) -> str:
        """Return the reason why the engine is not asked for a preview, or an empty text."""
        status = self._models.status
        if status.facts is None:
            return words.LOADING if status.will_be_ready else words.NO_MODEL
        if status.is_unloaded:
            return words.UNLOADED
        if self._chat_models.must_ask(self._library.current):
            return words.CHOOSE
        problem = problem_of_pictures(turn, status.facts)
        return "" if problem is None else words.refused(problem.title, problem.cause)

    def _drop(self) -> None:
        """Withdraw the preview, and show none.

        It is withdrawn only after the present signal: the request that continues it may be
        submitted in the meantime, and must reach the engine first.
        """
        asked, self._asked = self._asked, None
        self._previewed, self._preview = None, _NOTHING
        if asked is not None:
            QTimer.singleShot(0, self, partial(self._withdraw, asked))
        self._show(PreviewText())

    def _withdraw(self, asked: Asked[Preview]) -> None:
        if not self._is_over:
            self._bridge.engine.withdraw(asked)

    def _on_progress(self, event: PreviewProgress) -> None:
        if self._asked is None or event.question_id != self._asked.question_id:
            return
        is_first = event.stage is PreviewStage.WRITING and self._preview is _NOTHING
        self._keep(event.preview)
        self._show_preview(event.stage, event.num_to_read)
        if is_first:
            self.message_read.emit()

    def _on_made(self, asked: Asked[Preview], preview: Preview) -> None:
        if asked != self._asked:
            return
        self._preview = preview
        self._show_preview(None, 0, is_complete=True)

    def _keep(self, preview: Preview) -> None:
        """Keep the longer text: a preview that was interrupted writes the same tokens again."""
        if _num_tokens(preview) >= _num_tokens(self._preview):
            self._preview = preview

    def _show_preview(
        self, stage: PreviewStage | None, num_to_read: int, *, is_complete: bool = False
    ) -> None:
        self._show(preview_text(stage, num_to_read, self._preview, is_complete=is_complete))

    def _show(self, shown: PreviewText) -> None:
        if shown != self.shown:
            self.shown = shown
            self.changed.emit()


def _num_tokens(preview: Preview) -> int:
    return 0 if preview.reply is None else preview.reply.num_tokens


def _no_edit() -> OpenEdit | None:
    return None
