"""The inspector's number fields: sampling options except temperature, and answer length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.controllers.requests import MAX_TOKENS
from app.conversation.tree import Setup
from app.theme.tokens import Space
from app.widgets.number_field import NumberField
from app.words import inspector as words
from engine.types import SamplingParams


@dataclass(frozen=True, slots=True)
class _Option:
    """The field for one attribute of Setup: its texts, range and number of decimals."""

    name: str  # name of the attribute of Setup
    label: str
    tip: str
    lowest: float
    highest: float
    decimals: int = 2  # number of decimals; 0 for an integer


_OPTIONS = (
    _Option("top_p", words.TOP_P, words.TOP_P_TIP, 0.0, 1.0),
    _Option("top_k", words.TOP_K, words.TOP_K_TIP, 0, 1000, 0),
    _Option("min_p", words.MIN_P, words.MIN_P_TIP, 0.0, 1.0),
    _Option("min_kept", words.MIN_KEPT, words.MIN_KEPT_TIP, 1, 1000, 0),
    _Option("xtc_probability", words.XTC_PROBABILITY, words.XTC_PROBABILITY_TIP, 0.0, 1.0),
    _Option("xtc_threshold", words.XTC_THRESHOLD, words.XTC_THRESHOLD_TIP, 0.0, 0.5),
    _Option(
        "repetition_penalty",
        words.REPETITION,
        words.REPETITION_TIP,
        0.5,
        2.0,
    ),
    _Option("presence_penalty", words.PRESENCE, words.PRESENCE_TIP, -2.0, 2.0),
    _Option("frequency_penalty", words.FREQUENCY, words.FREQUENCY_TIP, -2.0, 2.0),
    _Option(
        "max_tokens",
        words.LONGEST_ANSWER,
        words.LONGEST_ANSWER_TIP,
        1,
        1_000_000,
        0,
    ),
)


class SamplingFields(QWidget):
    """A grid with one number field per option. An empty field means the model's default."""

    changed = Signal(object)  # argument: a Setup

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._setup = Setup()
        self.fields: dict[str, NumberField] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(Space.M)
        grid.setVerticalSpacing(Space.XS)
        for row, option in enumerate(_OPTIONS):
            field = NumberField(
                option.label,
                lowest=option.lowest,
                highest=option.highest,
                decimals=option.decimals,
                parent=self,
            )
            label = QLabel(option.label, self)
            label.setBuddy(field)
            for part in (label, field):
                part.setToolTip(option.tip)
            field.setAccessibleDescription(option.tip)
            field.changed.connect(partial(self._on_changed, option))
            grid.addWidget(label, row, 0)
            grid.addWidget(field, row, 1, Qt.AlignmentFlag.AlignRight)
            self.fields[option.name] = field

    def show_setup(self, setup: Setup, defaults: SamplingParams) -> None:
        self._setup = setup
        for name, field in self.fields.items():
            field.show_value(getattr(setup, name), getattr(defaults, name, MAX_TOKENS))

    def _on_changed(self, option: _Option, value: float | None) -> None:
        taken = value if value is None or option.decimals else int(value)
        change: dict[str, Any] = {option.name: taken}
        self._setup = replace(self._setup, **change)
        self.changed.emit(self._setup)
