"""The app as tests.benchmarks.quit starts and quits it, in a process of its own.

    python -m tests.benchmarks.quitting_window DATA_DIR MODEL_DIR TEXT

Continues the answer that the last start left, if it was cut off, and stops it. Then it sends the text in a new
chat. Prints a line of JSON for each step:

    continued  of the cut-off answer: its characters, and the tokens that were restored and fed
    writing    the answer to the text has begun: its conversation, and its characters so far
    hidden     the window is gone: time.monotonic()
"""

from __future__ import annotations

import json
import sys
import time

from PySide6.QtCore import QObject

from app.__main__ import main as run_app
from app.controllers.core import Core
from app.conversation.replies import can_continue
from app.conversation.tree import Conversation, shown_path
from app.store.conversations import ConversationStore
from app.widgets.main_window import MainWindow
from engine.clients import RequestEvent
from engine.events import RequestFinished, RequestStarted, TextDelta
from engine.types import ConversationId

_LEAST_PIECES = 16  # pieces of text before an answer counts as begun


class Steps(QObject):
    """The steps of one start of the app."""

    def __init__(self, core: Core, text: str) -> None:
        super().__init__()
        self._core = core
        self._text = text
        self._num_pieces = 0
        self._continued: Conversation | None = None  # the chat of the answer that is continued

    def begin(self) -> None:
        def newest(store: ConversationStore) -> ConversationId | None:
            return next((one.conversation_id for one in store.summaries()), None)

        def on_newest(found: ConversationId | None) -> None:
            self._core.bridge.request_changed.connect(self._on_event)
            if found is None:
                self._send()
            else:
                self._core.desk.open(
                    found, self._resume, lambda problem: report(error=str(problem))
                )

        self._core.store.run(newest, on_newest)

    def _resume(self, chat: Conversation) -> None:
        reply = shown_path(chat)[-1]
        if not can_continue(chat, reply.node_id):  # it ended before the app was quit
            self._send()
            return
        self._continued = chat
        if not self._core.chat.resume(chat.conversation_id, reply.node_id):
            report(error="the answer is not continued")

    def _send(self) -> None:
        self._continued = None
        self._num_pieces = 0
        self._core.library.new_chat()
        if not self._core.chat.send(self._core.library.current, self._text):
            report(error="the message is not sent")

    def _on_event(self, event: RequestEvent) -> None:
        chat = self._continued
        match event:
            case RequestStarted(plan=plan) if chat is not None:
                report(
                    continued=len(shown_path(chat)[-1].content),
                    restored=plan.restored,
                    fed=plan.replayed + plan.read,
                )
            case TextDelta() if chat is not None:
                self._core.turns.stop(chat.conversation_id)
            case RequestFinished() if chat is not None or self._num_pieces < _LEAST_PIECES:
                self._send()  # also after an answer that was too short
            case TextDelta():
                self._num_pieces += 1
                if self._num_pieces == _LEAST_PIECES:
                    (live,) = self._core.turns.live.values()
                    current = self._core.library.current
                    report(writing=current, characters=len(live.content) + len(live.reasoning))
            case _:
                pass


def report(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main() -> int:
    data, model, text = sys.argv[1:]
    steps: list[Steps] = []
    start, hide = Core.start, MainWindow.hide

    def start_and_begin(self: Core) -> None:
        start(self)
        steps.append(Steps(self, text))
        steps[0].begin()

    def hide_and_report(self: MainWindow) -> None:
        hide(self)
        report(hidden=time.monotonic())

    Core.start = start_and_begin
    MainWindow.hide = hide_and_report
    return run_app(["--data-dir", data, "--model", model])


if __name__ == "__main__":
    sys.exit(main())
