"""The popover to choose a model: the models on this machine."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QModelIndex, QPoint, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QListView,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.controllers.hub import HubController
from app.controllers.models import ModelsController
from app.theme.palette import Theme
from app.theme.tokens import Radius, Size, Space
from app.viewmodels.download_offers import fetching_line
from app.viewmodels.models import (
    ModelPhase,
    PickerModel,
    only_demo,
    picker_rows,
)
from app.viewmodels.notes import model_note
from app.widgets.button import Button
from app.widgets.hiding_bar import HidingBar
from app.widgets.line_height import Sentences
from app.widgets.model_delegate import ModelDelegate
from app.widgets.painted_list import set_up_list
from app.words import commands, models as words


class ModelPicker(QFrame):
    """A popup under the model button. Choosing a model closes the popup and loads the model."""

    add_folder_requested = Signal()
    get_models_requested = Signal()

    def __init__(
        self, theme: Theme, models: ModelsController, hub: HubController, parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setObjectName("picker")
        self.setAccessibleName(words.MODELS)
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self._theme = theme
        self._models = models
        self._hub = hub
        self._rows = PickerModel(self)
        self._highest = Size.PICKER_HEIGHT  # pixels; larger with larger text
        self._room = Size.PICKER_HEIGHT  # pixels below the anchor when the popup opened
        self.list = QListView(self)
        self.list.setVerticalScrollBar(HidingBar(self.list))
        self._delegate = ModelDelegate(theme, self._rows, self.list)
        self.cost = Sentences(self, "small")  # tokens of the chat on show that another model reads
        self.sentence = Sentences(self)
        self.fetching = Sentences(self, "small")  # progress of downloads
        self.get_models = Button(commands.GET_MODELS, self)
        self.add_folder = Button(commands.ADD_FOLDER, self)
        self._layout = QVBoxLayout(self)
        self._build()
        self._connect()
        self._refresh()

    def open_below(self, anchor: QWidget, cost: str = "") -> None:
        """Show the popup below `anchor`, with aligned right edges.

        Keep it inside the window and the screen. cost: a sentence about the chat on show, or "".
        """
        self.cost.setText(cost)
        self.cost.setVisible(bool(cost))
        window = anchor.window()
        inside = QRect(window.mapToGlobal(QPoint(0, 0)), window.size())
        inside &= anchor.screen().availableGeometry()
        wanted = round(Size.PICKER_WIDTH * max(1.0, self._theme.zoom))
        self._set_width(max(Size.PICKER_WIDTH, min(wanted, inside.width() - 2 * Space.S)))
        corner = anchor.mapToGlobal(QPoint(anchor.width(), anchor.height() + Space.XS))
        self._room = inside.bottom() - Space.S - corner.y()
        self._fit(self._room)
        self.move(max(inside.left(), corner.x() - self.width()), corner.y())
        self.show()
        self._mark_current()
        first = self.list if self._rows.rowCount() else self.get_models
        first.setFocus(Qt.FocusReason.PopupFocusReason)
        self._models.refresh()

    def _build(self) -> None:
        title = QLabel(words.ON_THIS_COMPUTER, self)
        title.setProperty("type", "section")
        title.setProperty("tone", "tertiary")
        self.list.setModel(self._rows)
        self.list.setItemDelegate(self._delegate)
        self.list.setAccessibleName(words.MODELS)
        set_up_list(self.list)
        self.sentence.setProperty("tone", "secondary")
        row = QHBoxLayout()
        row.addWidget(self.get_models)
        row.addStretch()
        row.addWidget(self.add_folder)
        layout = self._layout
        layout.setContentsMargins(Space.S, Space.L, Space.S, Space.M)
        layout.setSpacing(Space.S)
        for small in (self.cost, self.fetching):
            small.setProperty("tone", "secondary")
        for part in (
            title,
            self.cost,
            self.sentence,
            self.fetching,
            row,
        ):  # align these parts with the text of the rows
            part.setContentsMargins(Space.L, 0, Space.L, 0)
        layout.addWidget(title)
        layout.addWidget(self.list)
        layout.addWidget(self.cost)
        layout.addWidget(self.sentence)
        layout.addWidget(self.fetching)
        layout.addLayout(row)

    def _connect(self) -> None:
        self.list.clicked.connect(self._on_chosen)
        self.list.activated.connect(self._on_chosen)
        self.add_folder.clicked.connect(self._on_add_folder)
        self.get_models.clicked.connect(self._on_get_models)
        self._models.cards_changed.connect(self._refresh)
        self._models.status_changed.connect(self._refresh)
        self._hub.downloads_changed.connect(self._refresh)
        self._theme.zoomed.connect(self._scale)
        self._scale()

    def _refresh(self) -> None:
        cards, status = self._models.cards, self._models.status
        self._rows.set_rows(picker_rows(cards, status, self._hub.downloads))
        sentence = model_note(status, cards) if status.phase is ModelPhase.NONE else ""
        self.sentence.setText(sentence)
        self.sentence.setVisible(bool(sentence))
        self.get_models.setDefault(only_demo(cards))
        self._show_fetching()

    def _show_fetching(self) -> None:
        """Show one line while something is downloaded. Make the open popup as high as it needs."""
        line, was_shown = (
            fetching_line(self._hub.downloads, self._hub.now),
            not self.fetching.isHidden(),
        )
        self.fetching.setText(line)
        self.fetching.setVisible(bool(line))
        if self.isVisible() and bool(line) != was_shown:
            self._fit(self._room)

    def _fit(self, room: int) -> None:
        """Set the height that the rows need, but not more than `room` or the largest height."""
        delegate, option = self.list.itemDelegate(), QStyleOptionViewItem()
        count = self._rows.rowCount()
        rows = sum(delegate.sizeHint(option, self._rows.index(at)).height() for at in range(count))
        self.list.setFixedHeight(0)
        others = self._full_height()
        highest = min(room, self._highest)
        self.list.setFixedHeight(max(0, min(rows, highest - others)))
        self.resize(self.width(), self._full_height())

    def _set_width(self, width: int) -> None:
        self.setFixedWidth(width)
        self._delegate.picker_width = width

    def _scale(self) -> None:
        """Allow as many rows as before with larger text."""
        self._set_width(Size.PICKER_WIDTH)
        self._highest = round(Size.PICKER_HEIGHT * max(1.0, self._theme.zoom))
        self.setMaximumHeight(self._highest)
        self.list.scheduleDelayedItemsLayout()

    def _full_height(self) -> int:
        if self._layout.hasHeightForWidth():
            return self._layout.totalHeightForWidth(self.width())
        return self._layout.totalSizeHint().height()

    def _mark_current(self) -> None:
        """Select the row of the model in use."""
        for at in range(self._rows.rowCount()):
            index = self._rows.index(at)
            if str(self._rows.row_at(index).path) == self._models.status.path:
                self.list.setCurrentIndex(index)

    def _on_chosen(self, index: QModelIndex) -> None:
        if index.flags() & Qt.ItemFlag.ItemIsEnabled:
            path: Path = self._rows.row_at(index).path
            self.hide()
            self._models.choose(path)

    def _on_add_folder(self) -> None:
        self.hide()
        self.add_folder_requested.emit()

    def _on_get_models(self) -> None:
        self.hide()
        self.get_models_requested.emit()

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        # Paint the frame here: style sheets paint no background on a translucent window.
        colors = self._theme.colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(colors.strong_line))
        painter.setBrush(QColor(colors.raised))
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(rect, Radius.POPOVER, Radius.POPOVER)
