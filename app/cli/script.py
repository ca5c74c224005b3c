"""The script language of `rejoinder bench script`: JSON lines, parsed into typed steps.

Each line is an object. Its key "op" names the kind of step; the other keys are the step's fields.
README.md has an example. parse_script() yields one frozen step for each line, and ScriptPlayer
(player.py) plays the steps. Unknown keys and values of a wrong type are errors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, cast

from app.conversation.answers import MAX_ANSWERS
from engine.questions import EvictWhat
from engine.types import ForcedReply

T = TypeVar("T")


class ScriptError(Exception):
    """An error in a script. If a line is invalid, the message includes the line number."""


class VersionOf(StrEnum):
    """The kinds of message for which a switch_branch step can select a version."""

    USER = "user"
    REPLY = "reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Step: set the system prompt of a chat."""

    chat: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """The options of a step that generates a reply."""

    max_tokens: int = 64
    temperature: float = 0.0
    seed: int = 0
    thinking: bool | None = None  # None for the default of the chat template
    keep_thinking: bool = False  # True if the prompt includes the reasoning of earlier replies
    stop_after: int | None = None  # number of tokens after which the reply is cancelled
    reply: ForcedReply | None = None  # text that the engine feeds instead of sampling tokens
    wait: bool = True  # False if the next step starts while this reply is still being written
    # Number of replies that are written at once, with seeds in a row. Only of Send and Regenerate.
    answers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Step: add a user message at the end of the visible branch, and generate a reply."""

    chat: str
    text: str
    generate: Generate
    folder: str | None = None  # the folder in which the chat is begun; for its first message only


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """Step: add files to the documents of a folder, and queue their reading ahead."""

    folder: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """Step: attach a file to the next message of a chat, and queue its reading ahead."""

    chat: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Regenerate:
    """Step: generate another version of the last reply."""

    chat: str
    generate: Generate


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """Step: continue the last reply, which was cut off."""

    chat: str
    generate: Generate


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Step: add another version of a user message on the visible branch, and generate a reply."""

    chat: str
    message: int  # position among the user messages, from 1
    text: str
    generate: Generate


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewEdit(Edit):
    """Step: preview the answer to an equal step `edit`. Its answer begins with this preview."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchBranch:
    """Step: show another version of a message on the visible branch."""

    chat: str
    message: int  # position among the messages of the kind `of`, from 1
    version: int  # number of the version to show, from 1 (the oldest)
    of: VersionOf  # kind of message: user message or reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetChat:
    """Step: drop the cached state of a chat."""

    chat: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictState:
    """Step: evict a part of the prefix cache."""

    what: EvictWhat


class Plain(StrEnum):
    """Steps without arguments."""

    RELOAD = "reload"  # load the model again
    RESTART = "restart"  # write cached state to disk, then end the engine and start a new one
    IDLE = "idle"  # let the engine do all its idle work, such as reading ahead
    JOIN = "join"  # wait until all replies have finished


GeneratingStep = Send | Regenerate | Continue | Edit
ScriptStep = (
    System
    | Attach
    | Documents
    | GeneratingStep
    | PreviewEdit
    | SwitchBranch
    | ForgetChat
    | EvictState
    | Plain
)


class _Fields:
    """The keys and values of one script line. pop() removes a key and checks the value's type."""

    def __init__(self, values: dict[str, object]) -> None:
        self._values = values

    def pop(self, key: str, kind: type[T]) -> T:
        if key not in self._values:
            raise ScriptError(f"{key!r} is missing")
        if kind is float and isinstance(self._values[key], int):
            self._values[key] = float(cast("int", self._values[key]))
        return self._checked(key, self._values.pop(key), kind)

    def pop_or(self, key: str, kind: type[T], default: T) -> T:
        if self._values.get(key) is None:
            self._values.pop(key, None)
            return default
        return self.pop(key, kind)

    def optional(self, key: str, kind: type[T]) -> T | None:
        return self.pop(key, kind) if self._values.get(key) is not None else None

    def end(self) -> None:
        unknown = [key for key, value in self._values.items() if value is not None]
        if unknown:
            raise ScriptError(f"unknown key {unknown[0]!r}")

    @staticmethod
    def _checked(key: str, value: object, kind: type[T]) -> T:
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits:
            raise ScriptError(f"{key!r} must be of type {kind.__name__}, not {value!r}")
        return cast("T", value)


def parse_script(lines: Iterable[str]) -> Iterator[ScriptStep]:
    """Yield the steps of a script. Skip blank lines.

    Raises:
        ScriptError: a line is not a valid step. The message includes the line number.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield parse_step(line)
            except (ScriptError, ValueError) as error:
                raise ScriptError(f"line {number}: {error}") from error


def parse_step(line: str) -> ScriptStep:
    """Parse one line of JSON into a step."""
    values: object = json.loads(line)
    if not isinstance(values, dict):
        raise ScriptError("a step is a JSON object")
    fields = _Fields(cast("dict[str, object]", values))
    op = fields.pop("op", str)
    parse = _PARSERS.get(op)
    if parse is None:
        raise ScriptError(f"unknown op {op!r}")
    step = parse(fields)
    fields.end()
    return step


def _generate(fields: _Fields, *, may_be_several: bool = False) -> Generate:
    generate = Generate(
        max_tokens=fields.pop_or("max_tokens", int, 64),
        temperature=fields.pop_or("temperature", float, 0.0),
        seed=fields.pop_or("seed", int, 0),
        thinking=fields.optional("thinking", bool),
        keep_thinking=fields.pop_or("keep_thinking", bool, default=False),
        stop_after=fields.optional("stop_after", int),
        reply=_forced(fields),
        wait=fields.pop_or("wait", bool, default=True),
        answers=fields.pop_or("answers", int, 1) if may_be_several else 1,
    )
    if not 1 <= generate.answers <= MAX_ANSWERS:
        raise ScriptError(f"'answers' is a number from 1 to {MAX_ANSWERS}")
    if generate.max_tokens < 1 or (generate.stop_after is not None and generate.stop_after < 1):
        raise ScriptError("'max_tokens' and 'stop_after' count from 1")
    if generate.temperature < 0:
        raise ScriptError("'temperature' can't be below 0")
    return generate


def _forced(fields: _Fields) -> ForcedReply | None:
    values = fields.optional("reply", object)
    if values is None:
        return None
    if not isinstance(values, dict):
        raise ScriptError("'reply' must be an object")
    inner = _Fields(cast("dict[str, object]", values))
    reply = ForcedReply(text=inner.pop("text", str), reasoning=inner.pop_or("reasoning", str, ""))
    inner.end()
    return reply


def _send(fields: _Fields) -> Send:
    return Send(
        chat=fields.pop("chat", str),
        text=fields.pop("text", str),
        generate=_generate(fields, may_be_several=True),
        folder=fields.optional("folder", str),
    )


def _documents(fields: _Fields) -> Documents:
    folder = fields.pop("folder", str)
    files = cast("list[object]", fields.pop("files", list))
    if not files or not all(isinstance(file, str) for file in files):
        raise ScriptError("'files' must be a list of paths")
    if not folder or ":" in folder:
        raise ScriptError("'folder' must be a name without colons")
    return Documents(folder=folder, files=tuple(map(str, files)))


def _regenerate(fields: _Fields) -> Regenerate:
    generate = _generate(fields, may_be_several=True)
    return Regenerate(chat=fields.pop("chat", str), generate=generate)


def _edit(fields: _Fields, kind: type[Edit] = Edit) -> Edit:
    return kind(
        chat=fields.pop("chat", str),
        message=fields.pop("message", int),
        text=fields.pop("text", str),
        generate=_generate(fields),
    )


def _switch(fields: _Fields) -> SwitchBranch:
    return SwitchBranch(
        chat=fields.pop("chat", str),
        message=fields.pop("message", int),
        version=fields.pop("version", int),
        of=VersionOf(fields.pop("of", str)),
    )


_PARSERS: dict[str, Callable[[_Fields], ScriptStep]] = {
    "system": lambda f: System(chat=f.pop("chat", str), text=f.pop("text", str)),
    "attach": lambda f: Attach(chat=f.pop("chat", str), file=f.pop("file", str)),
    "documents": _documents,
    "send": _send,
    "regenerate": _regenerate,
    "continue": lambda f: Continue(chat=f.pop("chat", str), generate=_generate(f)),
    "edit": _edit,
    "preview": lambda f: _edit(f, PreviewEdit),
    "switch_branch": _switch,
    "forget": lambda f: ForgetChat(chat=f.pop("chat", str)),
    "evict": lambda f: EvictState(what=EvictWhat(f.pop("what", str))),
    "restart": lambda _: Plain.RESTART,
    "reload": lambda _: Plain.RELOAD,
    "idle": lambda _: Plain.IDLE,
    "join": lambda _: Plain.JOIN,
}
