"""A number that a person may set, or leave to the default, which stands there in grey."""

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtGui import QDoubleValidator, QFocusEvent
from PySide6.QtWidgets import QLineEdit, QWidget
from typing_extensions import override

from app.theme.tokens import Size


class NumberField(QLineEdit):
    """Empty means the default."""

    changed = Signal(object)  # float or None

    def __init__(
        self, name: str, *, lowest: float, highest: float, decimals: int, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._decimals = decimals
        self._value: float | None = None
        locale = self.locale()
        locale.setNumberOptions(QLocale.NumberOption.OmitGroupSeparator)
        self.setLocale(locale)
        self.setAccessibleName(name)
        self.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.setFixedWidth(2 * Size.CONTROL_LARGE)
        validator = QDoubleValidator(lowest, highest, decimals, self)
        validator.setNotation(QDoubleValidator.Notation.StandardNotation)
        self.setValidator(validator)
        self.editingFinished.connect(self._on_finished)

    def show_value(self, value: float | None, default: float) -> None:
        self._value = value
        self.setPlaceholderText(self._text(default))
        self.setText("" if value is None else self._text(value))

    @override
    def focusOutEvent(self, e: QFocusEvent) -> None:
        """What can't be taken does not stay."""
        super().focusOutEvent(e)
        self.setText("" if self._value is None else self._text(self._value))

    def _on_finished(self) -> None:
        value = (
            round(self.locale().toDouble(self.text())[0], self._decimals) if self.text() else None
        )
        if value != self._value:
            self._value = value
            self.changed.emit(value)

    def _text(self, value: float) -> str:
        return self.locale().toString(float(value), "f", self._decimals)
