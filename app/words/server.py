"""Sentences of the local server: errors that programs get, and lines that `serve` prints."""

from __future__ import annotations

from app.words import units

WRONG_KEY = (
    "The API key is wrong or missing. Rejoinder shows it in Settings > Server, and `rejoinder"
    " serve` prints it when it starts."
)
WRONG_HOST = (
    "The Host header names another server. Use the address in Settings > Server, or the one that"
    " `rejoinder serve` prints."
)
NO_JSON = "The body is no JSON object."
TOO_DEEP = "The body is nested too deeply."
NO_MESSAGES = "There is no message to answer."
NO_ROUTE = "This server has no such address."
BUSY = "The server already answers as many requests as it can hold. Try again later."
LARGE_BODIES = "The server already reads as many large requests as it can hold. Try again later."
CANNOT_SEE = "The server can’t read images, only text."
CANNOT_HEAR = "The server can’t read audio or files, only text."
CANNOT_USE_TOOLS = "The chat template of the loaded model ignores tools."
NO_TOOLS_TO_CALL = "A tool must be called, but there are no tools."
STOPPED = (
    "The answer was stopped, for example because another model is loaded. Send the request again."
)
SERVER_STOPPED = "The server was stopped in Rejoinder. Send the request again once it runs."
STOPPED_BY_USER = "The answer was stopped by hand in Rejoinder, in Settings > Server."
A_TEXT = "a text"
A_FLAG = "true or false"
A_LIST = "a list"
TEXT_OR_LIST = "a text or a list"
AN_OBJECT = "an object"
SLOW_BODY = "The body did not come in time."
UNKNOWN_CLIENT = "a program"
PROMPT_TOO_LONG = "Prompt is too long"
NO_MODEL = "No model is loaded. Load one in Rejoinder."
BROKEN = "The server failed. Its log has the reason."
NO_ECHO = "The server can’t repeat the prompt. Leave out echo."
NO_SUFFIX = "The server can’t fill a gap in a text. Leave out suffix."
SERVE_BESIDE_WINDOW = (
    "Switch the server on there, in Settings > Server, or use another folder: --data-dir."
)
NOT_STARTED = "The server can’t start."
CHOOSE_PORT = "Choose another port, or end the program that uses it."

REQUESTS_METRIC = "Requests for an answer, by outcome."
OPEN_METRIC = "Answers that are written or wait."
PROMPT_METRIC = (
    "Tokens of prompts: restored from the cache, read again, or read for the first time."
)
WRITTEN_METRIC = "Tokens that the model wrote."
OLLAMA_ROUTES = (
    "Of Ollama’s addresses, this server has /api/chat, /api/generate, /api/tags, /api/show, /api/ps"
    " and /api/version. Models are loaded and downloaded in Rejoinder."
)


def wrong_origin(origin: str) -> str:
    return (
        f"Pages of {origin} may not use this server. Allow them in Settings > Server, or with"
        f" --allow-origin {origin}"
    )


def schema_too_long(most: int) -> str:
    return f"The schema has more than {most:,} characters. Shorten it."


def too_large(limit: int) -> str:
    return f"The body is larger than {limit // 1_000_000} MB."


def too_many_brackets(most: int) -> str:
    return f"The body has more than {most:,} brackets."


def wrong_field(name: str, wanted: str) -> str:
    return f"The value of {name} must be {wanted}."


def a_number(least: str, most: str) -> str:
    return f"a number from {least} to {most}"


def a_whole_number(least: int, most: int) -> str:
    return f"a whole number from {least} to {most}"


def nothing_stored(name: str) -> str:
    return f"The server stores nothing, so {name} is not supported. Send the whole chat in input."


def few_texts(most: int) -> str:
    return f"a text or at most {most} texts"


def unknown_value(name: str, value: str) -> str:
    return f"The value {value[:60]!r} of {name} is not supported."


def unsupported_field(name: str) -> str:
    return f"The value of {name} is not supported."


def other_model(name: str, loaded: str) -> str:
    return f"There is no model {name[:60]!r}. {loaded} is loaded."


def not_loaded_now(name: str, answering: str) -> str:
    return (
        f"{answering} answers now. {name} can be loaded once no answer is written or waits, in"
        " Rejoinder or for another program. Try again later."
    )


def wrong_method(methods: str) -> str:
    return f"This address takes only {methods}."


def failed_call(result: str) -> str:
    """Return the result of a failed tool call, for the model."""
    return f"Error: {result}"


def context_exceeded(num_chars: int, context_len: int) -> str:
    return (
        f"The messages have {num_chars:,} characters, far more than the {context_len:,} tokens that"
        " the model can read. Nothing was cut off. Shorten them."
    )


def too_many_choices(most: int) -> str:
    return f"At most {most} answers can be asked for at once."


def ready(url: str, model: str) -> str:
    return f"{model} answers at {url}"


def key_is(key: str) -> str:
    return f"API key: {key}"


def cannot_listen(host: str, port: int, reason: str) -> str:
    return f"It can’t listen on {host}, port {port}: {reason}."


def wrong_port(highest: int) -> str:
    return f"a port is a number from 0 to {highest}"


def open_to_network(host: str, *, needs_key: bool) -> str:
    computers = "every computer in your network"
    who = f"{computers} that has the key" if needs_key else f"{computers}, without a key,"
    return f"With --host {host}, {who} can use the model. What is sent is not encrypted."


def answered(client: str, restored: int, read: int, seconds: float, num_output: int) -> str:
    parts = [f"restored {restored:,}", f"read {units.tokens(read)}"]
    return f"{client}: {', '.join(parts)}, first word after {seconds:.1f} s, {num_output:,} written"


def failed(client: str, reason: str) -> str:
    return f"{client}: {reason}"


def changed(number: int, role: str, old: str, new: str) -> str:
    return f"  message {number} ({role}) changed:\n  - {old}\n  + {new}"
