"""The window that explains why the prompt of an answer was read. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.controllers.core import Core
from app.conversation.forks import is_in_tree
from app.conversation.prompts import prompt_nodes
from app.conversation.text import one_line
from app.conversation.tree import Conversation, NodeId
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.viewmodels.items import stored_phase
from app.viewmodels.phases import Planned
from app.viewmodels.read_reasons import (
    AdviceFacts,
    ReadReport,
    ReasonRow,
    Remedy,
    TokenOrigin,
    read_report,
)
from app.widgets.button import Button
from app.widgets.color_dot import ColorDot
from app.widgets.focus_order import set_tab_order
from app.widgets.line_height import Sentences
from app.widgets.own_windows import OwnWindow
from app.widgets.prompt_bar import PromptBar, origin_ink
from app.widgets.scroller import VerticalScroller
from app.widgets.window_size import keep_on_screen, within_screen
from app.words import commands, composer, reasons as words, state
from engine.types import ConversationId

_MAX_LINKS = 3  # links of a reason to its messages
_BEGINNING = 80  # characters of a message in a link

_BUTTONS = {
    Remedy.KEEP_READY: commands.KEEP_READY,
    Remedy.KEEP_THINKING: composer.KEEP_THOUGHTS,
    Remedy.STORAGE: state.STORAGE,
}


class MessageLink(Button):
    """A link to a message. Its text is elided, and screen readers get all of it."""

    def __init__(self, text: str, node_id: NodeId, parent: QWidget) -> None:
        super().__init__(text, parent)
        self.node_id = node_id
        self.setProperty("kind", "link")
        self.setMinimumWidth(1)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    @override
    def sizeHint(self) -> QSize:
        return super().sizeHint() + QSize(Space.XS, 0)  # so that a rounded width cuts no letter

    @override
    def paintEvent(self, arg__1: QPaintEvent) -> None:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        room = self.width() - Space.HAIR  # the style sheet sets a border of 1 px
        option.text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, room)
        QStylePainter(self).drawControl(QStyle.ControlElement.CE_PushButton, option)


class WhyWindow(OwnWindow):
    """The window, about one answer. It is not modal. It is created once, and closing only hides it.

    Its content follows the settings of the chat, so advice that was taken disappears. An answer
    that was deleted stays explained until the window is closed.
    """

    def __init__(
        self, theme: Theme, core: Core, open_storage: Callable[[], object], parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("why")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle(commands.WHY_READ)
        self._theme = theme
        self._core = core
        self._open_storage = open_storage
        self._conversation: Conversation | None = None  # None before the first answer
        self._answer = NodeId("")
        self._report: ReadReport | None = None
        self._scroller = VerticalScroller(self)
        self._scroller.setWidget(QWidget(self._scroller.viewport()))
        self.controls: list[Button] = []  # links and buttons, from the top
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._scroller)
        core.desk.changed.connect(self._on_chat_changed)
        core.library.list_changed.connect(self._refresh)
        core.preferences.changed.connect(self._refresh)
        core.models.status_changed.connect(self._refresh)
        theme.zoomed.connect(self._fit)

    def open(self, conversation_id: ConversationId, answer: NodeId) -> None:
        """Show the window in front, for an answer whose conversation is in memory."""
        self._conversation = self._core.desk.get(conversation_id)
        self._answer, self._report = answer, None
        self._show_report()
        self._fit()
        self.show()
        self.raise_()
        self.activateWindow()
        self.setFocus()

    def _on_chat_changed(self, conversation_id: ConversationId) -> None:
        shown = self._conversation
        if shown is None or conversation_id != shown.conversation_id:
            return
        if conversation_id in self._core.desk:
            self._conversation = self._core.desk.get(conversation_id)
            self._refresh()

    def _refresh(self) -> None:
        """Show what has changed. Close the window if the chat was deleted."""
        if not self.isVisible() or self._conversation is None:
            return
        if self._conversation.conversation_id in self._core.library.listed:
            self._show_report()
        else:
            self.close()

    def _show_report(self) -> None:
        phase = self._phase()
        if self._conversation is None or phase is None:
            return  # while the answer is continued, its earlier figures stay
        report = read_report(phase, self._facts(self._conversation))
        if report != self._report:
            self._report = report
            at = next((at for at, one in enumerate(self.controls) if one.hasFocus()), None)
            before = self._scroller.takeWidget()
            self._scroller.setWidget(self._page(report))
            before.deleteLater()  # one of its buttons may have been clicked just now
            if at is not None and self.controls:
                self.controls[min(at, len(self.controls) - 1)].setFocus()
        for link in self.controls:
            if isinstance(link, MessageLink):
                link.setEnabled(is_in_tree(self._conversation, link.node_id))

    def _phase(self) -> Planned | None:
        live = self._core.turns.live.get(self._answer)
        if live is not None:
            return live.phase if isinstance(live.phase, Planned) else None
        assert self._conversation is not None
        node = self._conversation.nodes.get(self._answer)
        return None if node is None else stored_phase(node.generation)

    def _facts(self, conversation: Conversation) -> AdviceFacts:
        core = self._core
        generation = conversation.nodes[self._answer].generation
        facts = core.models.status.facts
        is_in_use = (
            facts is not None and generation is not None and facts.path == generation.model_path
        )
        return AdviceFacts(
            is_kept_ready=conversation.conversation_id in core.library.listed.kept_ready,
            keeps_thinking=conversation.setup.keep_thinking,
            can_keep_thinking=is_in_use and facts is not None and facts.can_keep_thinking,
            is_disk_off=not (core.preferences.value.keep_on_disk or core.models.num_machines),
        )

    def _page(self, report: ReadReport) -> QWidget:
        page = QWidget(self._scroller.viewport())
        self.controls = []
        column = QVBoxLayout(page)
        column.setContentsMargins(Space.XL, Space.L, Space.XL, Space.XL)
        column.setSpacing(Space.S)
        heading = QLabel(report.heading, page)
        heading.setProperty("type", "heading")
        heading.setWordWrap(True)
        column.addWidget(heading)
        column.addWidget(PromptBar(self._theme, report.parts, page))
        for part in report.parts:
            column.addLayout(self._legend(part.origin, part.label, page))
        for note in report.notes:
            column.addWidget(_secondary(note, page))
        for row in report.rows:
            column.addSpacing(Space.S)
            self._add_row(row, column, page)
        column.addStretch()
        set_tab_order(*self.controls)
        return page

    def _legend(self, origin: TokenOrigin, label: str, page: QWidget) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(Space.S)
        dot = ColorDot(self._theme, partial(origin_ink, origin=origin), page)
        line.addWidget(dot, 0, Qt.AlignmentFlag.AlignTop)
        line.addWidget(Sentences(page, text=label), 1)
        return line

    def _add_row(self, row: ReasonRow, column: QVBoxLayout, page: QWidget) -> None:
        title = Sentences(page, "title", row.title)
        column.addWidget(title)
        column.addWidget(Sentences(page, text=row.sentence))
        self._add_links(row.messages, column, page)
        if row.advice.text:
            column.addWidget(_secondary(row.advice.text, page))
        buttons = QHBoxLayout()
        buttons.setSpacing(Space.S)
        for remedy in row.advice.remedies:
            button = Button(_BUTTONS[remedy], page)
            button.clicked.connect(partial(self._apply, remedy))
            buttons.addWidget(button)
            self.controls.append(button)
        if row.advice.remedies:
            buttons.addStretch()
            column.addLayout(buttons)

    def _add_links(self, numbers: Sequence[int], column: QVBoxLayout, page: QWidget) -> None:
        """Add a link for each message. The system prompt has none: it is not in the transcript."""
        conversation = self._conversation
        assert conversation is not None
        nodes = prompt_nodes(conversation, self._answer)
        for number in numbers[:_MAX_LINKS]:
            node = conversation.nodes[nodes[number - 1]] if 0 < number <= len(nodes) else None
            if node is None:
                if number == 0:
                    column.addWidget(_secondary(words.SYSTEM_PROMPT, page))
                continue
            text = words.message_link(number, _beginning(node.content))
            link = MessageLink(text, node.node_id, page)
            link.clicked.connect(partial(self._go_to, node.node_id))
            line = QHBoxLayout()
            line.addWidget(link)
            line.addStretch()
            column.addLayout(line)
            self.controls.append(link)
        if (others := len(numbers) - _MAX_LINKS) > 0:
            column.addWidget(_secondary(words.more_messages(others), page))

    def _go_to(self, node_id: NodeId) -> None:
        if self._conversation is not None:
            chat = self._conversation.conversation_id
            self._core.library.select(chat)
            self._core.search.open(chat, node_id)

    def _apply(self, remedy: Remedy) -> None:
        core, conversation = self._core, self._conversation
        assert conversation is not None
        chat = conversation.conversation_id
        match remedy:
            case Remedy.KEEP_READY:
                core.organiser.keep_ready(chat, keep=True)
            case Remedy.KEEP_THINKING:
                core.desk.open(
                    chat,
                    lambda open_chat: core.chat.set_setup(
                        chat, replace(open_chat.setup, keep_thinking=True)
                    ),
                    core.failed.emit,
                )
            case Remedy.STORAGE:
                self._open_storage()

    def _fit(self) -> None:
        """Fit the window to its content and to the size of text, inside the screen."""
        page = self._scroller.widget()
        assert page is not None
        width = round(Size.WHY_WIDTH * max(1.0, self._theme.zoom))
        self.ensurePolished()
        height = page.heightForWidth(width)
        self.setMinimumWidth(min(width, Size.NAME_WIDTH))
        self.resize(within_screen(self, QSize(width, height)))
        keep_on_screen(self)


def _beginning(text: str) -> str:
    line = one_line(text, _BEGINNING + 1)
    return line if len(line) <= _BEGINNING else f"{line[:_BEGINNING].rstrip()}…"


def _secondary(text: str, parent: QWidget) -> Sentences:
    label = Sentences(parent, "small", text)
    label.setProperty("tone", "secondary")
    return label
