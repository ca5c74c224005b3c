"""Every prefix of an answer as the view model reads it: streamed, and ended there. Pure."""

from __future__ import annotations

from copy import deepcopy
from random import Random

from app.viewmodels.blocks import Block
from app.viewmodels.markdown import make_parser, normalized, parse_markdown
from app.viewmodels.markdown_stream import MarkdownStream

LONGEST_PIECES = (5, 60, 400, 3000)  # characters: a token, a frame's, a stored answer's


class PrefixError(Exception):
    """A prefix, by its length, that is shown wrongly."""


def check_prefixes(text: str, *, finish_every: int = 1) -> int:
    """Stream a text character by character; returns the number of prefixes that were also ended.

    Final blocks must stay as they are. A stream that ends after a prefix must have the blocks of that
    prefix read at once; as this takes as long as reading it, only every finish_every-th is ended, and the
    last. Raises PrefixError.
    """
    parser = make_parser()
    stream = MarkdownStream(parser)
    final: list[Block] = []
    num_ended = 0
    for length, character in enumerate(text, start=1):
        stream.append_text(character)
        _ = stream.blocks  # read after every character, as the view does
        if stream.frozen[: len(final)] != final:
            raise PrefixError(f"after {length} characters final blocks have changed")
        final += stream.frozen[len(final) :]
        if length % finish_every == 0 or length == len(text):
            shared = {id(value): value for value in (parser, *stream.blocks)}  # none ever changes
            _check_end(deepcopy(stream, shared), text[:length])
            num_ended += 1
    return num_ended


def check_pieces(text: str, random: Random) -> int:
    """Stream a text in pieces of any size: in the end it must be what is read at once.

    Returns:
        The number of pieces.
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
