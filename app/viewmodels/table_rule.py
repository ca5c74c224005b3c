"""A markdown-it rule for tables of limited size. Text of a larger table stays a paragraph.

The table rule fills short rows with empty cells. Without a limit, a short text could make a table
with very many cells. No Qt, no I/O.
"""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table

MAX_COLUMNS = 24  # a table with more columns takes too long to lay out
MAX_MISSING = 2_000  # number of empty cells that may be added to the rows of a table


def limit_tables(parser: MarkdownIt) -> None:
    """Replace a parser's table rule with a rule that ignores tables larger than the limits."""
    parser.block.ruler.at("table", _limited_table, {"alt": ["paragraph", "reference"]})


# The parameters are those of markdown-it's rules.
def _limited_table(state: StateBlock, first: int, last: int, silent: bool) -> bool:  # noqa: FBT001
    return _is_small(state, first, last) and table(state, first, last, silent)


def _is_small(state: StateBlock, first: int, last: int) -> bool:
    """Return False if there is a table from line `first` on, and it is too large to lay out.

    Args:
        state: the parser's state, with all lines.
        first: the number of the line that may be the head of a table.
        last: the number of the line after the last one. An empty line ends the table before.
    """
    num_columns = _num_pipes(state, first) + 1
    if first + 1 >= last or num_columns == 1:
        return True  # these lines are no table, and the table rule returns the same result
    if num_columns > MAX_COLUMNS + 2:
        return False
    missing = 0
    for line in range(first + 2, last):
        if state.isEmpty(line):
            break
        missing += max(0, num_columns - 3 - _num_pipes(state, line))
    return missing <= MAX_MISSING


def _num_pipes(state: StateBlock, line: int) -> int:
    return state.src.count("|", state.bMarks[line], state.eMarks[line])
