"""The bottom of the sidebar: name and state of the model. A click opens the model picker."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QLabel, QProgressBar, QVBoxLayout, QWidget
from typing_extensions import override

from app.theme.tokens import Space
from app.widgets.button import Button
from app.words import window as words

_STEPS = 1000  # number of steps of the progress bar


class SidebarFooter(Button):
    """A button with the name and state of the model, and a progress bar while the model loads."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("", parent)
        self.setObjectName("sidebarFooter")
        self._name = ""
        self._word = ""
        self._name_label = QLabel(self)
        self._word_label = QLabel(self)
        self._bar = QProgressBar(self)
        self._build()

    def show_model(self, name: str, word: str, fraction: float | None) -> None:
        """Show name and state. `fraction` (0 to 1) sets the progress bar; None hides the bar."""
        self._name = name
        self._word = word
        self._bar.setVisible(fraction is not None)
        if fraction is not None:
            self._bar.setValue(round(fraction * _STEPS))
        self.setAccessibleName(words.footer(name=name, state=word))
        self._elide()

    def _build(self) -> None:
        self._name_label.setProperty("type", "small")
        self._word_label.setProperty("type", "small")
        self._word_label.setProperty("tone", "secondary")
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(words.LOADING)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.S + Space.M, Space.S, Space.S + Space.M, Space.S)
        layout.setSpacing(Space.XS)
        layout.addStretch()
        for part in (self._name_label, self._word_label, self._bar):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            layout.addWidget(part)
        layout.addStretch()

    def _elide(self) -> None:
        metrics = QFontMetrics(self._name_label.font())
        room = self.width() - 2 * (Space.S + Space.M)
        self._name_label.setText(metrics.elidedText(self._name, Qt.TextElideMode.ElideMiddle, room))
        self._word_label.setText(metrics.elidedText(self._word, Qt.TextElideMode.ElideRight, room))
        self.setToolTip(words.footer_tip(self._name))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    @override
    def event(self, e: QEvent) -> bool:
        if e.type() is QEvent.Type.LayoutRequest:  # the labels have another font
            self._elide()
        return super().event(e)
