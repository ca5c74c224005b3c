"""The style sheet of the window's own parts, made from the design tokens. No Qt.

Rules select parts of the window by objectName. The dynamic property `type` of a label selects a
style of the type scale.
"""

from __future__ import annotations

from app.theme.fonts import Fonts
from app.theme.tokens import Colors, Radius, Size, Space, TextStyle, Type

# Key: value of the dynamic property `type` of a label. Value: style of the type scale.
LABEL_TYPES = {
    "ui": Type.UI,
    "title": Type.TITLE,
    "empty": Type.EMPTY,
    "empty-narrow": Type.H2,
    "heading": Type.H3,
    "body": Type.BODY,
    "small": Type.SMALL,
    "caption": Type.CAPTION,
    "section": Type.SECTION,
}

SHEETS = (
    "#messageSheet", "#folderSheet", "#documentsSheet", "#presetSheet", "#deletedSheet", "#shortcuts", "#remembering",
)  # fmt: skip
# Largest zoom of what stands in a bar: the tabs of the settings, the height of the model button.
TAB_ZOOM = 1.5
# Parts of the window whose texts scale with the zoom.
ZOOMED = (
    "#sidebar", "#chatPane", "#toast", "#switcher", "#inspector", "#settings", "#models", "#memory",
    "#picker", "#why", "#branches", "#compare", "#picture", "#fileTextWindow",
    *SHEETS,
)  # fmt: skip


def make_window_style(colors: Colors, fonts: Fonts, zoom: float) -> str:
    """Return the style sheet of one appearance, for the parts of the window.

    `zoom` scales the texts of the parts in ZOOMED, the title, and the fields for long texts.
    """
    return "\n".join(
        (
            _label_rules(fonts),
            _frame_rules(colors),
            _menu_bar_rules(colors),
            _field_rules(colors, zoom),
            _button_rules(colors),
            _zoomed_rules(zoom),
            _card_rules(colors),
            _answers_rules(colors),
            _table_rules(colors, zoom),
        )
    )


def _table_rules(colors: Colors, zoom: float) -> str:
    cell = Space.S + 3  # Qt has a margin of 3 px in each cell, but none in the headings
    return f"""
#memoryTable {{
  {_size(Type.UI, zoom)} background: {colors.canvas}; border: 1px solid {colors.hairline};
  border-radius: {Radius.ROW}px; outline: 0;
}}
#memoryTable::item {{
  padding: {Space.XS}px {Space.S + 2}px {Space.XS}px {Space.S}px; color: {colors.text};
}}
#memoryTable::item:hover {{ background: {colors.hover}; }}
#memoryTable::item:selected {{ background: {colors.accent}; color: {colors.on_accent}; }}
#memoryTable QHeaderView {{ background: transparent; }}
#memoryTable QHeaderView::section {{
  {_size(Type.SMALL, zoom)} color: {colors.secondary}; background: transparent; border: none;
  border-bottom: 1px solid {colors.hairline}; padding: {Space.XS}px {cell + 2}px {Space.XS}px {cell}px;
}}
"""


def _label_rules(fonts: Fonts) -> str:
    rules = [f'QLabel[type="{name}"] {{ {_font(style)} }}' for name, style in LABEL_TYPES.items()]
    code = f'QLabel[type="code"] {{ font-family: "{fonts.code}"; {_font(Type.SMALL)} }}'
    return "\n".join((*rules, code))


def _zoomed_rules(zoom: float) -> str:
    """Return the rules that scale texts with the zoom, in the parts of the window in ZOOMED."""
    icon = round(Space.L * max(1.0, zoom))
    heights = (Size.CONTROL_MINI, Size.CONTROL, Size.ROW, Size.SIDEBAR_FOOTER, Size.SWITCHER_FIELD)
    mini, high, row, footer, field = (round(height * max(1.0, zoom)) for height in heights)
    bar = round(Size.CONTROL * max(1.0, min(zoom, TAB_ZOOM)))
    texts = _in_zoomed("QLabel", "QPushButton", "QLineEdit", "QCheckBox")
    rules = [f"QMenuBar, QMenu, {texts} {{ {_size(Type.UI, zoom)} }}"]
    for name, style in (*LABEL_TYPES.items(), ("code", Type.SMALL)):
        label = _in_zoomed(f'QLabel[type="{name}"]')
        rules.append(f"{label} {{ {_font(style, zoom)} }}")
    focused = _in_zoomed("QPushButton:focus")
    labels = _in_zoomed('QLabel[kind="row"]')
    arrows = _in_zoomed("QPushButton::menu-indicator")
    chip_arrows = _in_zoomed('QPushButton[kind="chip"]::menu-indicator')
    chip, rows, links = (
        _in_zoomed(f'QPushButton[kind="{kind}"]') for kind in ("chip", "row", "link")
    )
    return "\n".join(
        (
            *rules,
            f"{_in_zoomed('QPushButton', 'QLineEdit')} {{ min-height: {high - 2}px; }}",
            f"{focused} {{ min-height: {high - 4}px; }}",
            f"{labels} {{ min-height: {high}px; }}",
            f'#settings QToolButton[kind="tab"] {{ {_size(Type.SMALL, min(zoom, TAB_ZOOM))} }}',
            f"QToolTip {{ {_size(Type.SMALL, zoom)} }}",
            f"QMenu::indicator {{ width: {icon}px; height: {icon}px; }}",
            f"{arrows} {{ width: {icon}px; }}",
            f"{chip_arrows} {{ width: 0; }}",
            f"{chip} {{ border-radius: {high // 2}px; }}",
            f"{rows} {{ min-height: {row - 2}px; }}",
            f"{links} {{ min-height: {mini - 2}px; }}",
            f"#toast QPushButton {{ min-height: {mini - 2}px; }}",
            f"#switcher QLineEdit {{ min-height: {field - 2}px; }}",
            f"QPushButton#sidebarFooter {{ min-height: {footer - 2}px; }}",
            f'#sidebar QPushButton[place="foot"] {{ {_size(Type.SMALL, zoom)} min-height: {mini - 2}px; }}',
            f"QPushButton#titleButton, #titleField {{ {_size(Type.TITLE, zoom)} }}",
            f"QPushButton#modelButton {{ {_size(Type.UI, zoom)} min-height: {bar - 2}px; }}",
        )
    )


def _in_zoomed(*selectors: str) -> str:
    """Return the selectors, restricted to the parts of the window in ZOOMED."""
    return ", ".join(f"{part} {one}" for part in ZOOMED for one in selectors)


def _font(style: TextStyle, zoom: float = 1.0) -> str:
    return f"{_size(style, zoom)} font-weight: {style.weight};"


def _size(style: TextStyle, zoom: float) -> str:
    return f"font-size: {round(style.size * zoom)}px;"


def _frame_rules(colors: Colors) -> str:
    return f"""
#sidebar {{ background: {colors.sidebar}; }}
#sidebarFoot {{ border-top: 1px solid {colors.hairline}; }}
QPushButton#sidebarFooter {{
  background: {colors.sidebar}; border: 1px solid transparent; border-top-color: {colors.hairline};
  border-radius: 0; padding: 0;
}}
QPushButton#sidebarFooter:hover {{ background: {colors.hover}; }}
QPushButton#sidebarFooter:focus {{ border-color: {colors.accent}; }}
#settings, #models, #memory, #why, #branches, #compare, #picture, #fileTextWindow {{
  background: {colors.canvas};
}}
#modelDefaults, #deletedSheet, #folderSheet, #documentsSheet, #messageSheet {{
  background: {colors.canvas};
}}
#settingsLine {{ background: {colors.hairline}; }}
#inspector {{ background: {colors.canvas}; border-left: 1px solid {colors.hairline}; }}
#findBar {{ background: {colors.canvas}; border-bottom: 1px solid {colors.hairline}; }}
#toolbar, #chatPane {{ background: {colors.canvas}; }}
QSplitter::handle {{ background: {colors.hairline}; }}
QListView {{ background: transparent; border: none; outline: none; }}
QProgressBar {{
  background: {colors.track}; border: none; border-radius: {Space.HAIR}px;
  max-height: {Space.XS}px; min-height: {Space.XS}px;
}}
QProgressBar::chunk {{ background: {colors.secondary}; border-radius: {Space.HAIR}px; }}
"""


def _menu_bar_rules(colors: Colors) -> str:
    return f"""
QMenuBar {{ background: {colors.sidebar}; color: {colors.text}; border-bottom: 1px solid {colors.hairline}; }}
QMenuBar::item {{ background: transparent; padding: {Space.XS}px {Space.S}px; border-radius: {Radius.ROW}px; }}
QMenuBar::item:selected {{ background: {colors.selected}; }}
"""


def _field_rules(colors: Colors, zoom: float) -> str:
    return f"""
#composerEdit {{ font-size: {round(Type.COMPOSER.size * zoom)}px; }}
#systemPrompt, #folderPrompt, #servedText {{
  font-size: {round(Type.UI.size * zoom)}px;
  background: {colors.raised}; border: 1px solid {colors.border};
  border-radius: {Radius.BUTTON}px; padding: {Space.XS}px {Space.S}px;
}}
#fileText {{ font-size: {round(Type.UI.size * zoom)}px; padding: {Space.S}px {Space.M}px; }}
#systemPrompt:focus, #folderPrompt:focus, #servedText:focus {{ border-color: {colors.accent}; }}
#titleField {{ {_font(Type.TITLE)} }}
QSlider {{ min-height: {Size.CONTROL_MINI}px; }}
QSlider::groove:horizontal {{
  background: {colors.track}; height: {Space.XS}px; border-radius: {Space.HAIR}px;
}}
QSlider::sub-page:horizontal {{ background: {colors.accent}; border-radius: {Space.HAIR}px; }}
QSlider::handle:horizontal {{
  background: {colors.accent}; border: 1px solid {colors.accent};
  width: {Space.L - 2}px; height: {Space.L - 2}px; margin: -{Space.XS + 2}px 0; border-radius: {Space.S}px;
}}
QSlider::handle:horizontal:focus {{
  background: {colors.raised}; border: 2px solid {colors.accent};
}}
"""


def _button_rules(colors: Colors) -> str:
    return f"""
QPushButton#titleButton {{
  {_font(Type.TITLE)} border-color: transparent; background: transparent; text-align: left;
  padding: 0 {Space.S}px;
}}
QPushButton#titleButton:hover {{ background: {colors.hover}; }}
QPushButton#titleButton:focus {{ border-color: {colors.accent}; padding: 0 {Space.S - 1}px; }}
QPushButton#modelButton {{ padding: 0 {Space.S}px 0 {Space.M}px; }}
QPushButton#modelButton:focus {{ padding: 0 {Space.S - 1}px 0 {Space.M - 1}px; }}
QPushButton#resetTemperature {{ padding: 0 {Space.XS}px; margin-left: -{Space.XS + 1}px; }}
QPushButton[kind="row"] {{
  background: transparent; border-color: transparent; border-radius: {Radius.ROW}px;
  text-align: left; padding: 0 {Space.S - 1}px; min-height: {Size.ROW - 2}px;
}}
QPushButton#recentlyDeleted, QPushButton#archived {{ color: {colors.secondary}; padding-left: {Space.M - 1}px; }}
QPushButton[place="foot"] {{
  color: {colors.secondary}; padding: 0 {Space.M - 1}px; margin-bottom: {Space.S}px;
}}
QPushButton[kind="row"]:hover {{ background: {colors.hover}; }}
QPushButton[kind="row"]:focus {{ border-color: {colors.accent}; border-width: 1px; }}
QPushButton[kind="link"] {{
  color: {colors.link}; background: transparent; border-color: transparent; text-align: left; padding: 0; margin-left: -1px;
}}
QPushButton[kind="link"]:hover {{ text-decoration: underline; }}
QPushButton[kind="link"]:focus {{ border-color: {colors.accent}; border-width: 1px; border-radius: {Radius.ROW}px; }}
QPushButton[kind="chip"] {{
  color: {colors.secondary}; background: {colors.composer_chip}; border: 1px solid transparent;
  border-radius: {Size.CONTROL // 2}px; padding: 0 {Space.M}px;
}}
QPushButton[kind="chip"]:hover, QPushButton[kind="chip"]:pressed {{ color: {colors.text}; }}
QPushButton[kind="chip"]:focus {{ border-color: {colors.accent}; }}
QPushButton::menu-indicator {{ image: none; width: {Space.L}px; }}
QPushButton[kind="chip"]::menu-indicator {{ width: 0; }}
"""


def _card_rules(colors: Colors) -> str:
    return f"""
#toast {{ background: {colors.text}; border-radius: {Radius.BUTTON}px; }}
#toast QLabel {{ color: {colors.canvas}; }}
#toast QPushButton {{
  color: {colors.canvas}; background: transparent; border: 1px solid {colors.canvas};
}}
#toast QPushButton:hover, #toast QPushButton:focus {{
  color: {colors.text}; background: {colors.canvas};
}}
#notice {{ background: {colors.error.tint}; border-radius: {Radius.CODE}px; }}
#notice QLabel[role="title"] {{ color: {colors.error.ink}; font-weight: 600; }}
#notice QPushButton {{
  color: {colors.error.ink}; background: transparent; border-color: {colors.error.ink}; font-weight: 500;
}}
#notice QPushButton:hover, #notice QPushButton:focus {{
  color: {colors.error.tint}; background: {colors.error.ink};
}}
#notice QPushButton[kind="plain"] {{
  color: {colors.error.ink}; background: transparent; border-color: transparent; padding: 0 {Space.S}px;
}}
#notice QPushButton[kind="plain"]:hover {{ text-decoration: underline; }}
#notice QPushButton[kind="plain"]:focus {{ border-color: {colors.error.ink}; }}
#details, #details QLabel {{ background: transparent; }}
#details {{ border: 1px solid transparent; }}
#details:focus {{ border-color: {colors.accent}; }}
#notice #details:focus {{ border-color: {colors.error.ink}; }}
#offer {{
  background: {colors.raised}; border: 1px solid {colors.border}; border-radius: {Radius.CODE}px;
}}
#offers {{ background: transparent; }}
"""


def _answers_rules(colors: Colors) -> str:
    return f"""
#answers {{ background: {colors.canvas}; }}
#answersBar {{ border-bottom: 1px solid {colors.hairline}; }}
QGroupBox#answerColumn {{ border: none; border-top: 2px solid transparent; margin: 0; padding: 0; }}
QGroupBox#answerColumn[place="later"] {{ border-left: 1px solid {colors.hairline}; }}
QGroupBox#answerColumn[focused="true"] {{ border-top-color: {colors.accent}; }}
#answersBar QPushButton:checked {{ background: {colors.selected}; }}
"""
