"""The content of an answer: reasoning, text, notes below the text, buttons. Main thread only.

While the user edits the answer, its only row is empty and reserves the space for the editor.
Otherwise the rows are, from top to bottom: the "Thinking" pill, the reasoning if it is open, the
Markdown text of the answer, a note if the answer was cut off or failed, the quoted documents, and
the footer with the buttons. While the answer waits to be continued, its state line stands in place
of the buttons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QSize

from app.theme.icons import Icon
from app.theme.tokens import Space, Type
from app.viewmodels.markdown import normalized
from app.viewmodels.state_line import StateKind, StateLine
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript.messages.body import MarkdownRows, RowKit, RowsFrom, Tone
from app.widgets.transcript.messages.content import MessageRows, MessageShape
from app.widgets.transcript.messages.places import BODY, TextSections
from app.widgets.transcript.rows.actions import answer_actions, no_actions
from app.widgets.transcript.rows.editor import EditorRow
from app.widgets.transcript.rows.error import ErrorRow
from app.widgets.transcript.rows.gap import GapRow
from app.widgets.transcript.rows.notes import CutRow, PillContent, PillRow, cut_link
from app.widgets.transcript.rows.quote_row import QuoteRow
from app.widgets.transcript.rows.row import RowAction, Target, TranscriptRow
from app.widgets.transcript.rows.text_row import TextRow
from app.words import transcript as words, units
from engine.types import Channel

_THINKING = Target(RowAction.TOGGLE_THINKING)
# The preview in the pill is taken from this number of characters at the end of the reasoning.
_PREVIEW_LEN = 300


class Thinking:
    """The reasoning of an answer: its text, its duration, and its rows while it is open."""

    def __init__(self, kit: RowKit, item: TranscriptItem) -> None:
        self.text = item.reasoning
        self.is_open = False
        self._kit = kit
        self._wrapped: set[int] = set()
        self._clock = kit.clock
        is_running = item.reasoning and item.status is ItemStatus.STREAMING
        # Clock times in seconds at which the reasoning started and ended. None before that time.
        self._started: float | None = None
        if is_running:
            self._started = self._clock() - (item.reasoning_s or 0.0)
        self._ended: float | None = self._clock() if is_running and item.text else None
        # Rows of the reasoning; None until the user opens the reasoning.
        self._rows: MarkdownRows | None = None
        self._shown: list[TranscriptRow] = []  # result of the last call of rows()
        self._pill: PillRow | None = None  # last pill; reused while its content stays the same

    def append_text(self, text: str) -> None:
        if self._started is None:
            self._started = self._clock()
        self.text += text
        if self._rows is not None:
            self._rows.append_text(text)

    def end(self) -> None:
        """Record the end of the reasoning: the answer's text has begun, or the answer has ended."""
        if self._ended is None:
            self._ended = self._clock()
        if self._rows is not None:
            self._rows.close()

    def resume(self) -> None:
        """Reset the start and end times, because a continued answer may contain more reasoning."""
        self._started = self._ended = None
        self._rows = self._load() if self.is_open else None

    def replace_text(self, text: str) -> None:
        """Replace the streamed reasoning with the stored reasoning if they differ."""
        if text != self.text:
            self.text = text
            self._rows = self._load() if self.is_open else None

    def toggle(self) -> None:
        self.is_open = not self.is_open
        if self.is_open and self._rows is None:
            self._rows = self._load()

    def rebuild(self) -> None:
        self._pill = None
        if self._rows is not None:
            self._rows.rebuild()

    @property
    def markdown(self) -> Sequence[MarkdownRows]:
        return (self._rows,) if self.is_open and self._rows is not None else ()

    def rows(self) -> list[TranscriptRow]:
        """Return the rows of the reasoning, or an empty list if the reasoning is closed.

        Rows that have not changed are the same objects as in the previous call.
        """
        if not self.is_open or self._rows is None:
            return []
        changed = self._rows.take_rows()
        self._shown[changed.first :] = changed.rows
        return self._shown

    def pill(self, item: TranscriptItem, *, running: bool) -> PillRow:
        icon = Icon.CHEVRON_DOWN_SMALL if self.is_open else Icon.CHEVRON_RIGHT_SMALL
        aside = self._last_line() if running and not self.is_open else ""
        label = self._label(item, running=running)
        content = PillContent(label, icon, aside)
        if self._pill is None or self._pill.content != content:
            self._pill = PillRow(self._kit.look, _THINKING, content)
        return self._pill

    def _load(self) -> MarkdownRows:
        rows = MarkdownRows(self._kit, self._wrapped, Tone.REASONING)
        rows.append_text(self.text)
        if self._ended is not None:
            rows.close()
        return rows

    def _label(self, item: TranscriptItem, *, running: bool) -> str:
        started = self._started
        if running:
            spent = 0.0 if started is None else self._clock() - started
            return words.thinking_for(units.seconds(int(spent))) if spent >= 1 else words.THINKING
        spent_s = item.reasoning_s
        if spent_s is None and started is not None and self._ended is not None:
            spent_s = self._ended - started
        if spent_s is None:
            return words.THOUGHT
        return words.thought_for(units.seconds(f"{max(0.1, spent_s):.1f}"))

    def _last_line(self) -> str:
        end = self.text[-_PREVIEW_LEN:].rstrip()
        return end[end.rfind("\n") + 1 :].strip()


class AnswerContent:
    """The rows of an answer, updated while the answer is streamed. Implements MessageContent.

    While an answer is streamed, its text arrives only through append_delta(). update() ignores the
    text of a streaming item.
    """

    def __init__(self, kit: RowKit, item: TranscriptItem) -> None:
        self.item = item
        self.is_changed = True
        self._kit = kit
        self._look = kit.look  # Look (theme and zoom) that the rows were made with
        self._thinking = Thinking(kit, item)
        if item.status is not ItemStatus.STREAMING:
            self._thinking.end()
        self._wrapped: set[int] = set()  # source offsets of the code blocks with wrapped lines
        self._body = self._load(item)
        self._empty: TextRow | None = None  # empty row that shows the caret until text arrives
        self._details_open = False  # True while the details of the error are shown
        self._num_before = 0  # number of rows above the text of the answer
        self._editor = EditorRow(QSize(0, 0))
        self._line: StateLine | None = None  # state line at the end of the answer
        self._line_row: GapRow | None = None  # kept while the line changes, for clicks on its link

    @property
    def text(self) -> str:
        return self._body.text

    @property
    def markdown(self) -> Sequence[MarkdownRows]:
        return (*self._thinking.markdown, self._body)

    @property
    def editor_size(self) -> QSize:
        """Size of the space that is reserved for the editor while the user edits the answer."""
        return self._editor.size

    @editor_size.setter
    def editor_size(self, size: QSize) -> None:
        self._editor = EditorRow(size)
        self.is_changed = True

    def text_width(self, width: int) -> int:
        """Return the width of a text line in the editor, which is as wide as the column."""
        return width - 2 * self._kit.look.px(Space.L)

    @property
    def is_streaming(self) -> bool:
        return self.item.status is ItemStatus.STREAMING

    @property
    def is_thinking(self) -> bool:
        """True while the answer streams reasoning and has no text yet."""
        return self.is_streaming and bool(self._thinking.text) and self._body.is_empty

    @property
    def is_writing(self) -> bool:
        """True while the caret is shown: text of the answer arrives or may arrive soon."""
        if not self.is_streaming or self.is_thinking:
            return False
        if self._line is not None:
            return False
        line = self.item.line_above
        waits = line is not None and (line.kind is StateKind.WAITING or line.fraction is not None)
        return not (waits and self._body.is_empty)

    def set_line(self, line: StateLine | None) -> None:
        """Set the state line at the end of the answer, in place of the buttons."""
        if line != self._line:
            self._line = line
            self.is_changed = True

    def append_delta(self, channel: Channel, text: str) -> None:
        """Append streamed text to the reasoning or to the answer."""
        if channel is Channel.REASONING:
            self._thinking.append_text(text)
        else:
            self._thinking.end()
            self._body.append_text(text)
        self.is_changed = True

    def tick(self) -> None:
        """Update the seconds on the "Thinking" pill at the next layout."""
        self.is_changed = True

    def plain_text(self) -> None:
        """Return None: an answer is never plain text, but Markdown."""

    def source_text(self, ordinal: int) -> str:
        return self._body.text if ordinal >= BODY else normalized(self._thinking.text)

    def update(self, item: TranscriptItem) -> None:
        """Replace the item with a newer state of the same answer."""
        if item.status is ItemStatus.STREAMING and self.is_streaming:
            item = replace(item, text=self.item.text, reasoning=self.item.reasoning)
        else:
            self._take_text(item)
        self.is_changed |= item != self.item
        self.item = item

    def toggle(self, action: RowAction) -> None:
        if action is RowAction.TOGGLE_DETAILS:
            self._details_open = not self._details_open
        else:
            self._thinking.toggle()
        self.is_changed = True

    def release(self) -> bool:
        if self.is_streaming or self._thinking.is_open or self.item.editing:
            return False
        self._body = self._load(self.item)
        return True

    def make_rows(self, shown: Sequence[TranscriptRow], width: int) -> MessageRows:  # noqa: ARG002
        self.is_changed = False
        look = self._kit.look
        if look is not self._look:
            self._look, self._empty, self._line_row = look, None, None
            self._body.rebuild()
            self._thinking.rebuild()
        if self.item.editing:
            self._body.rebuild()  # its rows are not shown, so they cannot stay after the edit
            self._num_before = 0
            return MessageRows(0, [self._editor], self._shape(0, 0))
        head, num_before = self._head_rows(), self._num_before
        reasoning = self._thinking.rows()
        _set_gap(reasoning, look.px(Space.M))
        before = [*head, *reasoning]
        changed = self._body.take_rows()
        kept = shown[num_before : num_before + changed.first]
        num_body = len(kept) + len(changed.rows)
        if not num_body:
            changed = RowsFrom(0, self._placeholder())
            num_body = len(changed.rows)
        self._num_before = len(before)
        shape = self._shape(len(head), num_body)
        rows = [*changed.rows, *self._tail_rows()]
        if kept and before == shown[:num_before]:
            return MessageRows(num_before + changed.first, rows, shape)
        body = [*kept, *rows]
        body[0].gap = look.px(Space.L) if head else 0
        return MessageRows(0, [*before, *body], shape)

    def _shape(self, num_head: int, num_body: int) -> MessageShape:
        reasoning = range(num_head, self._num_before)
        body = range(self._num_before, self._num_before + num_body)
        has_caret = num_body and self.is_writing
        return MessageShape(
            text=TextSections(reasoning, body), caret_row=body[-1] if has_caret else None
        )

    def _load(self, item: TranscriptItem) -> MarkdownRows:
        body = MarkdownRows(self._kit, self._wrapped)
        body.append_text(item.text)
        if item.status is not ItemStatus.STREAMING:
            body.close()
        return body

    def _take_text(self, item: TranscriptItem) -> None:
        """Replace the streamed text with the text of the item.

        Call this method when the answer has ended or is continued, or if the answer was not
        streamed.
        """
        self._thinking.replace_text(item.reasoning)
        is_open = item.status is ItemStatus.STREAMING
        if is_open:
            self._thinking.resume()
        if item.text or not is_open:
            self._thinking.end()
        if is_open or normalized(item.text) != self._body.text:
            self._body = self._load(item)
        else:
            self._body.close()

    def _head_rows(self) -> list[TranscriptRow]:
        if not self._thinking.text:
            return []
        return [self._thinking.pill(self.item, running=self.is_thinking)]

    def _placeholder(self) -> list[TranscriptRow]:
        """Return an empty row that shows the caret while an answer has no text."""
        if not self.is_streaming or self.is_thinking:
            return []
        if self._empty is None:
            look = self._kit.look
            self._empty = TextRow(look, Type.BODY, (), look.colors.text)
        return [self._empty]

    def _tail_rows(self) -> list[TranscriptRow]:
        look, item = self._kit.look, self.item
        rows: list[TranscriptRow] = []
        if item.cut:
            rows.append(CutRow(look, item.cut, cut_link(item)))
        if item.problem is not None:
            rows.append(ErrorRow(look, item.problem, is_open=self._details_open))
        for row in rows:
            row.gap = look.px(Space.M)
        quotes = [QuoteRow(look, place, file) for place, file in enumerate(item.quotes)]
        _set_gap(quotes, look.px(Space.S))
        rows += quotes
        footer = self._footer()
        footer.gap = look.px(Space.HAIR)  # small, because the buttons have empty space at their top
        return [*rows, footer]

    def _footer(self) -> TranscriptRow:
        look = self._look
        if self._line is not None:
            row = self._line_row = self._line_row or GapRow(look)
            row.show(None, self._line)
            return row
        self._line_row = None
        return no_actions(look) if self.is_streaming else answer_actions(look, self.item)


def _set_gap(rows: Sequence[TranscriptRow], gap: int) -> None:
    if rows:
        rows[0].gap = gap
