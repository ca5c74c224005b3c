r"""Repairs of the MathML that latex2mathml makes, before ziamath draws it. Pure functions."""

from __future__ import annotations

import re
from itertools import groupby
from unicodedata import category, east_asian_width
from xml.etree import ElementTree as ET

from app.viewmodels.array_lines import place
from app.viewmodels.latex_commands import GROUND

# Matches a command or an escaped bracket that latex2mathml has left as text.
_COMMAND = re.compile(r"\\(?:[a-zA-Z]+|[{}|])")
# Matches an escaped character in a text, such as the underscore of \text{learning\_rate}.
_ESCAPED = re.compile(r"\\([_%$&#{} \u00a0])")
_LOGO = re.compile(r"\\((?:Ka|La)?TeX)\b")  # shown as ordinary letters
WIDE = "wide"  # name of an element with characters that the font of formulas lacks
# Number of children of elements that have a base and scripts.
_SCRIPTS = {"msub": 2, "msup": 2, "msubsup": 3, "mover": 2, "munder": 2, "munderover": 3}
_VARIANTS = {"double-struck": "double", "sans-serif": "sans", "monospace": "mono"}
_LONG_ARROWS = {"→": "⟶", "←": "⟵", "↔": "⟷", "⇒": "⟹", "⇐": "⟸", "⇔": "⟺", "↦": "⟼"}
_TOKENS = ("mo", "mi", "mn")  # elements that contain text, and for ziamath no other elements
# Row heights and gaps of arrays have the same size as in TeX. One em of ziamath is 4/3 em of TeX.
_STRUT = {"height": "0.63em", "depth": "0.27em"}  # size of every row; in TeX 0.84em and 0.36em
_ROW_GAP = "0.15em"  # gap between rows; in TeX 0.2em
_JOT = "0.225em"  # gap between rows of aligned equations; in TeX 0.3em
_COLUMN_GAP = "0.75em"  # gap between columns; in TeX 1em


def repair(root: ET.Element) -> None:
    """Change in place what ziamath would draw wrongly or not at all."""
    place(root)
    for element in list(root.iter()):
        name, text = _name(element), element.text or ""
        _group(element, name)
        _lengthen_arrow(element, name)
        _set_variant(element)
        if element.get("class", "").startswith(GROUND):
            color = element.get("class", "").removeprefix(GROUND)
            element.attrib.update(mathbackground=color, mathcolor="black")
        if name in _TOKENS and len(element):
            # The symbol of \mathbin{+} is an element in a token, which ziamath leaves out.
            element.tag = "mrow"
            element.attrib.clear()
        elif name == "mo" and _COMMAND.fullmatch(text):
            element.text = _symbol(text)
        elif name == "mtext" or _LOGO.fullmatch(text):
            text = _LOGO.sub(r"\1", _ESCAPED.sub(r"\1", text))
            element.text = text.replace("~", "\u00a0")
        if any(map(is_wide, element.text or "")):
            _split_wide(element)
    _space_arrays(root)


def is_wide(character: str) -> bool:
    """Return True for a Chinese, Japanese or Korean character, which is as wide as high."""
    return east_asian_width(character) in {"W", "F"} and category(character)[0] in "LP"


def unknown_command(root: ET.Element) -> str | None:
    r"""Return a command that latex2mathml does not know: it keeps a name such as "\foo" as text."""
    matches = (_COMMAND.search(element.text or "") for element in root.iter())
    return next((match[0] for match in matches if match is not None), None)


def _group(element: ET.Element, name: str) -> None:
    """Put the base of scripts into one element.

    latex2mathml makes a bracket, a table and a bracket of a matrix. If the matrix has a script, all
    three are children of the script's element. ziamath also dissolves each mstyle with several.
    """
    num_base = (
        len(element) if name == "mstyle" else len(element) - _SCRIPTS.get(name, len(element)) + 1
    )
    if num_base > 1:
        row = ET.Element("mrow")
        row[:] = element[:num_base]
        element[:num_base] = [row]


def _lengthen_arrow(element: ET.Element, name: str) -> None:
    r"""Use a long arrow under the text of \xrightarrow. ziamath stretches only what is above."""
    if name in {"mover", "munder", "munderover"} and _name(element[0]) == "mstyle":
        for arrow in element[0].findall("{*}mo"):
            arrow.text = _LONG_ARROWS.get(arrow.text or "", arrow.text)
            arrow.attrib.update(lspace="thickmathspace", rspace="thickmathspace")


def _set_variant(element: ET.Element) -> None:
    r"""Use ziamath's names of fonts, as for the digit of \mathbb{1} and all of \texttt{code}."""
    variant = element.get("mathvariant")
    if variant is not None:
        for name, short in _VARIANTS.items():
            variant = variant.replace(name, short)
        element.set("mathvariant", variant.replace("-", " "))


def _split_wide(element: ET.Element) -> None:
    """Move wide characters into elements <wide>, which ziamath_nodes.py draws."""
    parts = [
        (is_part_wide, "".join(part)) for is_part_wide, part in groupby(element.text or "", is_wide)
    ]
    tag, element.tag, element.text = element.tag, "mrow", None
    for is_part_wide, part in parts:
        child = ET.SubElement(element, WIDE if is_part_wide else tag, element.attrib)
        child.text = part
    element.attrib.clear()


def _symbol(command: str) -> str:
    r"""Return the character of a delimiter: after \bigl, latex2mathml leaves \langle as it is."""
    from latex2mathml.symbols_parser import convert_symbol  # noqa: PLC0415 - in the helper only

    code = convert_symbol(command)
    return command if code is None else chr(int(code, 16))


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _space_arrays(root: ET.Element) -> None:
    """Set the distances between rows and columns as in TeX.

    Without this function the distances are much too small.
    """
    for parent in root.iter():
        if "scriptlevel" in parent.attrib:
            continue  # an array in script size keeps ziamath's small distances
        for table in parent.findall("{*}mtable"):
            is_aligned = "columnspacing" in table.attrib
            table.set("rowspacing", _JOT if is_aligned else _ROW_GAP)
            table.set("columnspacing", table.get("columnspacing", _COLUMN_GAP))
            for cell in table.findall("{*}mtr/{*}mtd[1]"):
                cell.append(ET.Element("mspace", _STRUT))
