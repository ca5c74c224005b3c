"""Texts of the transcript: labels around messages, buttons, and texts for screen readers."""

from __future__ import annotations

from typing import Final

from app.words import units

TRANSCRIPT: Final = "Chat"
JUMP: Final = "Jump to latest"

# Buttons under and beside a message.
EDIT: Final = "Edit"  # button that edits one message
EDIT_ANSWER: Final = "Edit Answer"
FORK: Final = "Fork into a New Chat"
OPEN_LINK: Final = "Open Link"
COPY_LINK: Final = "Copy Link"
COPY_LINK_TEXT: Final = "Copy Link Text"
COPY_LATEX: Final = "Copy LaTeX"
COPY_MESSAGE: Final = "Copy Message"
QUOTE: Final = "Quote in Reply"
DELETE_VERSION: Final = "Delete This Version"
DELETE_FROM_HERE: Final = "Delete This and Everything After"
RETRY: Final = "Retry"
GET_ANSWER: Final = "Get an Answer"
SHOW_ALL: Final = "Show all"
SHOW_LESS: Final = "Show less"

# Texts of the editor that replaces a message.
EDIT_FIELD: Final = "Edit message"
EDIT_ANSWER_FIELD: Final = "Edit answer"
SEND_VERSION: Final = "Send as New Version"
SEND_NOTE: Final = "The model answers again"
SAVE_VERSION: Final = "Save as New Version"
SAVE_NOTE: Final = "The chat continues from this text"

# Buttons in the header of a code block.
COPY_CODE: Final = "Copy Code"
WRAP: Final = "Wrap"
WRAP_TIP: Final = "Wrap long lines"
UNWRAP_TIP: Final = "Don’t wrap long lines"
SAVE: Final = "Save…"
SAVE_TIP: Final = "Save as a file"
TEXT_FILE: Final = "text.txt"  # suggested file name for plain text

# Labels of the reasoning before an answer.
THINKING: Final = "Thinking…"
THOUGHT: Final = "Thought"

# Reasons why an answer is incomplete or missing.
STOPPED: Final = "Stopped"
APP_QUIT: Final = "Stopped when Rejoinder was quit"
APP_ENDED: Final = "Rejoinder ended during this answer"
NO_ANSWER: Final = "No answer"
INTERRUPTED: Final = "Interrupted"
SILENT: Final = "The model wrote no answer"
NO_ROOM: Final = "The context or the memory is full"

# Texts for screen readers.
MESSAGES: Final = "Messages"
YOU: Final = "You"
ASSISTANT: Final = "Assistant"
SYSTEM: Final = "System"  # name of the role of the system prompt
BEING_WRITTEN: Final = "being written"
WAS_STOPPED: Final = "stopped"
HAS_FAILED: Final = "failed"
NOT_ANSWERED: Final = "no answer"
ANSWERING: Final = "Answering…"
ANSWER_STOPPED: Final = "Answer stopped"


# Reasons why a formula is shown as code.
FORMULA_TOO_LONG: Final = "Shown as LaTeX: the formula is too long to draw."
FORMULA_TOO_DEEP: Final = "Shown as LaTeX: the formula is nested too deeply to draw."
FORMULA_TOO_SLOW: Final = "Shown as LaTeX: the formula takes too long to draw."
FORMULA_DEFINES: Final = "Shown as LaTeX: a formula that defines commands is not drawn."
FORMULA_INVALID: Final = "Shown as LaTeX: a part of the formula is wrong or not supported."


def formula_unsupported(name: str) -> str:
    return f"Shown as LaTeX: “{name}” is not supported."


def formula_character(character: str) -> str:
    return f"Shown as LaTeX: the font of formulas has no “{character}”."


def show_all_lines(count: int) -> str:
    return f"Show all {count:,} lines"


def show_about(count: int) -> str:
    return f"Show all, about {count:,} lines"


def code_lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"


def code_spoken(language: str, num_lines: int) -> str:
    return f"{f'{language} code' if language else 'Code'}, {code_lines(num_lines)}"


def code_file(suffix: str) -> str:
    return f"code{suffix}"


def thinking_for(time: str) -> str:
    return f"{THINKING} {time}"


def thought_for(time: str) -> str:
    return f"Thought for {time}"


def reached_limit(limit: str) -> str:
    return f"Reached the limit of {limit}"


def first_word(time: str) -> str:
    return f"first word {time}"


def last_measured(num_last: str, tokens: str) -> str:
    """Return the number of tokens behind a continued answer's figures. tokens: of all parts."""
    return f"{tokens}, speed measured on the last {num_last}"


def answer_finished(num_tokens: int | None) -> str:
    if num_tokens is None:
        return "Answer finished"
    return f"Answer finished, {units.tokens(num_tokens)}"


def message_spoken(*, number: int, count: int) -> str:
    return f"message {number} of {count}"


def version_spoken(*, number: int, count: int) -> str:
    return f"{number} of {count} versions"
