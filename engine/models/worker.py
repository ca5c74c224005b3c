"""The program of the worker process: run chat templates and encode texts for the app.

It reads calls from its standard input and writes answers to its standard output, until its input
ends. `isolated.py` sends the calls. Each call states the seconds after which the system ends this
process, even if no Python code runs.
"""

from __future__ import annotations

import signal
import sys
from array import array
from collections.abc import Mapping
from typing import Any, cast

from tokenizers import Tokenizer

from engine.chat.encoder import TextEncoder
from engine.errors import TokenizerError, is_failure, problem_of
from engine.models.renderer import JinjaRenderer
from engine.types import Message, Role
from engine.worker.frames import Frame, pack_texts, read_frame, unpack_texts

# Largest number of added tokens. A regular expression with all of them searches each text, and
# transformers adds them one by one. The largest known vocabulary has 6,415.
_MAX_ADDED_TOKENS = 50_000


def main() -> None:
    """Answer calls until the input ends."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    made: dict[int, JinjaRenderer | TextEncoder] = {}
    while (frame := read_frame(sys.stdin.buffer.read)) is not None:
        header = cast("dict[str, Any]", frame.header)
        signal.setitimer(signal.ITIMER_REAL, header["limit_s"])
        try:
            answer = _answer(made, header, frame.body)
        except BaseException as error:
            if not is_failure(error):
                raise
            answer = Frame({"error": problem_of(error).cause})
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.buffer.write(answer.packed())
        sys.stdout.buffer.flush()


def _answer(
    made: dict[int, JinjaRenderer | TextEncoder], header: Mapping[str, Any], body: bytes
) -> Frame:
    if "rehearse" in header:
        _read_tokenizer(header["rehearse"])
        return Frame()
    for number in header.get("drop", ()):
        made.pop(number, None)
    number = header["number"]
    match header.get("make"):
        case "template":
            template = body.decode()
            made[number] = JinjaRenderer(template, header["special_tokens"])
            return Frame()
        case "tokenizer":
            made[number] = TextEncoder(Tokenizer.from_str(body.decode()))
            return Frame()
        case _:
            pass
    texts = unpack_texts(header["lengths"], body)
    called, method = made[number], getattr(made[number], header["method"])
    if isinstance(called, TextEncoder):
        return Frame(body=array("I", method(*texts)).tobytes())
    messages = [
        Message(role=Role(role), content=content, reasoning=reasoning)
        for role, content, reasoning in zip(header["roles"], texts[::2], texts[1::2], strict=True)
    ]
    result = method(messages, options=header["options"], reply_follows=header["reply_follows"])
    if isinstance(result, str):
        return Frame(body=result.encode("utf-8", "replace"))
    lengths, body = pack_texts(segment.text for segment in result)
    rest = [(segment.message, segment.is_content, segment.is_reasoning) for segment in result]
    return Frame({"lengths": lengths, "segments": rest}, body)


def _read_tokenizer(path: str) -> None:
    """Read a tokenizer.json, which may be endless or wrong in any way.

    Raises:
        TokenizerError: tokenizers cannot read the file, it has too many added tokens, or its decoder
            may never end. The app decodes in its own process.
    """
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # tokenizers raises bare Exception
        raise TokenizerError(f"It says: {error}.") from error
    if tokenizer.decoder is not None and b'"Regex"' in tokenizer.decoder.__getstate__():
        raise TokenizerError("It decodes with a regular expression.")
    count = len(tokenizer.get_added_tokens_decoder())
    if count > _MAX_ADDED_TOKENS:
        raise TokenizerError(f"It has {count:,} added tokens, more than {_MAX_ADDED_TOKENS:,}.")
