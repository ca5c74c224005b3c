"""The QPalette and the style sheet of the application, made from the design tokens. Main thread.

The rules use two dynamic properties of widgets. Buttons have `kind`: primary, danger, plain,
segment, tab or icon. Labels have `tone`: secondary, tertiary or error. The rules for single parts
of the window are in window_style.py.
"""

from __future__ import annotations

from PySide6.QtGui import QColor, QPalette

from app.theme.fonts import Fonts
from app.theme.tokens import Colors, Radius, Size, Space, Type


def make_palette(colors: Colors) -> QPalette:
    """Return the palette of one appearance."""
    role = QPalette.ColorRole
    palette = QPalette()
    for target, value in (
        (role.Window, colors.canvas),
        (role.Base, colors.canvas),
        (role.AlternateBase, colors.sidebar),
        (role.Button, colors.raised),
        (role.ToolTipBase, colors.raised),
        (role.WindowText, colors.text),
        (role.Text, colors.text),
        (role.ButtonText, colors.text),
        (role.BrightText, colors.on_accent),
        (role.ToolTipText, colors.text),
        (role.PlaceholderText, colors.tertiary),
        (role.Link, colors.link),
        (role.LinkVisited, colors.link),
        (role.Highlight, colors.accent),
        (role.HighlightedText, colors.on_accent),
        (role.Accent, colors.accent),
        (role.Light, colors.raised),
        (role.Midlight, colors.hover),
        (role.Mid, colors.strong_line),
        (role.Dark, colors.strong_line),
        (role.Shadow, colors.hairline),
    ):
        palette.setColor(target, QColor(value))
    for target in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, target, QColor(colors.tertiary))
    return palette


def make_style_sheet(colors: Colors, fonts: Fonts) -> str:
    """Return the style sheet of one appearance, for Qt's own controls."""
    return "\n".join(
        (
            _text_rules(colors, fonts),
            _button_rules(colors),
            _tool_button_rules(colors),
            _field_rules(colors),
            _popup_rules(colors),
            _scroll_bar_rules(colors),
        )
    )


def _text_rules(colors: Colors, fonts: Fonts) -> str:
    return f"""
QWidget {{ font-family: "{fonts.text}"; font-size: {Type.UI.size}px; }}
QLabel {{ color: {colors.text}; background: transparent; }}
QLabel[tone="secondary"] {{ color: {colors.secondary}; }}
QLabel[tone="tertiary"] {{ color: {colors.tertiary}; }}
QLabel[tone="error"] {{ color: {colors.error.ink}; }}
"""


def _button_rules(colors: Colors) -> str:
    inner = Size.CONTROL - 2
    return f"""
QPushButton {{
  color: {colors.text}; background: {colors.raised}; border: 1px solid {colors.border};
  border-radius: {Radius.BUTTON}px; padding: 0 {Space.M}px; min-height: {inner}px;
}}
QPushButton:hover, QPushButton:pressed {{ background: {colors.hover}; }}
QPushButton:disabled {{
  color: {colors.tertiary}; background: {colors.canvas}; border-color: {colors.strong_line};
}}
QPushButton:focus {{
  border: 2px solid {colors.accent}; padding: 0 {Space.M - 1}px; min-height: {inner - 2}px;
}}
QPushButton[kind="primary"] {{
  color: {colors.on_accent}; background: {colors.accent}; border-color: {colors.accent};
}}
QPushButton[kind="primary"]:disabled {{
  color: {colors.tertiary}; background: {colors.hover}; border-color: {colors.hover};
}}
QPushButton[kind="danger"] {{ color: {colors.error.ink}; }}
QPushButton[kind="plain"] {{ background: transparent; border-color: transparent; }}
QPushButton[kind="plain"]:hover {{ background: {colors.hover}; }}
QPushButton[kind="plain"]:focus {{ border-color: {colors.accent}; }}
QPushButton[kind="segment"] {{ border-radius: 0; border-left-width: 0; }}
QPushButton[kind="segment"][place="first"] {{
  border-left-width: 1px; border-top-left-radius: {Radius.BUTTON}px;
  border-bottom-left-radius: {Radius.BUTTON}px;
}}
QPushButton[kind="segment"][place="last"] {{
  border-top-right-radius: {Radius.BUTTON}px; border-bottom-right-radius: {Radius.BUTTON}px;
}}
QPushButton[kind="segment"]:checked {{
  color: {colors.on_accent}; background: {colors.accent}; border-color: {colors.accent};
}}
QPushButton[kind="segment"][role="tab"] {{ color: {colors.secondary}; }}
QPushButton[kind="segment"][role="tab"]:checked {{
  color: {colors.text}; background: {colors.selected}; border-color: {colors.border};
}}
QPushButton[kind="segment"]:focus, QPushButton[kind="segment"][role="tab"]:checked:focus {{
  border: 2px solid {colors.accent};
}}
"""


def _tool_button_rules(colors: Colors) -> str:
    return f"""
QToolButton[kind="tab"] {{
  color: {colors.secondary}; background: transparent; border: 1px solid transparent;
  border-radius: {Radius.BUTTON}px; padding: {Space.XS}px {Space.M}px; font-size: {Type.SMALL.size}px;
}}
QToolButton[kind="tab"]:hover {{ background: {colors.hover}; }}
QToolButton[kind="tab"]:checked {{
  color: {colors.text}; background: {colors.selected}; padding: {Space.XS - 1}px {Space.M - 1}px;
  border: 2px solid {colors.selection_line};
}}
QToolButton[kind="tab"]:focus {{
  padding: {Space.XS - 1}px {Space.M - 1}px; border: 2px solid {colors.accent};
}}
QToolButton[kind="icon"] {{
  background: transparent; border: 1px solid transparent; border-radius: {Radius.BUTTON}px;
}}
QToolButton[kind="icon"]:hover, QToolButton[kind="icon"]:checked {{ background: {colors.hover}; }}
QToolButton[kind="icon"]:pressed {{ background: {colors.selected}; }}
QToolButton[kind="icon"]:focus {{ border: 2px solid {colors.accent}; }}
"""


def _field_rules(colors: Colors) -> str:
    return f"""
QLineEdit {{
  color: {colors.text}; background: {colors.raised}; border: 1px solid {colors.border};
  border-radius: {Radius.BUTTON}px; padding: 0 {Space.S}px; min-height: {Size.CONTROL - 2}px;
  selection-background-color: {colors.accent}; selection-color: {colors.on_accent};
  placeholder-text-color: {colors.tertiary};
}}
QLineEdit[kind="search"] {{ background: {colors.hover}; border-color: {colors.fill_line}; }}
QLineEdit:focus, QLineEdit[kind="search"]:focus {{
  border-color: {colors.accent}; background: {colors.canvas};
}}
QPlainTextEdit, QTextEdit {{
  color: {colors.text}; background: transparent; border: none;
  selection-background-color: {colors.accent}; selection-color: {colors.on_accent};
  placeholder-text-color: {colors.tertiary};
}}
"""


def _popup_rules(colors: Colors) -> str:
    return f"""
QToolTip {{
  color: {colors.text}; background: {colors.raised}; border: 1px solid {colors.strong_line};
  padding: {Space.XS}px {Space.S}px; font-size: {Type.SMALL.size}px;
}}
QMenu {{
  color: {colors.text}; background: {colors.raised}; border: 1px solid {colors.strong_line};
  border-radius: {Radius.POPOVER}px; padding: {Space.XS}px;
}}
QMenu::item {{
  padding: {Space.XS + 1}px {Space.XL}px {Space.XS + 1}px {Space.M}px;
  border-radius: {Radius.POPOVER - Space.XS}px;
}}
QMenu::indicator {{ width: {Space.L}px; height: {Space.L}px; image: none; }}
QMenu::item:selected {{ color: {colors.text}; background: {colors.selected}; }}
QMenu::item:disabled {{ color: {colors.tertiary}; background: transparent; }}
QMenu::separator {{ height: 1px; background: {colors.strong_line}; margin: {Space.XS}px {Space.S}px; }}
"""


def _scroll_bar_rules(colors: Colors) -> str:
    thick = Space.M
    return f"""
QScrollBar:vertical {{ background: transparent; width: {thick}px; margin: 0; }}
QScrollBar:horizontal {{ background: transparent; height: {thick}px; margin: 0; }}
QScrollBar::handle {{
  background: {colors.strong_line}; border-radius: {Space.XS - 1}px; margin: 3px;
}}
QScrollBar::handle:vertical {{ min-height: {Space.XXL}px; }}
QScrollBar::handle:horizontal {{ min-width: {Space.XXL}px; }}
QScrollBar::handle:hover {{ background: {colors.tertiary}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
"""
