"""The content of a user's message: text in a bubble, or the editor. Main thread only.

The bubble contains the text and, if the text is long, a link that folds or unfolds it. The row
below the bubble has the buttons of the message and the state line of its answer. While the user
edits the message, an empty row reserves the space for the editor and replaces the bubble.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import QSize

from app.theme.tokens import Space, Type
from app.viewmodels.figures import about
from app.viewmodels.find import ROW_END
from app.viewmodels.markdown import normalized
from app.viewmodels.state_line import StateLine
from app.viewmodels.transcript import TranscriptItem
from app.widgets.transcript.messages.body import MarkdownRows, RowKit, RowsFrom, Tone, plain_rows
from app.widgets.transcript.messages.bubble import FOLD_LINES, FOLD_TEXT, Bubble
from app.widgets.transcript.messages.content import MessageRows, MessageShape
from app.widgets.transcript.messages.places import TextSections
from app.widgets.transcript.rows.actions import user_actions
from app.widgets.transcript.rows.editor import EditorRow
from app.widgets.transcript.rows.file_row import file_rows
from app.widgets.transcript.rows.gap import GapRow
from app.widgets.transcript.rows.notes import LinkRow
from app.widgets.transcript.rows.row import RowAction, Target, TranscriptRow
from app.widgets.transcript.rows.text_row import TextRow
from app.words import transcript as words

# A message with a code fence or a list is parsed as Markdown. Any other message is shown as typed.
_MARKDOWN = re.compile(r"^ {0,3}(?:```|~~~|[-*+] |\d{1,9}[.)] )", re.MULTILINE)
_FOLD = Target(RowAction.TOGGLE_FOLD)


class UserContent:
    """The rows of a user's message. Implements MessageContent.

    A folded message shows the first FOLD_LINES lines of its text. Each call of make_rows() makes
    these rows again, because the width determines how much text fits into the lines.
    """

    def __init__(self, kit: RowKit, item: TranscriptItem) -> None:
        self.item = item
        self.is_changed = True
        self._kit = kit
        self._look = kit.look  # Look (theme and zoom) of the current rows
        self._text = normalized(item.text)
        self._is_unfolded = False
        self._shows_documents = False  # True: each document of the folder has a row
        self._is_long = False  # True if a folded message hides a part of the text
        self._markdown: MarkdownRows | None = None  # the parsed text if it is Markdown, else None
        self._wrapped: set[int] = set()  # source offsets of the code blocks with wrapped lines
        self._plain: list[TranscriptRow] = []  # rows of the text if it is not Markdown
        self._editor = EditorRow(QSize(0, 0))
        self._gap_row: GapRow | None = None
        self._line: StateLine | None = None  # state line of the answer to this message

    @property
    def text(self) -> str:
        return self.item.text

    @property
    def markdown(self) -> Sequence[MarkdownRows]:
        return () if self._markdown is None else (self._markdown,)

    @property
    def editor_size(self) -> QSize:
        """Size of the space that is reserved for the editor while the user edits the message."""
        return self._editor.size

    @editor_size.setter
    def editor_size(self, size: QSize) -> None:
        self._editor = EditorRow(size)
        self.is_changed = True

    def set_line(self, line: StateLine | None) -> None:
        """Set the state line of the answer. It is shown between the message and the answer."""
        if line != self._line:
            self._line = line
            self.is_changed = True

    def text_width(self, width: int) -> int:
        """Return the maximum width of the text in the bubble, for a given column width."""
        return Bubble(self._kit.look, 0).text_width(width)

    def plain_text(self) -> str | None:
        """Return the typed text, "" while the message is edited, or None for a Markdown text."""
        if self.item.editing:
            return ""
        return None if _MARKDOWN.search(self._text) else self._text.replace("\n", ROW_END)

    def source_text(self, ordinal: int) -> str:  # noqa: ARG002 - part of the protocol
        return self._text

    def update(self, item: TranscriptItem) -> None:
        if item.text != self.item.text or bool(item.files) != bool(self.item.files):
            self._text = normalized(item.text)
            self._drop_text()
        self.is_changed |= item != self.item
        self.item = item

    def toggle(self, action: RowAction) -> None:
        if action is RowAction.TOGGLE_DOCUMENTS:
            self._shows_documents = not self._shows_documents
        else:
            self._is_unfolded = not self._is_unfolded
        self._drop_text()
        self.is_changed = True

    def release(self) -> bool:
        if self.item.editing:
            return False
        self._drop_text()
        return True

    def make_rows(self, shown: Sequence[TranscriptRow], width: int) -> MessageRows:  # noqa: ARG002
        self.is_changed = False
        look = self._kit.look
        if look is not self._look:
            self._look, self._gap_row = look, None
            self._drop_text()
        below = self._gap_row = self._gap_row or GapRow(look)
        if self.item.editing:
            self._drop_text()  # its rows are not shown, so they cannot stay after the edit
            below.show(None, self._line)
            below.gap = 0
            return MessageRows(0, [self._editor, below], self._shape(range(0), 0))
        if self._is_unfolded:
            texts = self._unfolded_rows()
        else:
            texts = self._folded_rows(self.text_width(width))
        files = self._file_rows()
        first = texts.first + len(files) if texts.first else 0
        num_text = texts.first + len(texts.rows)
        bubble = [*texts.rows, *self._fold_rows(self.text_width(width))]
        num_bubble = len(files) + texts.first + len(bubble)
        if texts.first == 0:
            bubble = [*files, *bubble]
        below.show(user_actions(look, self.item), self._line)
        below.gap = look.px(Space.M)
        if texts.first == 0 and bubble:
            bubble[0].gap = look.px(Space.M)
            if files and len(bubble) > len(files):
                bubble[len(files)].gap = look.px(Space.S)
        shape = self._shape(range(len(files), len(files) + num_text), num_bubble)
        return MessageRows(first, [*bubble, below], shape)

    def _shape(self, text: range, num_bubble: int) -> MessageShape:
        return MessageShape(
            text=TextSections(body=text),
            bubble=Bubble(self._kit.look, num_bubble),
            is_folded=self._is_long and not self._is_unfolded,
            is_cut_by_width=not self._is_unfolded,
        )

    def _file_rows(self) -> list[TranscriptRow]:
        """Return the rows of the attached pictures and files, which are above the text."""
        item = self.item
        shows = self._shows_documents
        return file_rows(self._kit.look, item.files, item.folder, shows_documents=shows)

    def _drop_text(self) -> None:
        self._markdown = None
        self._plain = []

    def _load_text(self, text: str) -> None:
        """Parse the first slice of a Markdown text, or make the rows of a plain text."""
        if _MARKDOWN.search(text):
            self._markdown = MarkdownRows(self._kit, self._wrapped, Tone.TYPED)
            self._markdown.append_text(text)
            self._markdown.close()
            self._markdown.feed()
        elif text or not self.item.files:
            self._plain = plain_rows(self._kit.look, text, 0)

    def _text_rows(self) -> RowsFrom:
        if self._markdown is not None:
            return self._markdown.take_rows()
        return RowsFrom(0, self._plain)

    def _unfolded_rows(self) -> RowsFrom:
        if self._markdown is None and not self._plain:
            self._load_text(self._text)
        return self._text_rows()

    def _folded_rows(self, width: int) -> RowsFrom:
        """Return the rows of the first FOLD_LINES lines, and update _is_long."""
        head = "\n".join(self._text[:FOLD_TEXT].split("\n", FOLD_LINES)[:FOLD_LINES])
        self._is_long = len(head) < len(self._text)
        rows: list[TranscriptRow] = []
        room = FOLD_LINES
        for row in self._whole_rows(head):
            if room <= 0:
                self._is_long = True
                break
            row.width = row.width_within(width)
            row.height = row.measure(row.width)
            if row.num_lines > room and isinstance(row, TextRow) and row.inset is None:
                row.max_lines = room
                row.release()
                row.height = row.measure(row.width)
                self._is_long = True
            room -= row.num_lines
            rows.append(row)
        return RowsFrom(0, rows)

    def _whole_rows(self, text: str) -> Sequence[TranscriptRow]:
        """Return the rows of a text of at most FOLD_TEXT characters, in about 8 ms.

        Later slices would never be parsed, because make_rows() parses from the beginning each time.
        """
        self._drop_text()
        self._load_text(text)
        for part in self.markdown:
            while not part.is_fed:
                part.feed()
        return self._text_rows().rows

    def _fold_rows(self, width: int) -> list[TranscriptRow]:
        if not self._is_long:
            return []
        label = words.SHOW_LESS if self._is_unfolded else self._more(width)
        row = LinkRow(self._kit.look, _FOLD, label)
        row.gap = self._kit.look.px(Space.XS)
        return [row]

    def _more(self, width: int) -> str:
        """Return the label that unfolds the text, with the number of lines on screen.

        The lines of a text that is longer than FOLD_TEXT are estimated: to lay it out takes long.
        """
        if len(self._text) > FOLD_TEXT:
            per_line = max(1, int(width / self._look.face(Type.BODY).average))
            lines = self._text.split("\n")
            return words.show_about(about(sum(1 + len(line) // per_line for line in lines)))
        folded = self._markdown, self._plain
        num_lines = 0
        for row in self._whole_rows(self._text):
            row.measure(row.width_within(width))
            num_lines += row.num_lines
        self._markdown, self._plain = folded
        return words.show_all_lines(num_lines) if num_lines > FOLD_LINES else words.SHOW_ALL
