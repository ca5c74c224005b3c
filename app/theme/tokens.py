"""Design tokens: every colour, length, font style and duration of the app, as plain values. No Qt.

LIGHT and DARK are the two appearances; LIGHT_SHARP and DARK_SHARP are their variants with more
contrast. Theme (palette.py) selects one of the four. Widgets and style sheets take all values from
this file, so the look of the app can be changed in this file alone. A test has the allowed
pairs of ink and background.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class StateInk:
    """The text colour (ink) and background colour (tint) of a state, such as instant or error."""

    ink: str
    tint: str


@dataclass(frozen=True, slots=True)
class SyntaxColors:
    """The text colours of code, by kind of syntax token."""

    default: str
    keyword: str
    string: str
    number: str
    function: str
    type: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderInks:
    """The colours of the folders in the sidebar."""

    gray: str
    blue: str
    green: str
    orange: str
    red: str
    purple: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Colors:
    """The colours of one appearance, as #RRGGBB or #AARRGGBB (Qt's order)."""

    canvas: str  # background of chat and windows
    sidebar: str
    raised: str  # background of composer, popovers, menus and buttons
    composer_chip: str
    hover: str  # background of an item below the mouse pointer
    selected: str  # background of a selected row
    selection_line: str  # line around a selected row; visible only in high contrast
    fill_line: str  # line around a filled area; visible only in high contrast
    track: str  # empty part of a ring, a bar or a slider
    hairline: str  # thin separator
    strong_line: str  # stronger separator, border of menus and tooltips
    border: str  # border of a button, field or other control
    disabled: str  # icon of a disabled control
    text: str
    secondary: str  # ink of less important text
    tertiary: str  # ink of the least important text
    user_bubble: str
    link: str
    code_background: str
    code_header: str
    inline_code: str
    accent: str  # colour of primary buttons, focus rings and the text selection
    on_accent: str  # text colour on a background of the accent colour
    instant: StateInk  # colours for context restored from memory
    on_disk: StateInk  # colours for context restored from disk
    must_read: StateInk  # colours for context that the model has to read
    error: StateInk
    send: str  # background of the send button
    send_glyph: str
    syntax: SyntaxColors
    folder: FolderInks


LIGHT = Colors(
    canvas="#FFFFFF",
    sidebar="#F4F4F2",
    raised="#FFFFFF",
    composer_chip="#EFEFEC",
    hover="#EBEBE8",
    selected="#E3E3DF",
    selection_line="#E3E3DF",
    fill_line="#00000000",
    track="#D3D3CF",
    hairline="#E6E6E3",
    strong_line="#D3D3CF",
    border="#80807B",
    disabled="#D3D3CF",
    text="#1B1B1D",
    secondary="#5A5A60",
    tertiary="#66666C",
    user_bubble="#EFEFEC",
    link="#0A60C8",
    code_background="#F6F6F4",
    code_header="#EDEDEA",
    inline_code="#0E000000",
    accent="#0A60C8",
    on_accent="#FFFFFF",
    instant=StateInk("#0A6B50", "#E4F4EE"),
    on_disk=StateInk("#2B5FAE", "#E8F0FB"),
    must_read=StateInk("#855400", "#FBF1DD"),
    error=StateInk("#B3261E", "#FCEBE9"),
    send="#1B1B1D",
    send_glyph="#FFFFFF",
    syntax=SyntaxColors(
        "#24292F", "#8E2A8B", "#116329", "#0550AE", "#6639BA", "#8A4600", "#656B72"
    ),
    folder=FolderInks(
        gray="#66666C",
        blue="#2B5FAE",
        green="#0A6B50",
        orange="#A35200",
        red="#B3261E",
        purple="#6639BA",
    ),
)

DARK = Colors(
    canvas="#1B1B1D",
    sidebar="#232326",
    raised="#2A2A2D",
    composer_chip="#3A3A40",
    hover="#2D2D31",
    selected="#37373C",
    selection_line="#37373C",
    fill_line="#00000000",
    track="#45454A",
    hairline="#323236",
    strong_line="#45454A",
    border="#818187",
    disabled="#45454A",
    text="#ECECEE",
    secondary="#AEAEB4",
    tertiary="#9C9CA3",
    user_bubble="#2F2F33",
    link="#6CB0FF",
    code_background="#151517",
    code_header="#232326",
    inline_code="#17FFFFFF",
    accent="#3D8BF2",
    on_accent="#0B0B0C",
    instant=StateInk("#4CC9A0", "#17332A"),
    on_disk=StateInk("#7FB2FF", "#1B2A42"),
    must_read=StateInk("#F0B65A", "#3A2C12"),
    error=StateInk("#FF7B72", "#3D1C1A"),
    send="#ECECEE",
    send_glyph="#1B1B1D",
    syntax=SyntaxColors(
        "#E6E6E8", "#E58BE0", "#8CD59A", "#79C0FF", "#C7A6FF", "#FFB86B", "#8B949E"
    ),
    folder=FolderInks(
        gray="#9C9CA3",
        blue="#7FB2FF",
        green="#4CC9A0",
        orange="#F0A35A",
        red="#FF7B72",
        purple="#C7A6FF",
    ),
)


def _sharper(colors: Colors) -> Colors:
    """Return a high-contrast variant: lines and secondary text are closer to the text colour."""
    return replace(
        colors,
        hairline=colors.tertiary,
        selection_line=colors.text,
        fill_line=colors.secondary,
        strong_line=colors.secondary,
        border=colors.secondary,
        disabled=colors.border,
        secondary=colors.text,
        tertiary=colors.secondary,
        syntax=replace(colors.syntax, comment=colors.secondary),
    )


LIGHT_SHARP = _sharper(LIGHT)
DARK_SHARP = _sharper(DARK)


@dataclass(frozen=True, slots=True)
class TextStyle:
    """A font size and line height in pixels, a font weight, and the kind of font."""

    size: int
    line: int
    weight: int = 400  # CSS scale; 600 is semibold
    mono: bool = False  # True for a fixed-pitch font, as in code


class Type:
    """The type scale: every text style of the app."""

    BODY = TextStyle(15, 24)
    H1 = TextStyle(22, 28, 600)
    H2 = TextStyle(18, 26, 600)
    H3 = TextStyle(16, 24, 600)
    UI = TextStyle(13, 18)
    SMALL = TextStyle(12, 16)
    CAPTION = TextStyle(11, 14)
    SECTION = TextStyle(11, 14, 600)
    CODE = TextStyle(13, 20, 400, mono=True)
    TITLE = TextStyle(15, 18, 600)
    LOG = TextStyle(12, 16, 400, mono=True)
    LABEL = TextStyle(13, 18, 500)
    CARD = TextStyle(13, 20)
    CARD_TITLE = TextStyle(13, 18, 600)
    REASONING = TextStyle(14, 22)
    COMPOSER = TextStyle(15, 22)
    EMPTY = TextStyle(24, 32, 600)


class Space:
    """Distances in pixels."""

    HAIR = 2
    XS = 4
    S = 8
    M = 12
    L = 16
    XL = 24
    XXL = 32
    HUGE = 48


class Radius:
    """Corner radii in pixels. Chips are not listed: their radius is half their height."""

    ROW = 7
    BUTTON = 8
    CODE = 10
    POPOVER = 12
    BUBBLE = 16


class Size:
    """Fixed lengths in pixels."""

    CONTROL_MINI = 24
    CONTROL = 28
    CONTROL_LARGE = 32
    TOAST = CONTROL + 2 * Space.S  # height of a toast with one line, with and without a button
    ROW = 34
    SIDEBAR = 264
    SIDEBAR_MIN = 200
    SIDEBAR_MAX = 360
    TOOLBAR = 52
    SIDEBAR_FOOTER = 64
    INSPECTOR = 300
    INSPECTOR_MAX = 480  # largest width with larger text
    SHEET_WIDTH = 440  # a sheet that asks a question
    SHEET_ICON = 56
    NAME_WIDTH = 360  # a sheet that asks for a name
    PICKER_WIDTH = 460
    SWITCHER_WIDTH = 560
    SWITCHER_FIELD = 40
    PICKER_HEIGHT = 520
    SETTINGS_WIDTH = 640
    SETTINGS_WINDOW = 800  # room for all tabs of the settings
    SETTINGS_HEIGHT = 528
    SETTINGS_LABEL = 144
    MODELS_WIDTH = 720
    MODELS_HEIGHT = 560
    COMPARE_WIDTH = 980
    ANSWER_COLUMN = 288  # least width of a column of several answers: about 35 characters
    TIP = 360  # width of a tooltip with wrapped lines
    WHY_WIDTH = 520  # window that explains what was read
    PAGE_HEIGHT = 704  # a page of the Help menu
    COLUMN = 720  # largest width of a message
    STATE_DOT = 7
    CODE_HEADER = 32
    CODE_PAD = 14  # padding on the left and right of code and of the code header
    THINKING_PILL = 26
    MESSAGE_GAP = 32  # space between question and answer: holds buttons and the state line
    TURN_GAP = 24  # space between the figures of an answer and the next question
    WINDOW_WIDTH = 1180
    WINDOW_HEIGHT = 780
    WINDOW_MIN_WIDTH = 640
    WINDOW_MIN_HEIGHT = 480


class Millis:
    """Durations in milliseconds."""

    FLUSH = 33  # interval between two updates of streamed text
    FLUSH_INACTIVE = 100  # interval between two updates while the window is not active
    DRAFT_SAVE = 400  # delay from the last key press until a draft is stored
    FRAME_SAVE = 500  # delay from the last move of a window until its frame is stored
    UNDO = 8000  # time until a toast with Undo closes
    READ = 2000  # time in which a toast can be read
    NOTE = 4000  # time until a toast without a button closes
    PROBLEM = 20_000  # time until a toast with a problem closes, while its window is active
    COPIED = 1200  # duration for which a button shows that text was copied
    MARKS = 100  # delay from a change to the update of the find marks in the scroll bar
    SPEAK = 2000  # interval between two announcements of new text to a screen reader
