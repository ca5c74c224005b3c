"""A field for an optional number. While it is empty it shows the default in gray."""

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtGui import QDoubleValidator, QFocusEvent, QValidator
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.tokens import Space
from app.widgets.fields import LineField
from app.words import units

_WIDTH = 120  # room for the hint of most defaults, so that fields in a column are equally wide
# For these reasons the field loses the focus only for a while, to its menu or another window. The
# typed text then stays in the field.
_STILL_THERE = (Qt.FocusReason.PopupFocusReason, Qt.FocusReason.ActiveWindowFocusReason)


class _NumberOrNothing(QDoubleValidator):
    """A validator that accepts a number in its range, or an empty text."""

    @override
    def validate(self, arg__1: str, arg__2: int) -> object:
        if not arg__1:
            return QValidator.State.Acceptable, arg__1, arg__2
        return super().validate(arg__1, arg__2)


class NumberField(LineField):
    """A field for a number. An empty field means the default."""

    changed = Signal(object)  # argument: float, or None for the default

    def __init__(
        self, name: str, *, lowest: float, highest: float, decimals: int, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._decimals = decimals
        self._highest = highest
        self._value: float | None = None
        self.is_count = True  # False for a number that has no separators, such as a port
        locale = self.locale()
        locale.setNumberOptions(QLocale.NumberOption.OmitGroupSeparator)
        self.setLocale(locale)
        self.setAccessibleName(name)
        self.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.set_width(_WIDTH)
        validator = _NumberOrNothing(lowest, highest, decimals, self)
        validator.setNotation(QDoubleValidator.Notation.StandardNotation)
        self.setValidator(validator)
        self.editingFinished.connect(self._on_finished)

    def show_value(self, value: float | None, default: float) -> None:
        """Show a value (None: an empty field) and the default. Keep text that is being edited."""
        self._value = value
        grouped = QLocale(self.locale())
        if self.is_count:
            grouped.setNumberOptions(QLocale.NumberOption.DefaultNumberOptions)
        self.setPlaceholderText(units.default(self._text(default, grouped)))
        self._fit()
        if not (self.hasFocus() and self.isModified()):
            self._show()

    @override
    def _fit(self) -> None:
        """Make the field also wide enough for its default and all digits of its highest number."""
        super()._fit()
        texts = self.placeholderText(), self._text(self._highest)
        widest = max(self.fontMetrics().horizontalAdvance(text) for text in texts)
        # QLineEdit has 2 px beside the text, inside the border and the padding of the style sheet.
        self.setFixedWidth(max(self.width(), widest + 2 * (Space.S + 1 + 2) + 2))

    def _show(self) -> None:
        value = self._value
        self.setText("" if value is None else self._text(value))

    @override
    def focusOutEvent(self, e: QFocusEvent) -> None:
        """Show the last valid value when the focus moves to another widget of the window."""
        super().focusOutEvent(e)
        if e.reason() not in _STILL_THERE:
            self._show()

    def _on_finished(self) -> None:
        value = (
            round(self.locale().toDouble(self.text())[0], self._decimals) if self.text() else None
        )
        if value != self._value:
            self._value = value
            self.changed.emit(value)

    def _text(self, value: float, locale: QLocale | None = None) -> str:
        return (locale or self.locale()).toString(float(value), "f", self._decimals)
