"""The inspector at the window's right: system prompt, sampling, seed, thinking, faster answers.

It shows the options of one conversation. A change of the system prompt is emitted after a pause in
typing, any other change at once. A change applies to the next answer of the conversation.
"""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QLocale, QRegularExpression, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QDoubleValidator, QFocusEvent, QRegularExpressionValidator
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.conversation.tree import Conversation, Setup
from app.theme.tokens import Millis, Size, Space, Type
from app.widgets.button import Button
from app.widgets.faster_chip import FasterChip
from app.widgets.fields import LineField, TextField
from app.widgets.line_height import Sentences
from app.widgets.preset_button import PresetButton
from app.widgets.sampling_fields import SamplingFields
from app.widgets.scroller import VerticalScroller
from app.widgets.slider import Slider
from app.widgets.thinking_chip import ThinkingChip
from app.words import inspector as words
from engine.events import ModelFacts
from engine.types import ConversationId, SamplingParams

MAX_TEMPERATURE = 2.0
STEPS = 40  # number of steps of the temperature slider; a step is 0.05
_LINE = 1  # width of the hairline at the left edge, in px
SEED = QRegularExpression(r"\d{0,9}")


class PromptEdit(TextField):
    """The field of the system prompt."""

    left = Signal()  # emitted when the field loses the keyboard focus

    @override
    def sizeHint(self) -> QSize:
        # the same height with and without the note below the field
        return QSize(super().sizeHint().width(), self.minimumHeight())

    @override
    def focusOutEvent(self, e: QFocusEvent) -> None:
        super().focusOutEvent(e)
        self.left.emit()


class Inspector(QWidget):
    """A form with the setup of one conversation.

    The inspector stores nothing: InspectorBinding shows the values of the current conversation, and
    passes the emitted changes to the controllers.
    """

    prompt_changed = Signal(object, str)  # arguments: ConversationId, text
    setup_changed = Signal(object, object)  # arguments: ConversationId, Setup

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("inspector")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._wanted = Size.INSPECTOR  # width in a window with enough room
        self.setFixedWidth(self._wanted)
        self._shown: ConversationId | None = None
        self._setup = Setup()  # the displayed setup, including changes that the user made
        self._defaults = SamplingParams()  # default options of the model that was loaded last
        self._scroller = VerticalScroller(self)
        self._content = content = QWidget(self._scroller.viewport())
        self.preset = PresetButton(content)
        self.prompt = PromptEdit(Type.UI.line, content)
        self.prompt_cost = Sentences(content, "small")
        self.slider = Slider(content)
        self.number = LineField(content)
        self.reset = Button("", content)
        self.sampling = SamplingFields(content)
        self.seed = LineField(content)
        self.thinking = ThinkingChip(content)
        self.faster = FasterChip(content)
        self._prompt_timer = QTimer(self, singleShot=True, interval=Millis.DRAFT_SAVE)
        self._lay_out()
        self._build()
        self._connect()

    def show_conversation(self, conversation: Conversation, facts: ModelFacts | None) -> None:
        """Show a conversation's setup and system prompt, but do not overwrite an unsaved prompt.

        An unsaved prompt of another conversation is emitted first.
        """
        if conversation.conversation_id != self._shown:
            self.flush()
        self._shown = conversation.conversation_id
        self._setup = conversation.setup
        if facts is not None:
            self._defaults = facts.default_sampling
        blocked = [
            QSignalBlocker(part) for part in (self.prompt, self.slider, self.number, self.seed)
        ]
        if self.prompt.toPlainText() != conversation.system_prompt and not self._is_typing():
            self.prompt.setPlainText(conversation.system_prompt)
        self._show_temperature()
        self.sampling.show_setup(conversation.setup, self._defaults)
        seed = conversation.setup.seed
        self.seed.setText("" if seed is None else str(seed))
        self.thinking.show_setup(conversation.setup, facts)
        self.faster.show_setup(conversation.setup)
        for blocker in blocked:
            blocker.unblock()

    def show_prompt_cost(self, text: str) -> None:
        """Show what a change of the system prompt makes the model read; hide an empty text."""
        self.prompt_cost.setText(text)
        self.prompt_cost.setVisible(bool(text))

    def set_zoom(self, zoom: float) -> None:
        """Scale the width and the lines of the system prompt. The style sheet scales the fonts."""
        self._wanted = min(round(Size.INSPECTOR * max(1.0, zoom)), Size.INSPECTOR_MAX)
        self.fit(self.window().width())
        self.prompt.set_line_height(round(Type.UI.line * zoom))

    def fit(self, width: int) -> None:
        """Leave half of a window of this width to the chat, as far as no field is cut."""
        least = max(Size.INSPECTOR, self._content.minimumSizeHint().width() + _LINE)
        self.setFixedWidth(min(self._wanted, max(least, width // 2)))

    def flush(self) -> None:
        """Emit the system prompt now if the user is typing it."""
        if self._is_typing():
            self._on_prompt_done()

    def drop_typing(self) -> None:
        """Discard the unsaved system prompt. Call this before a preset replaces the prompt."""
        self._prompt_timer.stop()

    def _build(self) -> None:
        self.prompt.setObjectName("systemPrompt")
        self.prompt.setAccessibleName(words.SYSTEM_PROMPT)
        self.prompt.setPlaceholderText(words.SYSTEM_PROMPT_HINT)
        self.prompt.setTabChangesFocus(True)
        self.prompt.setMinimumHeight(4 * Size.CONTROL_LARGE)
        self.prompt_cost.setProperty("tone", "tertiary")
        self.prompt_cost.hide()
        self.slider.setRange(0, STEPS)
        self.slider.setAccessibleName(words.TEMPERATURE)
        self.number.setValidator(QDoubleValidator(0, MAX_TEMPERATURE, 2, self.number))
        self.number.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.number.setAccessibleName(words.TEMPERATURE_NUMBER)
        self.number.set_width(2 * Size.CONTROL_LARGE)
        self.reset.setObjectName("resetTemperature")
        self.reset.setProperty("kind", "plain")
        self.seed.setAccessibleName(words.SEED)
        self.seed.setPlaceholderText(words.SEED_HINT)
        self.seed.setValidator(QRegularExpressionValidator(SEED, self.seed))
        self._scroller.setWidget(self._content)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(_LINE, 0, 0, 0)
        outer.addWidget(self._scroller)

    def _lay_out(self) -> None:
        """Lay out all fields of the inspector in one column."""
        temperature = QHBoxLayout()
        temperature.addWidget(self.slider, 1)
        temperature.addWidget(self.number)
        content = self._content
        content.setObjectName("inspectorContent")
        layout = QVBoxLayout(content)
        layout.setContentsMargins(Space.L, Space.L, Space.L, Space.L)
        layout.setSpacing(Space.S)
        layout.addWidget(self.preset, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addSpacing(Space.M)
        layout.addWidget(_section(words.SYSTEM_PROMPT_HEADING, content))
        layout.addWidget(self.prompt, 1)
        layout.addWidget(self.prompt_cost)
        layout.addSpacing(Space.M)
        layout.addWidget(_section(words.TEMPERATURE_HEADING, content))
        layout.addLayout(temperature)
        layout.addWidget(self.reset, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addSpacing(Space.M)
        layout.addWidget(_section(words.SAMPLING_HEADING, content))
        layout.addWidget(self.sampling)
        layout.addSpacing(Space.M)
        layout.addWidget(_section(words.SEED_HEADING, content))
        layout.addWidget(self.seed)
        layout.addSpacing(Space.M)
        layout.addWidget(self.thinking, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self.faster, 0, Qt.AlignmentFlag.AlignLeft)

    def _connect(self) -> None:
        self.prompt.textChanged.connect(self._prompt_timer.start)
        self.prompt.left.connect(self.flush)
        self._prompt_timer.timeout.connect(self._on_prompt_done)
        self.slider.valueChanged.connect(self._on_slid)
        self.number.editingFinished.connect(self._on_number)
        self.reset.clicked.connect(lambda: self._change(replace(self._setup, temperature=None)))
        self.sampling.changed.connect(self._change)
        self.seed.editingFinished.connect(self._on_seed)
        self.thinking.changed.connect(self._change)
        self.faster.changed.connect(self._change)

    def _is_typing(self) -> bool:
        return self._prompt_timer.isActive()

    def _on_prompt_done(self) -> None:
        self._prompt_timer.stop()
        self.prompt_changed.emit(self._shown, self.prompt.toPlainText())

    def _on_slid(self, step: int) -> None:
        self._change(replace(self._setup, temperature=round(step * MAX_TEMPERATURE / STEPS, 2)))

    def _on_number(self) -> None:
        if self.number.text() != _number(self._temperature):
            value = QLocale().toDouble(self.number.text())[0]
            self._change(replace(self._setup, temperature=round(value, 2)))

    def _on_seed(self) -> None:
        text = self.seed.text()
        self._change(replace(self._setup, seed=int(text) if text else None))

    def _change(self, setup: Setup) -> None:
        if setup != self._setup:
            self._setup = setup
            self.setup_changed.emit(self._shown, setup)

    @property
    def _temperature(self) -> float:
        own = self._setup.temperature
        return self._defaults.temperature if own is None else own

    def _show_temperature(self) -> None:
        self.slider.setValue(round(self._temperature * STEPS / MAX_TEMPERATURE))
        self.number.setText(_number(self._temperature))
        default = _number(self._defaults.temperature)
        has_own = self._setup.temperature is not None
        self.reset.setText(
            words.back_to_default(default) if has_own else words.default_temperature(default)
        )
        self.reset.setEnabled(has_own)


def _number(value: float) -> str:
    return QLocale().toString(value, "f", 2)


def _section(text: str, parent: QWidget) -> QLabel:
    label = QLabel(text, parent)
    label.setProperty("type", "section")
    label.setProperty("tone", "tertiary")
    return label
