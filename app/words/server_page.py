"""Texts of the settings page about the local server."""

from __future__ import annotations

from typing import Final

from app.words import computer

TAB: Final = "Server"
SWITCH: Final = "Let Other Programs Use the Model"
PURPOSE: Final = (
    f"Coding agents, editors and scripts on {computer.THIS_COMPUTER} can chat with the loaded model, through the "
    "interfaces of OpenAI, Anthropic and Ollama. As in your own chats, what was read is kept."
)
ACCESS: Final = f"Only programs on {computer.THIS_COMPUTER} can connect."
WITHOUT_KEY: Final = f"Every program on {computer.THIS_COMPUTER} can connect, without a key."
ADDRESS: Final = "Address"
STARTING: Final = "Starting…"
OFF: Final = "Off"
WHEN_ON: Final = "They appear once the server is on and a model is loaded."
KEY: Final = "API key"
NEEDS_KEY: Final = "Programs Need the API Key"
NEW_KEY: Final = "New Key"
NEW_KEY_NOTE: Final = "Programs with the old key get no answer any more."
PORT: Final = "Port"
ORIGINS: Final = "Web pages"
ORIGINS_HINT: Final = "app://obsidian.md"
ORIGINS_NOTE: Final = "Pages in a browser can’t use the server, except from the addresses here."
SETTINGS_FOR: Final = "Settings for"
REQUESTS: Final = "Latest requests"
NO_REQUESTS: Final = "No answered request yet"


def belongs_to(place: str) -> str:
    return f"For {place}."
