"""The lines that a stage and its starter exchange on the stage's standard input and output.

A line is one JSON object whose field "line" names its kind:

    starter to stage
        setup       the addresses of the stage's links, and the settings of the engine
        look        describe a model folder: the stage answers with `folder`
        plan        divide the model by layers: rank 0 answers with `plan`
        join        start to work: the job, and the addresses of all stages
        echo        listen for a measurement of the link: the stage answers with its port
        go          end the rest of a follower
        awake       on or off: keep the machine from sleeping
    stage to starter
        here        the process runs: its id, the ports that it chose, its versions
        up          the libraries are imported
        folder      a description of a model folder (folder.py)
        loading     bytes of the own weights that are in memory
        ready       the weights are in memory
        alive       every 0.5 s: memory, number of passes, duration of the current piece of work
        wake        rank 0 needs the resting followers
        problem     why the process ends

The end of standard input means that the starter has ended. The stage then ends at once.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, cast

from engine.errors import printable

MAX_LINE = 1 << 20  # bytes; the longest line describes a folder of a thousand files


class LineKind(StrEnum):
    """The kind of a line."""

    SETUP = "setup"
    LOOK = "look"
    PLAN = "plan"
    JOIN = "join"
    GO = "go"
    AWAKE = "awake"
    HERE = "here"
    UP = "up"
    FOLDER = "folder"
    ECHO = "echo"
    LOADING = "loading"
    READY = "ready"
    ALIVE = "alive"
    WAKE = "wake"
    PROBLEM = "problem"


def packed(kind: LineKind, **fields: object) -> bytes:
    """Return a line."""
    return json.dumps({"line": kind.value, **fields}).encode() + b"\n"


def parse(line: bytes) -> tuple[LineKind, dict[str, Any]] | None:
    """Return the kind and the fields of a line, or None for any other output."""
    try:
        content = json.loads(line)
        fields = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        return LineKind(fields.pop("line", "")), fields
    except (ValueError, RecursionError):
        return None


class LineBuffer:
    """Bytes of a stream, cut into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def split(self, chunk: bytes) -> Iterator[bytes]:
        """Add bytes. Yield the lines that are complete now. Drop the start of an endless line."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-MAX_LINE:]
        yield from lines


class Tail:
    """The last characters of a stream, for the sentence about a failure."""

    def __init__(self, length: int = 2000) -> None:
        self._length = length
        self._bytes = b""

    def add(self, chunk: bytes) -> None:
        self._bytes = (self._bytes + chunk)[-self._length :]

    @property
    def last_line(self) -> str:
        lines = self._bytes.decode("utf-8", "replace").strip().splitlines()
        return printable(lines[-1].strip(), 200) if lines else ""


class LineWriter:
    """Standard output of a stage. Every thread may write a line."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def write(self, kind: LineKind, **fields: object) -> None:
        """Write a line. End the process if the starter no longer reads."""
        data = packed(kind, **fields)
        try:
            with self._lock:
                while data:
                    data = data[os.write(self._descriptor, data) :]
        except OSError:
            os._exit(1)
