"""Sixty long Markdown answers such as models write, built from the fragments of answer_pieces.py.

An answer depends on its number only. Tests stream the answers and compare the transcript at each
prefix.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.fakes import answer_pieces as pieces

NUM_ANSWERS = 60
SHORTEST, LONGEST = 2_500, 5_000  # range of the target length in characters

Block = Callable[[Random], str]


def long_answer(number: int) -> str:
    """Build an answer. Every fifth is mostly broken Markdown. Every seventh has CRLF line ends."""
    random = Random(number)
    is_broken = number % 5 == 4
    kinds = [*_BLOCKS, *([_oddity, _broken_text] * 3 if is_broken else [])]
    wanted, length = random.randint(SHORTEST, LONGEST), 0
    blocks: list[str] = [_heading(random), _text(random)]
    while length < wanted:
        block = random.choice(kinds)(random)
        blocks.append(block)
        # Models sometimes omit the empty line between two blocks.
        blocks.append("\n" if random.random() < (0.4 if is_broken else 0.1) else "\n\n")
        length += len(block)
    answer = "".join(blocks) + random.choice(pieces.ENDINGS)
    return answer.replace("\n", "\r\n") if number % 7 == 6 else answer


def _inline(random: Random, templates: tuple[str, ...] = pieces.INLINES) -> str:
    return random.choice(templates).format(*[random.choice(pieces.WORDS)] * 2)


def _text(random: Random) -> str:
    parts: list[str] = []
    for _ in range(random.randint(2, 5)):
        pool = pieces.OTHER_SCRIPTS if random.random() < 0.2 else pieces.SENTENCES
        parts += [random.choice(pool), _inline(random)]
    return random.choice([" ", " ", "\n"]).join(parts) + "\n\n"


def _broken_text(random: Random) -> str:
    parts = [
        _inline(random, random.choice([pieces.INLINES, pieces.BROKEN_INLINES])) for _ in "abcd"
    ]
    return random.choice(pieces.SENTENCES) + random.choice([" ", "\n"]).join(parts)


def _heading(random: Random) -> str:
    level, closing = "#" * random.randint(1, 6), random.choice(["", "", " ##"])
    return f"{level} {random.choice(pieces.WORDS).title()} {_inline(random)}{closing}\n\n"


def _code(random: Random) -> str:
    name = random.choice(list(pieces.CODE))
    fence = random.choice(["```", "```", "````", "~~~"])
    return f"{fence}{name}\n{pieces.CODE[name]}\n{fence}"


def _list(random: Random) -> str:
    """Return one of the fixed lists, or a list of random sentences."""
    if random.random() < 0.5:
        return random.choice(pieces.LISTS)
    marker = random.choice(["-", "*", "1.", "+"])
    gap = random.choice(["\n", "\n\n"])
    return gap.join(
        f"{marker} {_inline(random)}: {random.choice(pieces.SENTENCES)}"
        for _ in range(random.randint(2, 6))
    )


def _oddity(random: Random) -> str:
    return random.choice(pieces.ODDITIES)


def _table(random: Random) -> str:
    return random.choice(pieces.TABLES)


def _quote(random: Random) -> str:
    return random.choice(pieces.QUOTES)


def _display(random: Random) -> str:
    return random.choice(pieces.DISPLAYS)


_BLOCKS: tuple[Block, ...] = (
    _text,
    _text,
    _heading,
    _code,
    _code,
    _list,
    _list,
    _table,
    _quote,
    _display,
    _oddity,
)
