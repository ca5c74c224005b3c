"""An HTTP server in the test's process that speaks OpenAI's chat protocol.

The server counts each character as one token."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import takewhile
from typing import Any

from typing_extensions import override


class Memory(Enum):
    """The amount of earlier prompts that the server keeps in its cache."""

    EVERYTHING = auto()  # restores the longest prefix shared with any earlier prompt and its reply
    LAST_PROMPT = auto()  # restores the prefix shared with the previous prompt only
    NOTHING = auto()


class Fault(Enum):
    """A fault that a test puts into the server's responses."""

    STATUS_500 = auto()
    NO_USAGE = auto()
    ERROR_EVENT = auto()
    NO_JSON = auto()


@dataclass
class ChatServerRequest:
    """A request, and the number of characters of its prompt that the server restored."""

    body: dict[str, Any]
    prompt: str
    known: int  # length of the longest prefix that was part of an earlier request
    cached: int  # length of the prompt's prefix that the server restores


@dataclass
class ChatServer:
    memory: Memory = Memory.EVERYTHING
    fault: Fault | None = None
    reply: str = "Yes, at noon."
    asked: list[ChatServerRequest] = field(default_factory=list[ChatServerRequest])
    url: str = ""

    def receive(self, body: dict[str, Any]) -> ChatServerRequest:
        prompt = "".join(f"{m['role']}\n{m['content']}\n" for m in body["messages"])
        prompt += "assistant\n"
        known = max((common(prompt, other.prompt + self.reply) for other in self.asked), default=0)
        match self.memory:
            case Memory.EVERYTHING:
                cached = known
            case Memory.LAST_PROMPT:
                cached = common(prompt, self.asked[-1].prompt) if self.asked else 0
            case Memory.NOTHING:
                cached = 0
        self.asked.append(ChatServerRequest(body, prompt, known, cached))
        return self.asked[-1]

    def events(self, asked: ChatServerRequest) -> list[str]:
        if self.fault is Fault.NO_JSON:
            return ["<html>"]
        if self.fault is Fault.ERROR_EVENT:
            return [json.dumps({"error": {"message": "out of memory"}})]
        deltas = [{"role": "assistant"}, *({"content": word} for word in self.reply)]
        events: list[dict[str, Any]] = [{"choices": [{"delta": delta}]} for delta in deltas]
        if self.fault is not Fault.NO_USAGE:
            usage: dict[str, Any] = {
                "prompt_tokens": len(asked.prompt),
                "completion_tokens": len(self.reply),
            }
            if asked.cached:
                usage["prompt_tokens_details"] = {"cached_tokens": asked.cached}
            events.append({"choices": [], "usage": usage})
        return [*map(json.dumps, events), "[DONE]"]


def common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@contextmanager
def serve(server: ChatServer) -> Generator[ChatServer]:
    """Run the server on a free port until the context ends. Requests are answered one by one."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = server.receive(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if server.fault is Fault.STATUS_500 else 200)
            self.end_headers()
            if server.fault is Fault.STATUS_500:
                self.wfile.write(b'{"error":\n "the model fell over"}')
                return
            self.wfile.write(b": keepalive 1/2\n\n")
            with suppress(ConnectionError):  # raised if the client closes the connection
                for event in server.events(asked):
                    self.wfile.write(f"data: {event}\n\n".encode())

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Suppress the request log that the base class writes to stderr."""

    http = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_port}/v1"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
