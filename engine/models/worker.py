"""The program of the worker process: run chat templates, encode texts and parse calls for the app.

`isolated.py` sends the calls. The seconds that each call may take are time of the clock, because a
person waits for the answer.
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import Any, cast

from tokenizers import Tokenizer

from engine.chat.encoder import TextEncoder
from engine.errors import TokenizerError
from engine.models.model_calls import ModelCalls, load_parser
from engine.models.renderer import SOME_PICTURE, JinjaRenderer
from engine.types import Message, Role, ToolCall
from engine.worker.confinement import only_compute
from engine.worker.frames import Frame, pack_texts, unpack_texts
from engine.worker.loop import answer_calls

# Largest number of added tokens. A regular expression with all of them searches each text, and
# transformers adds them one by one. The largest known vocabulary has 6,415.
_MAX_ADDED_TOKENS = 50_000
# Most bytes of a part of tokenizer.json other than the vocabulary. A map of characters has 0.3 MB.
_MAX_PART_BYTES = 2_000_000
_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")

Made = JinjaRenderer | TextEncoder | ModelCalls


def main() -> None:
    """Answer calls until the input ends."""
    only_compute(has_threads=True)  # of tokenizers
    made: dict[int, Made] = {}
    answer_calls(partial(_answer, made), counts_cpu_time=False)


def _answer(made: dict[int, Made], call: Frame) -> Frame:
    header, body = cast("dict[str, Any]", call.header), call.body
    if "rehearse" in header:
        _read_tokenizer(header["rehearse"])
        return Frame()
    for number in header.get("drop", ()):
        made.pop(number, None)
    number = header["number"]
    if "make" in header:
        made[number] = _make(header, body)
        return Frame()
    texts = unpack_texts(header["lengths"], body)
    called = made[number]
    if isinstance(called, ModelCalls):
        lengths, body = pack_texts(called.parse(*texts))
        return Frame({"lengths": lengths}, body)
    method = getattr(called, header["method"])
    if isinstance(called, TextEncoder):
        return Frame(body=array("I", method(*texts)).tobytes())
    messages = [
        Message(
            role=Role(role),
            content=content,
            reasoning=reasoning,
            calls=tuple(ToolCall(name=name, arguments=text) for name, text in calls),
            tool_name=tool_name,
            pictures=(SOME_PICTURE,) * num_pictures,
        )
        for role, content, reasoning, calls, tool_name, num_pictures in zip(
            header["roles"],
            texts[::2],
            texts[1::2],
            header["calls"],
            header["tool_names"],
            header["num_pictures"],
            strict=True,
        )
    ]
    arguments = header["arguments"]
    if "verbatim" in arguments:
        arguments["verbatim"] = frozenset(arguments["verbatim"])
    result = method(messages, **arguments)
    if isinstance(result, str):
        return Frame(body=result.encode("utf-8", "replace"))
    lengths, body = pack_texts(segment.text for segment in result)
    rest = [(segment.message, segment.is_content, segment.is_reasoning) for segment in result]
    return Frame({"lengths": lengths, "segments": rest}, body)


def _make(header: dict[str, Any], body: bytes) -> Made:
    match header["make"]:
        case "template":
            return JinjaRenderer(body.decode(), header["special_tokens"])
        case "calls":
            return load_parser(header["module"])
        case _:
            return TextEncoder(Tokenizer.from_str(body.decode()))


def _read_tokenizer(path: str) -> None:
    """Read a tokenizer.json, which may be endless or wrong in any way.

    Raises:
        TokenizerError: tokenizers cannot read the file, a part of it is too large, or its decoder
            may never end. The app reads the file again and decodes in its own process.
    """
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # tokenizers raises bare Exception
        raise TokenizerError(f"It says: {error}.") from error
    for name in _PARTS:
        part = getattr(tokenizer, name)
        num_bytes = 0 if part is None else len(part.__getstate__())
        if num_bytes > _MAX_PART_BYTES:
            raise TokenizerError(
                f"The {name} in tokenizer.json has {num_bytes / 1e6:.0f} MB, and at most"
                f" {_MAX_PART_BYTES / 1e6:.0f} MB are read."
            )
    if tokenizer.decoder is not None and b'"Regex"' in tokenizer.decoder.__getstate__():
        raise TokenizerError("It decodes with a regular expression.")
    count = len(tokenizer.get_added_tokens_decoder())
    if count > _MAX_ADDED_TOKENS:
        raise TokenizerError(f"It has {count:,} added tokens, more than {_MAX_ADDED_TOKENS:,}.")
