"""The transcript: a scroll area that paints all messages of the visible branch. Main thread only.

A message consists of rows. The view paints the rows itself, without widgets or a QTextDocument.
Only visible rows are laid out, so a conversation of thousands of messages opens in milliseconds.
The cost of adding streamed text does not grow with the length of the answer. ChatPane has a view,
and so has each AnswerColumn. The view makes the parts and connects them:

    MessageStack    has the layouts of all messages and their positions
    ScrollAnchor    keeps the visible text in place when heights change
    Reflow          lays out and repaints; the view calls it when items or text change
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter

from PySide6.QtCore import QPointF, Qt, QUrl, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QDesktopServices,
    QFocusEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractScrollArea,
    QApplication,
    QFrame,
    QLineEdit,
    QWidget,
)
from typing_extensions import override

from app.store.pictures import PictureFiles
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.viewmodels.lexer_shelf import LexerShelf
from app.viewmodels.markdown import make_parser, make_typed_parser
from app.viewmodels.transcript import ScrollPosition, TranscriptItem
from app.widgets.key_press import is_typing
from app.widgets.tips import hide_tip
from app.widgets.transcript.accessibility.canvas import TranscriptCanvas
from app.widgets.transcript.accessibility.reader import MessageReader
from app.widgets.transcript.editor.host import EditorHost
from app.widgets.transcript.flush import Delta, DeltaBuffer
from app.widgets.transcript.input.click_actions import ClickActions
from app.widgets.transcript.input.context_menu import ContextMenu
from app.widgets.transcript.input.keys import Keys
from app.widgets.transcript.input.mouse import MouseFilter
from app.widgets.transcript.input.pointer import Pointer
from app.widgets.transcript.input.target_focus import TargetFocus
from app.widgets.transcript.jump import JumpButton
from app.widgets.transcript.layout.placement import ScrollAnchor
from app.widgets.transcript.layout.stack import (
    BOTTOM_MARGIN,
    MessageStack,
    TranscriptStatistics,
)
from app.widgets.transcript.layout.text_selection import TextSelection
from app.widgets.transcript.messages.body import RowKit
from app.widgets.transcript.painting import TranscriptPainter
from app.widgets.transcript.reflow import Reflow
from app.widgets.transcript.rows.find_matches import FindMatches
from app.widgets.transcript.rows.formula_shelf import FormulaShelf
from app.widgets.transcript.rows.layout_cache import LayoutCache
from app.widgets.transcript.rows.look import Look, PaperLook
from app.widgets.transcript.rows.picture_shelf import PictureShelf
from app.widgets.transcript.rows.row import Target
from app.widgets.transcript.rows.shelves import Shelves
from app.widgets.transcript.search.find_controller import FindController
from app.widgets.transcript.search.marks import MarkedBar
from app.widgets.transcript.search.match_finder import MatchFinder
from app.widgets.transcript.search.word_marks import WordMarks
from app.words import transcript as words
from engine.types import Channel

NO_PICTURES = PictureFiles(Path(os.devnull))  # a view of messages without pictures

# If the view loses the focus for one of these reasons, the focused link or button stays marked.
FOCUS_SURVIVES = (Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason)


class TranscriptView(QAbstractScrollArea):
    """The widget that shows the messages of a conversation.

    The rules of automatic scrolling are in layout/scroll.py.
    """

    quoted = Signal(str)  # argument: text of the transcript that the user quotes in a reply
    typed = Signal(str)  # argument: text that the user typed; it belongs in the composer
    # Emitted when a key moved the focus; argument: True if a link or button is focused.
    focus_moved = Signal(bool)
    # The tooltip of a button is shown. Arguments: key of the message, RowAction, a function that
    # adds the cost of the action to the tooltip.
    tip_shown = Signal(str, object, object)

    def __init__(
        self,
        theme: Theme,
        parent: QWidget | None = None,
        *,
        pictures: PictureFiles = NO_PICTURES,
        clock: Callable[[], float] = monotonic,
        open_url: Callable[[QUrl], object] = QDesktopServices.openUrl,
        beside: Shelves | None = None,
    ) -> None:
        """Make an empty transcript.

        Args:
            theme: colours, fonts and icons.
            parent: the widget that contains the view.
            pictures: files of attached pictures.
            clock: returns monotonic time in seconds.
            open_url: opens a link.
            beside: the shelves of the main transcript, which exists longer. This view is then a
                narrow column.
        """
        super().__init__(parent)
        self._theme = theme
        self._zoom = 1.0
        self._owns_shelves = beside is None
        self._margin = Space.XL if beside is None else Space.M
        canvas = self._canvas = TranscriptCanvas(self)
        self.setViewport(canvas)
        bar = MarkedBar(theme, self)
        self.setVerticalScrollBar(bar)
        self.shelves = beside or Shelves(
            LexerShelf(), FormulaShelf(self), PictureShelf(pictures, self)
        )
        look = self._make_look()
        parsers = make_parser(), make_typed_parser()
        self._kit = RowKit(look, self.shelves.lexers, LayoutCache(), *parsers, FindMatches(), clock)
        stack = self._stack = MessageStack(self._kit)
        placement = self._placement = ScrollAnchor(self, stack, self._kit)
        self._buffer = DeltaBuffer(self)
        selection = self.selection = TextSelection(stack, self)
        finder = MatchFinder(stack, self._kit.matches)
        self.find_controller = FindController(stack, finder, placement, selection, bar)
        self.word_marks = WordMarks(stack, self._kit.matches, canvas)
        pointer = self._pointer = Pointer(stack, placement, selection, self)
        focus = self._focus = TargetFocus(stack, placement, pointer, canvas.height)
        self._painter = TranscriptPainter(stack, placement, pointer, selection, focus)
        clicks = self.click_actions = ClickActions(stack, placement, pointer, selection, open_url)
        self._jump = JumpButton(theme, canvas)
        self.editor_host = EditorHost(stack, theme, canvas)
        reflow = self._reflow = Reflow(stack, placement, canvas, self.editor_host, self._jump)
        show = reflow.show_message
        canvas.reader = MessageReader(stack, placement, canvas, clicks, focus, show)
        self._menu = ContextMenu(stack, placement, clicks, selection, self.quoted.emit)
        self._keys = Keys(placement, selection, self.jump_to_start, self.jump_to_latest, focus)
        self._mouse = MouseFilter(pointer, self)
        self._build()
        self._connect()

    # Called by TranscriptBinding, AnswerColumn and other widgets of the window.

    def show_conversation(
        self,
        items: Sequence[TranscriptItem],
        position: ScrollPosition | None = None,
        *,
        name: str = "",
    ) -> None:
        """Show another conversation, at a scroll position or at the end.

        If `name` is not empty, the layouts are kept and are reused by the next call with this name.
        """
        self._buffer.drop()
        self.selection.select(None)
        self._focus.drop()
        self._stack.open(items, name)
        self._placement.open(position)
        # Leave the focus in a list, whose arrow keys show one chat after the other, and in a search.
        keeps = QAbstractItemView | QLineEdit
        self._show(takes_focus=not isinstance(QApplication.focusWidget(), keeps))
        if self._placement.opened():
            self._reflow.lay_out()

    def set_items(self, items: Sequence[TranscriptItem]) -> None:
        """Replace the shown messages, for example after a new question or a switch of branches."""
        self.flush()
        if [item.key for item in items] != [item.key for item in self._stack.items]:
            self.selection.select(None)
        self._placement.replace(items)
        self._show()

    def update_item(self, item: TranscriptItem) -> None:
        """Replace one item with a newer item of the same message."""
        index = self._stack.index_of(item.key)
        if index is not None:
            self._stack.update(index, item)
            self._show()

    def begin_answer(self, item: TranscriptItem) -> None:
        """Show a streaming answer. If the answer is already shown, update its item."""
        if self._stack.index_of(item.key) is not None:
            self.update_item(item)
        else:
            self.set_items([*self._stack.items, item])

    def append_delta(self, key: str, channel: Channel, delta: str) -> None:
        """Append streamed text to an answer; the next update of the view shows it."""
        self._buffer.add(Delta(key, channel, delta))

    def finish(self, item: TranscriptItem) -> None:
        """Show the final state of an answer: complete, stopped or failed."""
        self.flush()
        self.update_item(item)

    def flush(self) -> None:
        """Show all streamed text that has arrived so far."""
        started = perf_counter()
        changed = False
        for delta in self._buffer.take_deltas():
            changed |= self._stack.append_delta(delta.key, delta.channel, delta.text)
        if changed:
            self._reflow.show_growth()
            self._buffer.spent(perf_counter() - started)

    def scroll_position(self) -> ScrollPosition | None:
        """Return the scroll position to restore later, or None for the end."""
        return self._placement.position()

    def jump_to_start(self) -> None:
        """Scroll to the first message."""
        self._placement.to_start()
        self._reflow.lay_out()

    def jump_to_latest(self) -> None:
        """Scroll to the end, and keep the end in view until the user scrolls up."""
        self._placement.jump()
        self._reflow.lay_out()

    def keep_free(self, height: int) -> None:
        """Let the transcript end above this height, which another widget covers. 0: no widget.

        The text moves only if the widget is higher than the usual margin, and the end is in view.
        """
        margin = max(BOTTOM_MARGIN, height)
        if margin != self._stack.bottom_margin:
            self._placement.resized()
            self._stack.bottom_margin = margin
            self._reflow.lay_out()

    def set_zoom(self, zoom: float) -> None:
        """Scale the whole transcript by a factor from 0.8 to 2.0."""
        if zoom != self._zoom:
            self._zoom = zoom
            self._apply_look()

    def paper_kit(self, page_height: int) -> RowKit:
        """Make a kit for the rows of printed pages. It shares the typeset formulas and lexers."""
        formulas, pictures = self.shelves.formulas, self.shelves.pictures
        look = PaperLook(self._theme, formulas, pictures, page_height)
        return replace(self._kit, look=look, cache=LayoutCache(), matches=FindMatches())

    def text_of(self, key: str) -> str:
        """Return the text of a message, without streamed text that is not shown yet."""
        layout = self._stack.find(key)
        return "" if layout is None else layout.text

    @property
    def focused_message(self) -> int | None:
        """Index of the message with the focused link or button, or None."""
        return self._focus.message

    def target_at(self, point: QPointF) -> Target | None:
        """Return the link or button at a point of the viewport, or None."""
        spot = self._placement.spot_at(point)
        hit = None if spot is None else self._stack.layouts[spot.message].hit(spot.x, spot.y)
        return None if hit is None else hit.at.target

    def statistics(self) -> TranscriptStatistics:
        """Return statistics of the layout work, for tests and benchmarks."""
        is_idle = (
            not self._reflow.idle.is_active
            and self.shelves.formulas.is_idle
            and self.shelves.pictures.is_idle
        )
        return self._stack.statistics(is_idle=is_idle)

    def _show(self, *, takes_focus: bool = True) -> None:
        """Update the editor, the layout and the painting after the items have changed."""
        edited = self.editor_host.sync(self._kit.look, takes_focus=takes_focus)
        if edited is None:
            self._reflow.lay_out()
        else:
            self._reflow.show_editor(edited)

    # Set-up, called once by the constructor.

    def _build(self) -> None:
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(words.TRANSCRIPT)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._jump.hide()

    def _connect(self) -> None:
        self._theme.changed.connect(self._apply_look)
        self._buffer.due.connect(self.flush)
        self._reflow.laid_out.connect(self._pointer.refresh)
        self._reflow.laid_out.connect(self._focus.refresh)
        self._reflow.laid_out.connect(self.find_controller.touch)
        self._reflow.measured.connect(self.find_controller.touch)
        self.find_controller.chosen.connect(self._reflow.lay_out)
        self.click_actions.folded.connect(self._reflow.lay_out)
        self._pointer.changed.connect(self.viewport().update)
        self._focus.moved.connect(self.focus_moved)
        self._mouse.tip_shown.connect(self.tip_shown)
        self._focus.moved.connect(self._canvas.announce_focus)
        self._jump.entered.connect(self._pointer.leave)
        self._jump.clicked.connect(self.jump_to_latest)
        self.shelves.formulas.arrived.connect(self._reflow.remeasure)
        self.shelves.pictures.arrived.connect(self.viewport().update)
        if not self._owns_shelves:
            return
        self.destroyed.connect(self._kit.shelf.close)
        # While the garbage collector destroys a parent, PySide cannot find the slots of its
        # children. It raises AttributeError, and the next slot is not called. A function without a
        # receiver is always called.
        self.destroyed.connect(partial(FormulaShelf.close, self.shelves.formulas))
        self.destroyed.connect(partial(PictureShelf.close, self.shelves.pictures))

    def _make_look(self) -> Look:
        formulas, pictures = self.shelves.formulas, self.shelves.pictures
        return Look(self._theme, formulas, pictures, self._zoom, self._margin)

    def _apply_look(self) -> None:
        self._kit.look = self._make_look()
        self._kit.cache.clear()
        self._reflow.idle.unfinished.clear()
        self._stack.rebuild_rows()
        self.word_marks.restore()
        self.editor_host.set_look(self._kit.look)
        self._reflow.lay_out()

    # Overridden methods of Qt.

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        unfinished = self._reflow.idle.unfinished
        self._painter.paint(painter, event.rect(), self._kit.look, unfinished)
        painter.end()
        if unfinished:
            self._reflow.start_idle_work()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._placement.resized()
        self._reflow.lay_out()

    @override
    def scrollContentsBy(self, dx: int, dy: int) -> None:
        if not self._placement.moving:
            self._placement.scrolled(self._placement.top + dy)
            self._reflow.shift()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        hide_tip()
        if self._keys.press(event):
            return
        if is_typing(event):
            self.typed.emit(event.text())
        else:
            super().keyPressEvent(event)

    @override
    def contextMenuEvent(self, arg__1: QContextMenuEvent) -> None:
        self._menu.open(self, arg__1.globalPos())

    @override
    def focusNextPrevChild(self, next: bool) -> bool:
        inside = self.hasFocus() and self._focus.step(forward=next)
        return inside or super().focusNextPrevChild(next)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        if event.reason() not in FOCUS_SURVIVES:
            self._focus.drop()
        super().focusOutEvent(event)
