"""`--selftest`: a check that the installed app works. It runs in the app's window. Main thread.

The test types messages into the composer and waits for the answers. It uses the model that the app
loads. It starts two chats, then returns to the first one and continues it. The engine must not feed
any token of the first chat again, and the store must have the same messages as the window. The
findings are printed or written to a JSON file. Then the app quits, with exit status 0 if every
check passed.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from time import time

import psutil
from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from app.controllers.core import Core
from app.conversation.tree import Conversation, Setup, shown_path
from app.options import SelfTestOptions
from app.viewmodels.models import ModelPhase
from app.widgets.main_window import MainWindow
from engine.problem import Problem
from engine.types import ConversationId

# Time limit of the self-test: enough for a machine without a GPU on which all libraries are
# imported for the first time.
LIMIT_MS = 180_000
MAX_TOKENS = 16
FIRST, SECOND, THIRD = "What is the capital of France?", "Name a colour.", "And of Italy?"


@dataclass(slots=True)
class Findings:
    """The results of a self-test. Times are milliseconds since the start of the process."""

    python: str = platform.python_version()
    system: str = f"{platform.system()} {platform.release()} {platform.machine()}"
    home: str = sys.prefix
    chats_found: int = 0  # chats that an earlier run left in the same data folder
    window_ms: float = 0.0  # time of the first paint of the window
    model_ms: float = 0.0  # time at which the model was loaded
    model: str = ""  # path of the model
    answers: list[str] = field(default_factory=list[str])
    # Milliseconds from sending each message to the first token of its answer.
    first_token_ms: list[float] = field(default_factory=list[float])
    # number of cached tokens that were reused when the first chat was continued
    restored: int = 0
    # Number of earlier tokens that were fed again when the first chat was continued.
    replayed: int = 0
    read: int = 0  # number of new tokens that were fed when the first chat was continued
    done_ms: float = 0.0  # time at which the test ended; 0 until then
    problems: list[str] = field(default_factory=list[str])  # texts of the failed checks

    def lines(self) -> Iterator[str]:
        for name, value in asdict(self).items():
            yield f"{name}: {value}"


class SelfTest(QObject):
    """The running self-test. Signals of the app start its steps. The last step quits the app."""

    def __init__(self, window: MainWindow, core: Core, options: SelfTestOptions) -> None:
        super().__init__(window)
        self._window = window
        self._core = core
        self._report = options.report
        self._first: ConversationId | None = None
        self.findings = Findings()
        self._limit = QTimer(self, singleShot=True, interval=LIMIT_MS)
        self._limit.timeout.connect(lambda: self._fail("it took too long"))
        self._limit.start()
        window.painted.connect(self._on_painted)
        core.failed.connect(self._on_problem)
        core.models.status_changed.connect(self._on_status)
        core.turns.answered.connect(self._on_answered)

    def _on_painted(self) -> None:
        self.findings.window_ms = _since_start_ms()

    def _on_problem(self, problem: Problem) -> None:
        self._fail(str(problem))

    def _on_status(self) -> None:
        status = self._core.models.status
        if status.phase in {ModelPhase.NONE, ModelPhase.FAILED}:
            self._fail(str(status.problem or "no model was found"))
        if status.phase is ModelPhase.READY and not self.findings.model:
            self.findings.model = status.facts.path if status.facts else ""
            self.findings.model_ms = _since_start_ms()
            self.findings.chats_found = len(self._core.library.listed.unarchived)
            self._core.library.new_chat()
            self._first = self._core.library.current
            self._ask(FIRST)

    def _ask(self, text: str) -> None:
        library, chat = self._core.library, self._core.chat
        chat.set_setup(library.current, Setup(temperature=0.0, max_tokens=MAX_TOKENS))
        composer = self._window.pane.composer
        composer.type(text)
        composer.button.click()

    def _on_answered(self, conversation_id: ConversationId) -> None:
        conversation = self._core.desk.get(conversation_id)
        reply = shown_path(conversation)[-1]
        usage = reply.generation and reply.generation.usage
        if reply.problem is not None or usage is None or not reply.content.strip():
            self._fail(str(reply.problem or "an answer is empty"))
            return
        self.findings.answers.append(reply.content)
        self.findings.first_token_ms.append(round(usage.ttft_ms, 1))
        match len(self.findings.answers):
            case 1:
                self._core.library.new_chat()
                self._ask(SECOND)
            case 2:
                assert self._first is not None
                self._core.library.select(self._first)
                self._ask(THIRD)
            case _:
                plan = usage.plan
                self.findings.restored, self.findings.replayed = plan.restored, plan.replayed
                self.findings.read = plan.read
                self._check(conversation)

    def _check(self, shown: Conversation) -> None:
        if self.findings.replayed or not self.findings.restored:
            self._fail("the chat that was returned to was read again")
            return

        def on_stored(stored: Conversation) -> None:
            if stored.nodes != shown.nodes:
                self._fail("the store has another conversation than the window")
            else:
                self._end()

        store, name = self._core.store, shown.conversation_id
        store.run(lambda store: store.load(name), on_stored, lambda error: self._fail(str(error)))

    def _fail(self, why: str) -> None:
        self.findings.problems.append(why)
        self._end()

    def _end(self) -> None:
        if self.findings.done_ms:
            return
        self._limit.stop()
        self.findings.done_ms = _since_start_ms()
        try:
            self._report_findings()
        except OSError as error:
            self.findings.problems.append(str(error))
            sys.stderr.write(f"{error}\n")
        QApplication.exit(1 if self.findings.problems else 0)

    def _report_findings(self) -> None:
        if self._report is None:
            sys.stdout.write("\n".join(self.findings.lines()) + "\n")
        else:
            text = json.dumps(asdict(self.findings), indent=2)
            self._report.write_text(text + "\n", encoding="utf-8")


def _since_start_ms() -> float:
    return round((time() - psutil.Process().create_time()) * 1000)
