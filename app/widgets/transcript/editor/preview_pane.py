"""The preview of an answer below the text of the message editor. Used on the main thread only."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QWidget

from app.theme.tokens import Space, Type
from app.viewmodels.previews import PreviewText
from app.widgets.announcer import Announcer
from app.widgets.fields import TextField
from app.widgets.line_height import Sentences, line_height
from app.widgets.transcript.rows.look import Look
from app.words import previews as words

MAX_LINES = 6  # maximum number of visible lines; a longer text scrolls


class PreviewPane(QWidget):
    """A line that has the state of the preview, and the text below it, which can be selected.

    Its height never shrinks while the pane is on show, so that the buttons below do not move as the
    user types.
    """

    announced = Signal(str)  # argument: what the screen reader says

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._line = Sentences(self, "small")
        self._line.setProperty("tone", "secondary")
        self._text = TextField(Type.UI.line, self)
        self._text.setReadOnly(True)
        self._text.setAccessibleName(words.FIELD)
        self._text.setFrameShape(QFrame.Shape.NoFrame)
        self._text.setTabChangesFocus(True)
        self._text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._text.setProperty("tone", "secondary")
        self._text.document().setDocumentMargin(0)
        self._text.hide()
        self._shown = PreviewText()
        self._num_lines = 0  # lines of text that the height has room for
        self._announcer = Announcer(self)
        self._announcer.said.connect(self.announced)

    @property
    def line(self) -> str:
        return self._line.text()

    @property
    def text(self) -> str:
        return self._text.toPlainText()

    def set_look(self, look: Look) -> None:
        """Apply another theme or zoom."""
        face = look.face(Type.UI)
        self._text.lines.baseline = face.baseline
        self._text.set_line_height(face.line)
        self._text.setFont(face.font)
        self._text.setStyleSheet(
            f"font-size: {look.px(Type.UI.size)}px; color: {look.colors.secondary};"
        )

    def show_preview(self, shown: PreviewText) -> None:
        """Show a preview. Announce it once it is complete."""
        self._shown = shown
        self._line.setText(shown.line)
        if shown.text != self.text:
            self._text.setPlainText(shown.text)
        self._text.setVisible(bool(shown.text))
        # An unfinished text is not spoken: it changes with each token.
        self._announcer.say(words.spoken(shown.line, shown.text) if shown.is_complete else "")

    def reset(self) -> None:
        """Give up the height of earlier text."""
        self._num_lines = 0

    def height_in(self, width: int, most: int) -> int:
        """Return the height for a width. Text gets at most `most` pixels, but one line at least."""
        line, step = self._line_height(width), self._text.lines.line_height
        most_lines = min(MAX_LINES, max(1, (most - line - Space.XS) // step))
        if self._shown.text:
            self._num_lines = max(self._num_lines, min(self._lines_in(width), MAX_LINES))
        num_lines = min(self._num_lines, most_lines)
        return line + (num_lines * step + Space.XS if num_lines else 0)

    def _lines_in(self, width: int) -> int:
        """Return the number of lines of the text in a width, without a scroll bar."""
        self._text.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._text.resize(width, self._text.height())
        return sum(paragraph.lineCount() for paragraph in self._text.lines.paragraphs())

    def place(self, width: int, height: int) -> None:
        """Lay out the line and the text in a size that is height_in() of this width."""
        line = self._line_height(width)
        room = max(0, height - line - Space.XS)
        scrolls = self._lines_in(width) * self._text.lines.line_height > room
        policy = Qt.ScrollBarPolicy
        self._text.setVerticalScrollBarPolicy(
            policy.ScrollBarAlwaysOn if scrolls else policy.ScrollBarAlwaysOff
        )
        self._line.setGeometry(0, 0, width, line)
        self._text.setGeometry(0, line + Space.XS, width, room)

    def _line_height(self, width: int) -> int:
        """Return the height of the line. Without a text it has the height of one line."""
        least = line_height(self._line, Type.SMALL)
        return max(least, self._line.heightForWidth(width)) if self.line else least
