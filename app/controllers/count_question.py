"""The question for the tokens of a prompt. Main thread.

It is asked again when its answer may have changed. While requests run, the engine answers few
questions, and the oldest one first. A question whose answer is no longer wanted is therefore
withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.engine_bridge import EngineBridge
from engine.commands import Asked
from engine.questions import NextPrompt, TokensCounted
from engine.types import Request


class CountQuestion(QObject):
    """At most one open question. A newer one withdraws the one before."""

    due = Signal()  # the delay of wait() has passed

    def __init__(self, bridge: EngineBridge, delay_ms: int = 0) -> None:
        super().__init__()
        self._bridge = bridge
        self._asked: Asked[TokensCounted] | None = None  # the question whose answer is awaited
        self._is_over = False  # True once the app is closing
        self._delay = QTimer(self, singleShot=True, interval=delay_ms)
        self._delay.timeout.connect(self.due)

    @property
    def is_pending(self) -> bool:
        """True if an answer is awaited, or the delay runs."""
        return self._asked is not None or self._delay.isActive()

    def ask(
        self,
        prompt: NextPrompt | Request,
        on_counted: Callable[[TokensCounted], object],
        on_refused: Callable[[], object] = lambda: None,
    ) -> None:
        """Ask for a prompt's tokens. Call one of two functions unless the question is withdrawn.

        Args:
            prompt: the prompt.
            on_counted: gets the tokens.
            on_refused: called if the engine cannot make the prompt, such as for a template that
                refuses its messages.
        """
        self.withdraw()
        if not self._is_over:
            asked = self._asked = self._bridge.engine.count_tokens(prompt)
            self._bridge.when_answered(
                asked,
                lambda counted: self._on_answered(asked, partial(on_counted, counted)),
                lambda _problem: self._on_answered(asked, on_refused),
            )

    def wait(self) -> None:
        """Withdraw the open question. Emit `due` after the delay, which begins again."""
        self.withdraw()
        if not self._is_over:
            self._delay.start()

    def withdraw(self) -> None:
        """Withdraw the open question, and end the delay."""
        self._delay.stop()
        asked, self._asked = self._asked, None
        if asked is not None:
            self._bridge.engine.withdraw(asked)

    def stop(self) -> None:
        """Ask nothing more, because the app is closing. Later calls then have no effect."""
        self._is_over = True
        self.withdraw()

    def _on_answered(self, asked: Asked[TokensCounted], act: Callable[[], object]) -> None:
        if asked == self._asked:
            self._asked = None
            act()
