r"""Lines between the rows and columns of an array, and equation numbers.

latex2mathml loses their places. So marked() puts groups with an attribute `class` into the cells of
the LaTeX. place() replaces the groups by attributes of the <mtable> in the MathML, and
ziamath_nodes.py draws them. Pure functions.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from app.viewmodels.latex_arguments import argument
from app.viewmodels.latex_commands import TAG

# Attributes of an <mtable>. Each word is a line "boundary:style", or "boundary:style:first:last"
# for some columns of a row. Boundary 0 is the top or left edge, and column 0 the first.
ROW_LINES, COLUMN_LINES = "row-lines", "column-lines"
SOLID, DASHED = "solid", "dashed"

_ROW, _COLUMNS = "row-line ", "column-lines "
# Limit of the steps for the columns of an array: *{99}{*{99}{*{99}{|}}} would take a million.
_MAX_STEPS = 200
_ROW_LINE = re.compile(
    r"\\(?:(hline|toprule|midrule|bottomrule)|(hdashline)"
    r"|cline\s?\{(\d{1,2})-(\d{1,2})\})(?![a-zA-Z])"
)
_ARRAY = re.compile(r"\\begin\{array\}")
# An alignment, a line, a repetition, text between columns, a column of paragraphs.
_COLUMN = re.compile(r"\s*(?:([lcr])|([|:])|\*\{(\d{1,2})\}|[@!<>]|[pmbX])")
_LINES = {"|": SOLID, ":": DASHED}


def marked(latex: str) -> str:
    """Replace the lines of arrays by groups that place() finds."""
    pieces: list[str] = []
    done = 0
    for match in _ARRAY.finditer(latex):
        found = argument(latex, match.end())
        if found is not None:
            aligns, lines = _columns(found[0])
            mark = rf"\class{{{_COLUMNS}{' '.join(lines)}}}{{~}}" if lines else ""
            pieces += latex[done : match.end()], f"{{{aligns}}}{mark}"
            done = found[1]
    return _ROW_LINE.sub(_row_line, "".join(pieces) + latex[done:])


def place(root: ET.Element) -> None:
    """Give each <mtable> its lines, and each row with an equation number a last cell."""
    for table in list(root.iter()):
        if table.tag.endswith("mtable"):
            _place_lines(table)
            _place_tags(table)
    _tags_last(root)


def _columns(source: str) -> tuple[str, list[str]]:
    """Return the alignments of the columns of an array, and its lines as "boundary:style"."""
    aligns, lines, at = "", list[str](), 0
    for _ in range(_MAX_STEPS):
        match = _COLUMN.match(source, at)
        if match is None:
            break
        at = match.end()
        if match[1]:
            aligns += match[1]
        elif match[2]:
            lines.append(f"{len(aligns)}:{_LINES[match[2]]}")
        else:
            inner, at = argument(source, at) or ("", at)
            if match[3]:
                source = inner * int(match[3]) + source[at:]
                at = 0
            elif match[0][-1] in "pmbX":
                aligns += "l"
    return aligns or "c", lines


def _row_line(match: re.Match[str]) -> str:
    style = DASHED if match[2] else SOLID
    part = f":{int(match[3]) - 1}:{int(match[4]) - 1}" if match[3] else ""
    return rf"\class{{{_ROW}{style}{part}}}{{~}}"


def _place_lines(table: ET.Element) -> None:
    row_lines: list[str] = []
    for number, row in enumerate(list(table)):
        for cell in row:
            row_lines += [f"{number}:{mark}" for mark in _marks(cell, _ROW)]
            for mark in _marks(cell, _COLUMNS):
                table.set(COLUMN_LINES, mark)
        if number == len(table) - 1 and not any(len(cell) or cell.text for cell in row):
            table.remove(row)  # it had only the line at the bottom
    if row_lines:
        table.set(ROW_LINES, " ".join(row_lines))


def _marks(cell: ET.Element, kind: str) -> list[str]:
    """Remove the groups of a kind from a cell, and return the rest of their classes."""
    found = [child for child in cell if child.get("class", "").startswith(kind)]
    for mark in found:
        cell.remove(mark)
    return [mark.get("class", "").removeprefix(kind) for mark in found]


def _place_tags(table: ET.Element) -> None:
    num_columns = max((len(row) for row in table), default=0)
    for row in table:
        for cell in list(row):
            for tag in [child for child in cell if child.get("class") == TAG]:
                cell.remove(tag)
                row.extend(ET.Element("mtd") for _ in range(num_columns - len(row)))
                last = ET.SubElement(row, "mtd", columnalign="left")
                last.extend((ET.Element("mspace", width="1em"), tag))


def _tags_last(root: ET.Element) -> None:
    """Move the number of a formula without rows to its end."""
    for parent in list(root.iter()):
        for tag in [child for child in parent if child.get("class") == TAG]:
            if not parent.tag.endswith("mtd"):
                parent.remove(tag)
                root[0].extend((ET.Element("mspace", width="2em"), tag))
