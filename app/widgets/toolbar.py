"""The bar above the conversation, with its title, the model button and the inspector button."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget
from typing_extensions import override

from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type
from app.viewmodels.direction import isolated
from app.widgets.button import Button
from app.widgets.commands import Actions, CommandId
from app.widgets.elided_title import elided_title
from app.widgets.fields import LineField
from app.widgets.icon_button import IconButton
from app.widgets.menu_text import plain
from app.words import commands, window as words
from engine.types import ConversationId


class TitleField(LineField):
    """The field in which the user edits the title of a conversation.

    Return saves the title, Esc cancels. Saving an empty field restores the automatic title.
    """

    closed = Signal()  # emitted when the user cancels with Esc

    @override
    def keyPressEvent(self, e: QKeyEvent) -> None:
        if e.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(e)


class Toolbar(QWidget):
    """The toolbar. Setters change its content."""

    renamed = Signal(object, str)  # arguments: ConversationId, the user's new title
    title_closed = Signal()  # emitted when a title field that had the focus has closed

    def __init__(self, theme: Theme, actions: Actions, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("toolbar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(Size.TOOLBAR)
        self._theme = theme
        self._conversation_id = ConversationId("")  # the conversation whose title is on show
        self._title = ""
        self._model_name = ""
        self._edited = ""  # the title when the title field was opened
        self._scrolled = False
        self.sidebar_button = IconButton(theme, Icon.SIDEBAR, commands.SHOW_SIDEBAR, self)
        self.new_button = IconButton(theme, Icon.NEW_CHAT, commands.NEW_CHAT, self)
        self.title_button = Button("", self)
        self.title_field = TitleField(self)
        self.model_button = Button("", self)
        self.inspector_button = IconButton(theme, Icon.INFO, commands.SHOW_INSPECTOR, self)
        self._build()
        self._connect(actions)

    def set_title(self, conversation_id: ConversationId, title: str) -> None:
        """Show the title of a conversation. An edit of another conversation's title ends first."""
        if conversation_id != self._conversation_id:
            self._on_edited()
        is_other = title != self._title
        self._conversation_id, self._title = conversation_id, title
        if is_other:
            self._elide()

    def set_model(self, name: str, note: str = "") -> None:
        """Show the model's name, and in its tooltip `note`: the work in progress, if any."""
        self.model_button.setToolTip(f"{name}\n{note}".strip())
        self.model_button.setAccessibleName(words.model_button(name))
        if name != self._model_name:
            self._model_name = name
            self._elide()

    def set_scrolled(self, scrolled: bool) -> None:  # noqa: FBT001 (setter)
        """Draw a hairline below the bar while text is scrolled under the bar."""
        if scrolled != self._scrolled:
            self._scrolled = scrolled
            self.update()

    def set_sidebar_visible(self, visible: bool) -> None:  # noqa: FBT001 (setter)
        """Show the sidebar's buttons in the toolbar while the sidebar is hidden."""
        self.sidebar_button.setVisible(not visible)
        self.new_button.setVisible(not visible)
        self._elide()

    def edit_title(self) -> None:
        self._edited = self._title
        self.title_field.setText(self._title)
        self.title_field.selectAll()
        self.title_button.hide()
        self.title_field.show()
        self.title_field.setFocus()

    def _build(self) -> None:
        self.title_button.setObjectName("titleButton")
        self.title_button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.title_button.setMinimumWidth(1)  # without this, a long title would squeeze the sidebar
        self.title_field.setObjectName("titleField")
        self.title_field.setAccessibleName(words.TITLE_FIELD)
        self.title_field.setMaxLength(200)
        self.title_field.hide()
        self.model_button.setObjectName("modelButton")
        # puts the chevron at the right
        self.model_button.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(Space.L, 0, Space.L, 0)
        layout.setSpacing(Space.S)
        layout.addWidget(self.sidebar_button)
        layout.addWidget(self.new_button)
        layout.addWidget(self.title_button)
        layout.addWidget(self.title_field, 1)
        layout.addStretch()
        layout.addWidget(self.model_button)
        layout.addWidget(self.inspector_button)

    def _connect(self, actions: Actions) -> None:
        self.sidebar_button.trigger(actions[CommandId.SIDEBAR])
        self.new_button.trigger(actions[CommandId.NEW_CHAT])
        self.inspector_button.mirror(actions[CommandId.INSPECTOR])
        self.model_button.clicked.connect(actions[CommandId.CHOOSE_MODEL].trigger)
        self.title_button.clicked.connect(self.edit_title)
        self.title_field.editingFinished.connect(self._on_edited)
        self.title_field.closed.connect(self._close_field)
        self._theme.changed.connect(self._tint)
        self._theme.zoomed.connect(self._tint)
        self._tint()

    def _tint(self) -> None:
        icons, colors = self._theme.icons, self._theme.colors
        size = self._theme.scaled(GRID)
        self.model_button.setIconSize(QSize(size, size))
        self.model_button.setIcon(icons.icon(Icon.CHEVRON_DOWN, colors.secondary, size=size))

    def _on_edited(self) -> None:
        if self.title_field.isVisible():
            title = self.title_field.text()
            self._close_field()
            # The model may have named the chat meanwhile. Unchanged text does not undo that.
            if title != self._edited:
                self.renamed.emit(self._conversation_id, title)

    def _close_field(self) -> None:
        by_key = self.title_field.hasFocus()
        self.title_field.hide()
        self.title_button.show()
        if by_key:
            self.title_closed.emit()

    def _elide_model(self, room: int) -> None:
        metrics = QFontMetrics(self._theme.zoomed_font(Type.UI))
        most = min(room, self._theme.scaled(Size.SIDEBAR_MIN))
        elided = metrics.elidedText(self._model_name, Qt.TextElideMode.ElideRight, most)
        self.model_button.setText(plain(elided))

    def _elide(self) -> None:
        """Shorten names that are too long for the bar. The title gets two fifths of it, or more."""
        self.model_button.setText("")
        free = self._room_for_title()
        metrics = QFontMetrics(self._theme.zoomed_font(Type.TITLE))
        wanted = metrics.horizontalAdvance(self._title)
        self._elide_model(max(3 * free // 5, free - wanted))
        room = max(Space.HUGE, self._room_for_title())
        elided = elided_title(metrics, self._title, room)
        self.title_button.setText(plain(isolated(elided)))
        self.title_button.setAccessibleName(words.title_button(self._title))
        self.title_button.setToolTip(self._title)

    def _room_for_title(self) -> int:
        """Return the width that the buttons leave for the text of the title."""
        others = (
            self.sidebar_button,
            self.new_button,
            self.model_button,
            self.inspector_button,
        )
        widths = (
            max(one.sizeHint().width(), one.minimumWidth()) for one in others if not one.isHidden()
        )
        taken = sum(width + Space.S for width in widths)
        padding = 2 * (Space.S + 1)  # with the border; the style sheet sets it for the title button
        return self.width() - taken - padding - 2 * Space.L

    @override
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.StyleChange:  # the style sheet has another zoom
            self._elide()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._scrolled:
            painter = QPainter(self)
            painter.setPen(QColor(self._theme.colors.hairline))
            painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)
