"""Texts of the settings page about the local server."""

from __future__ import annotations

from typing import Final

from app.words import computer, units

TAB: Final = "Server"
SWITCH: Final = "Let Other Programs Use the Model"
PURPOSE: Final = (
    f"Coding agents, editors and scripts on {computer.THIS_COMPUTER} can chat with the loaded "
    "model, through the interfaces of OpenAI, Anthropic and Ollama. As in your own chats, what was "
    "read is kept."
)
ACCESS: Final = f"Only programs on {computer.THIS_COMPUTER} can connect, and only with the key."
WITHOUT_KEY: Final = f"Every program on {computer.THIS_COMPUTER} can connect, without a key."
ADDRESS: Final = "Address"
STARTING: Final = "Starting…"
OFF: Final = "Off"
WHEN_ON: Final = "They appear once the server is on and a model is loaded."
KEY: Final = "API key"
NEEDS_KEY: Final = "Programs Need the API Key"
NEW_KEY: Final = "New Key"
NEW_KEY_NOTE: Final = "Programs with the old key get no answer any more."
CHOOSES: Final = "Let Programs Choose the Model"
CHOOSES_NOTE: Final = (
    f"A program can load another model of {computer.THIS_COMPUTER} while no answer is written or "
    "waits. Your chats then use it too, until you choose a model or start Rejoinder again."
)
PORT: Final = "Port"
ORIGINS: Final = "Web pages"
ORIGINS_HINT: Final = "for example app://obsidian.md"
ORIGINS_NOTE: Final = "Pages in a browser can’t use the server, except from the addresses here."
SETTINGS_FOR: Final = "Settings for"
REQUESTS: Final = "Requests"
NO_REQUESTS: Final = "No request yet"
WAITS: Final = "waits"
STOP: Final = "Stop"
ANSWER: Final = "Answer"
ANSWER_SO_FAR: Final = "Answer so far"
NOTHING_YET: Final = "Nothing is written yet."
NO_TEXT: Final = "There is no text."


def belongs_to(place: str) -> str:
    return f"For {place}."


def settings_for(program: str) -> str:
    return f"{SETTINGS_FOR} {program}"


def kept_requests(number: int) -> str:
    return (
        f"The list is kept in memory only: the last {number} requests. Those that the model got "
        "have the start of their last message and the end of their answer, until the server stops."
    )


def open_request(client: str, progress: str, age: str) -> str:
    return f"{client}: {progress} · {age}"


def reads(done: int, total: int) -> str:
    return f"reads {done:,} of {units.tokens(total)}"


def writes(number: int) -> str:
    return f"writes, {units.tokens(number)}"


def gone(client: str) -> str:
    return f"{client}: the connection ended before the answer"


def stop_name(client: str) -> str:
    return f"Stop the answer to {client}"


def show_texts(client: str) -> str:
    return f"Show the text of the request of {client}"


def hide_texts(client: str) -> str:
    return f"Hide the text of the request of {client}"


def message_title(role: str, part: str) -> str:
    return f"Last message ({role}){part}"


def reply_title(name: str, part: str) -> str:
    return f"{name}{part}"


def first_of(shown: int, total: int) -> str:
    return f" · the first {shown:,} of {total:,} characters"


def last_of(shown: int, total: int) -> str:
    return f" · the last {shown:,} of {total:,} characters"


def with_change(line: str, number: int, role: str) -> str:
    return f"{line} · message {number} ({role}) changed"


def changed_title(number: int, role: str) -> str:
    return (
        f"Message {number} ({role}) has changed since the request before. "
        "The first line that differs, old and new:"
    )


def changed_lines(old: str, new: str) -> str:
    return f"- {old}\n+ {new}"
