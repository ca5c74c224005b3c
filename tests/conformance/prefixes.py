"""Checks that a streamed answer has the right blocks after each of its characters. No Qt."""

from __future__ import annotations

from copy import deepcopy
from random import Random

from app.viewmodels.blocks import Block
from app.viewmodels.markdown import make_parser, normalized, parse_markdown
from app.viewmodels.markdown_stream import MarkdownStream

# Size limits of a piece in characters. The smallest is about a token, the largest a whole answer.
LONGEST_PIECES = (5, 60, 400, 3000)


class PrefixError(Exception):
    """A prefix of an answer gives wrong blocks. The message contains the length of the prefix."""


def check_prefixes(text: str, *, finish_every: int = 1) -> int:
    """Stream a text character by character and check the blocks after each character.

    Blocks that the stream has marked as final must never change. If the text ends after a prefix,
    the blocks must equal those of the prefix parsed as a whole. This slow comparison is made after
    every `finish_every`-th character and after the last one.

    Returns:
        The number of prefixes that were compared.

    Raises:
        PrefixError: the blocks of a prefix are wrong.
    """
    parser = make_parser()
    stream = MarkdownStream(parser)
    final: list[Block] = []
    num_ended = 0
    for length, character in enumerate(text, start=1):
        stream.append_text(character)
        # Read the blocks, as the view does after every change: this parses the end of the text.
        _ = stream.blocks
        if stream.frozen[: len(final)] != final:
            raise PrefixError(f"after {length} characters final blocks have changed")
        final += stream.frozen[len(final) :]
        if length % finish_every == 0 or length == len(text):
            # Copy the stream, but not its parser and its blocks, which never change.
            shared = {id(value): value for value in (parser, *stream.blocks)}
            _check_end(deepcopy(stream, shared), text[:length])
            num_ended += 1
    return num_ended


def check_pieces(text: str, random: Random) -> int:
    """Stream a text in pieces of random sizes. Compare its blocks with those of the whole text.

    Returns:
        The number of pieces.

    Raises:
        PrefixError: the blocks differ.
    """
    stream = MarkdownStream(make_parser())
    longest, start, num_pieces = random.choice(LONGEST_PIECES), 0, 0
    while start < len(text):
        end = start + random.randint(1, longest)
        stream.append_text(text[start:end])
        start, num_pieces = end, num_pieces + 1
    _check_end(stream, text)
    return num_pieces


def _check_end(stream: MarkdownStream, prefix: str) -> None:
    stream.finish()
    if stream.text != normalized(prefix):
        raise PrefixError(f"after {len(prefix)} characters the text differs")
    if stream.blocks != parse_markdown(prefix):
        raise PrefixError(f"after {len(prefix)} characters it is not what is read at once")
