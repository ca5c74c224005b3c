"""The chat template and the encoder of a model, run by the worker process (engine/worker)."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence, Set
from typing import Any, cast

from tokenizers import Tokenizer
from typing_extensions import override

from engine.chat.segments import Renderer, Segment
from engine.errors import (
    TemplateError,
    TemplateLimitError,
    TextTooLongError,
    TokenizerError,
    ToolCallError,
)
from engine.types import Message, ToolCall
from engine.worker.frames import Frame, pack_texts, unpack_texts
from engine.worker.process import WorkerEndedError, WorkerError, shared_worker

# Seconds that a call may take, and seconds more for each character. Both are far above what any
# sensible template or tokenizer takes: 1e-6 s for each character to encode.
_CALL_S = 4.0
_CHARACTER_S = 1e-5
# Characters of a text from which the text is to blame, and not the tokenizer, if a limit is
# exceeded. Encoding takes about 200 bytes a character.
_LONG_TEXT = 1_000_000
# Most characters of a tool call and the tools of its request. A model writes 100,000 in hours.
_MAX_CALL_LEN = 4_000_000


class IsolatedRenderer(Renderer):
    """Runs the Jinja chat template of a model's folder in the worker process."""

    def __init__(self, template: str, special_tokens: Mapping[str, str]) -> None:
        self._template = template
        self._special_tokens = dict(special_tokens)
        self._worker = shared_worker()
        self._number = self._worker.new_number(self)

    @override
    def render(
        self, messages: Sequence[Message], *, options: Mapping[str, object], reply_follows: bool
    ) -> str:
        answer = self._call("render", messages, options, reply_follows=reply_follows)
        return answer.body.decode()

    @override
    def segments(
        self,
        messages: Sequence[Message],
        *,
        options: Mapping[str, object],
        reply_follows: bool,
        verbatim: Set[int] = frozenset(),
    ) -> list[Segment]:
        answer = self._call(
            "segments", messages, options, reply_follows=reply_follows, verbatim=sorted(verbatim)
        )
        header = cast("dict[str, Any]", answer.header)
        texts = unpack_texts(header["lengths"], answer.body)
        return [Segment(text, *rest) for text, rest in zip(texts, header["segments"], strict=True)]

    def _call(
        self,
        method: str,
        messages: Sequence[Message],
        options: Mapping[str, object],
        **arguments: bool | list[int],
    ) -> Frame:
        lengths, body = pack_texts(text for m in messages for text in (m.content, m.reasoning))
        header = {
            "method": method,
            "roles": [message.role.value for message in messages],
            "calls": [[(one.name, one.arguments) for one in m.calls] for m in messages],
            "tool_names": [message.tool_name for message in messages],
            "num_pictures": [len(message.pictures) for message in messages],
            "lengths": lengths,
            "arguments": {"options": dict(options), **arguments},
        }
        # The header has the tools, which may be as long as a long text.
        limit_s = _CALL_S + _CHARACTER_S * (sum(lengths) + len(json.dumps(header)))
        try:
            return self._worker.call(self._number, self._setup, Frame(header, body), limit_s)
        except WorkerEndedError as error:
            raise TemplateLimitError(str(error)) from error
        except WorkerError as error:
            raise TemplateError(str(error)) from error

    def _setup(self) -> Frame:
        header = {"make": "template", "special_tokens": self._special_tokens}
        return Frame(header, self._template.encode("utf-8", "replace"))


class CallParser:
    """Parses the tool calls of a model in the worker process, with a parser of mlx-lm."""

    def __init__(self, module: str, start: str = "", end: str = "") -> None:
        """Create the parser of a model.

        Args:
            module: name of a module in mlx_lm.tool_parsers; "" if the form of calls is not known.
            start: text before a call in a reply.
            end: text after a call; "" if a call ends with the reply.
        """
        self.start = start
        self.end = end
        self.module = module
        self._worker = shared_worker()
        self._number = self._worker.new_number(self)

    def parse(self, text: str, tools: str) -> tuple[ToolCall, ...]:
        """Return the calls in a text that the model wrote.

        Args:
            text: the text between `start` and `end`.
            tools: Request.tools. Some parsers convert arguments to the types that it names.

        Raises:
            ToolCallError: the text is no call, is too long, or takes too long.
        """
        if not self.module:
            raise ToolCallError("The form of this model’s tool calls is not known.")
        if len(text) + len(tools) > _MAX_CALL_LEN:
            raise ToolCallError(f"It has more than {_MAX_CALL_LEN:,} characters.")
        lengths, body = pack_texts((text, tools))
        frame = Frame({"lengths": lengths}, body)
        limit_s = _CALL_S + _CHARACTER_S * sum(lengths)
        try:
            answer = self._worker.call(self._number, self._setup, frame, limit_s)
        except WorkerError as error:
            raise ToolCallError(str(error)) from error
        texts = unpack_texts(cast("Sequence[int]", answer.header["lengths"]), answer.body)
        pairs = zip(texts[::2], texts[1::2], strict=True)
        return tuple(ToolCall(name=name, arguments=arguments) for name, arguments in pairs)

    def _setup(self) -> Frame:
        return Frame({"make": "calls", "module": self.module})


class IsolatedEncoder:
    """Encodes text in the worker process, with a copy of a tokenizer."""

    def __init__(self, backend: Tokenizer) -> None:
        self._backend = backend
        self._worker = shared_worker()
        self._number = self._worker.new_number(self)

    def copy(self) -> None:
        """Copy the tokenizer to the worker process now. The first call would do it otherwise."""
        self.encode_text("")

    def encode_template(self, text: str) -> tuple[int, ...]:
        return self._encode("encode_template", text)

    def encode_text(self, text: str) -> tuple[int, ...]:
        return self._encode("encode_text", text)

    def encode_run(self, control: str, text: str) -> tuple[int, ...]:
        return self._encode("encode_run", control, text)

    def _encode(self, method: str, *texts: str) -> tuple[int, ...]:
        lengths, body = pack_texts(texts)
        frame = Frame({"method": method, "lengths": lengths}, body)
        limit_s = _CALL_S + _CHARACTER_S * sum(lengths)
        try:
            answer = self._worker.call(self._number, self._setup, frame, limit_s)
        except WorkerError as error:
            if isinstance(error, WorkerEndedError) and sum(lengths) > _LONG_TEXT:
                raise TextTooLongError(str(error)) from error
            raise TokenizerError(str(error)) from error
        return tuple(array("I", answer.body))

    def _setup(self) -> Frame:
        try:
            return Frame({"make": "tokenizer"}, self._backend.to_str().encode())
        except Exception as error:  # tokenizers raises bare Exception
            raise TokenizerError("It has a part that is written in Python.") from error
