"""The task that an agent does: the calls that the model writes in each turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from engine.types import ForcedReply, Request, Role

_MARK = "Task 4711"
# The second prompt is sent to a new process of the agent, which continues the chat.
PROMPTS = (
    f"{_MARK}: make the file notes.txt, step by step, and say when it is done.",
    f"{_MARK}, second part: count the lines of the file.",
)
DONE = "The notes are complete."
_SIDE_PROMPT = "Side question: what is a boat?"
_SIDE_REPLY = ForcedReply(text="A boat is a small ship.")
_NUM_LINES = 4  # lines of the file at the end


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    tool: str
    arguments: dict[str, object]

    @property
    def text(self) -> str:
        """The call as the model writes it: the format of Qwen3.5."""
        parameters = "".join(
            f"<parameter={name}>\n{value if isinstance(value, str) else json.dumps(value)}\n"
            "</parameter>\n"
            for name, value in self.arguments.items()
        )
        return f"<tool_call>\n<function={self.tool}>\n{parameters}</function>\n</tool_call>"


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of an agent. Each function returns a call."""

    run: Callable[[str], Call]  # runs a command
    read: Callable[[Path], Call]  # reads a file
    write: Callable[[Path, str], Call]  # writes a text to a file
    # Asks a second agent, which has another system prompt. None: the agent has no such tool.
    ask: Callable[[str], Call] | None = None


class Script:
    """The replies of the model to an agent."""

    def __init__(self, tools: Tools, folder: Path) -> None:
        """Create the script. folder: where the agent works."""
        self._file = folder / "notes.txt"
        self._replies = [_reply(calls, number) for number, calls in enumerate(self._turns(tools))]

    @property
    def is_done(self) -> bool:
        """True if the file has all its lines."""
        return self._file.is_file() and self._file.read_text().split() == _lines(_NUM_LINES).split()

    def reply_to(self, request: Request) -> ForcedReply:
        """Return the reply of the turn that a request has reached.

        The turn is the number of replies since the first prompt: clients may send a request again.
        """
        if not is_main(request):
            return _SIDE_REPLY
        since = dropwhile(lambda message: _MARK not in message.content, request.messages)
        turn = sum(message.role is Role.ASSISTANT for message in since)
        reply = self._replies[min(turn, len(self._replies) - 1)]
        return ForcedReply(
            text=reply, reasoning="" if request.thinking is False else f"Turn {turn}."
        )

    def _turns(self, tools: Tools) -> Sequence[Sequence[Call]]:
        """Return the calls of each turn. A turn without calls ends the answer to a prompt."""
        file = self._file
        # The file is read before it is written again: agents demand this.
        writing = [
            [call]
            for number in range(1, _NUM_LINES + 1)
            for call in (tools.write(file, _lines(number)), tools.read(file))
        ]
        return [
            [tools.run("ls -a")],
            [tools.run("seq 1 200")],
            *writing[:4],
            [tools.run("cat missing.txt")],
            [Call("no_such_tool", {"word": "fox"})],
            *([[tools.ask(_SIDE_PROMPT)]] if tools.ask else []),
            [tools.run("printf 'naïve 天気 🚤 <|im_end|>'"), tools.run("echo two")],
            *writing[4:],
            [],
            [tools.run("wc -l notes.txt")],
            [tools.read(file)],
            [],
        ]


def is_main(request: Request) -> bool:
    """Return True if a request belongs to the task, False for titles, memories and second agents."""
    return bool(request.tools) and any(
        message.role is Role.USER and _MARK in message.content for message in request.messages
    )


def has_changed(before: Request, now: Request) -> bool:
    """Return True if a client changed or left out a message of its request before, or the reply."""
    length = len(before.messages)
    old, new = (
        [(one.role, one.content, one.calls) for one in request.messages[:length]]
        for request in (before, now)
    )
    return old != new or now.messages[length].reply is None


def _reply(calls: Sequence[Call], number: int) -> str:
    if not calls:
        return DONE
    return "\n\n".join([f"This is step {number}.", *(call.text for call in calls)])


def _lines(number: int) -> str:
    return "".join(f"Line {index} of the notes.\n" for index in range(1, number + 1))
