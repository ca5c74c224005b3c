"""The sheet of a start that has no window: a note while an earlier run closes, or a problem.

A window dresses its sheets with its style sheet. This sheet dresses itself. Main thread.
"""

from __future__ import annotations

from app.theme.palette import Theme
from app.theme.window_style import make_window_style
from app.widgets.message_sheet import MessageSheet
from app.words import window
from engine.problem import Problem


class LoneSheet(MessageSheet):
    """A message sheet without a window. It has one button, for Return and for Esc."""

    def __init__(self, theme: Theme, title: str, text: str, verb: str) -> None:
        super().__init__(title, text, "", None)
        self._theme = theme
        self.button = self.add_button(verb, is_default=True)
        self.button.clicked.connect(self.reject)
        self.button.setFocus()
        theme.changed.connect(self._dress)
        self._dress()

    def _dress(self) -> None:
        theme = self._theme
        self.setStyleSheet(make_window_style(theme.colors, theme.fonts, theme.zoom))


def show_problem(problem: Problem, theme: Theme) -> None:
    """Show a problem that keeps the window from opening. Return after the user closes the sheet."""
    text = f"{problem.cause} {problem.advice}".strip()
    sheet = LoneSheet(theme, problem.title, text, window.CLOSE)
    if problem.details:
        sheet.add_details(problem.details)
    sheet.exec()
