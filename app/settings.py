"""The user's settings: one frozen value, stored in a small JSON file.

save_settings replaces the file atomically and waits for the disk, so call it on a worker thread.
The sampling options of a single conversation are not settings; they are stored with the
conversation.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from app.paths import free_name
from app.words import problems as words
from engine.errors import DiskError
from engine.problem import Problem
from engine.types import ConversationId
from engine.whole_file import part_of, write_whole

ZOOM_MIN = 80
ZOOM_MAX = 200
# Ending of the temporary files of older versions, as tempfile.mkstemp made it.
_RANDOM = "[a-z0-9_]" * 8
MEMORY_GB = (0, 2, 4, 8, 16)  # choices of memory_gb; 0: chosen from the machine's memory
SERVER_PORT = 7710  # where the local server listens, unless another port is chosen
_HUGE = 1e12  # no number in the settings reaches it
KV_BITS = (0, 8, 4)  # choices of ModelDefaults.kv_bits

log = logging.getLogger(__name__)


class Appearance(StrEnum):
    """The palette of the window; SYSTEM follows the system's light or dark mode."""

    LIGHT = "light"
    DARK = "dark"
    SYSTEM = "system"


class ChatOrder(StrEnum):
    """The order of the conversations in each section of the sidebar."""

    RECENT = "recent"  # the newest activity first
    CREATED = "created"  # the newest conversation first
    TITLE = "title"


class PictureSize(StrEnum):
    """The size in which a model gets a picture. The values are stored."""

    SMALL = "small"
    MEDIUM = "medium"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDefaults:
    """The options of one model: how it is loaded, and how new chats with it begin."""

    thinking: bool | None = None  # for new chats; None: the model's own default
    context_len: int = 0  # highest number of tokens of a chat; 0: the model's own limit
    kv_bits: int = 0  # bits per attention K/V value, 4 or 8; 0: not quantised


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings that are kept between starts.

    The name of a field is its key in the JSON file. A field has one of the types that `_read` can
    check: bool, int, str, a StrEnum, tuple of str, or str | None with None as its default. Mappings
    have a reader of their own in `_READERS`.
    """

    appearance: Appearance = Appearance.SYSTEM
    more_contrast: bool = False  # True: high contrast even if the system's own setting is off
    # Path of the model that was chosen last, or of the first one that answered.
    model_path: str | None = None
    model_name: str = ""  # name of that model
    # Key: path of a model. Models without an entry have the default values.
    model_defaults: Mapping[str, ModelDefaults] = field(default_factory=dict[str, ModelDefaults])
    # folders that the user has added; they are searched for models
    model_folders: tuple[str, ...] = ()
    chat_order: ChatOrder = ChatOrder.RECENT  # order of the conversations in the sidebar
    closed_folders: tuple[str, ...] = ()  # ids of the folders whose conversations are hidden
    window_geometry: str = ""  # size and position, as encoded by window_frame.frame_text
    sidebar_visible: bool = True
    sidebar_width: int = 0  # pixels; 0: the default width
    inspector_visible: bool = False
    # conversation that was on show when the app last ended
    selected_conversation: ConversationId | None = None
    reopen_last: bool = True  # True: a start shows selected_conversation; False: a new chat
    confirm_quit: bool = False  # True: the app always asks before it quits
    read_message: str = ""  # key of the message at the top of the view when the app last ended
    read_offset: int = 0  # pixels from the top of read_message to the top of the view
    text_zoom: int = 100  # size of text, in per cent
    mirror: str = ""  # address that is asked instead of huggingface.co; "" for none
    unload_after_min: int = 0  # idle minutes after which the model is unloaded; 0: never
    keep_on_disk: bool = True  # True: the engine keeps the state of chats on disk
    disk_gb: int = 0  # highest size of this state in GB; 0: chosen from the free space
    memory_gb: int = 0  # one of MEMORY_GB: highest size of the state of chats in memory
    server_on: bool = False  # True: other programs can chat with the model
    server_port: int = SERVER_PORT
    server_needs_key: bool = True
    server_chooses_models: bool = False  # True: requests that name another model load it
    server_origins: tuple[str, ...] = ()  # origins of web pages that may use the server
    hosts_file: str = ""  # path of the hosts file for a model on several Macs; "" for none
    several_macs: bool = False  # True: the model is divided over the hosts of this file
    new_chat_prompt: str = ""  # system prompt of new chats
    # Options of new chats. Key: a field of Setup. Options without an entry have its default.
    new_chat_options: Mapping[str, float] = field(default_factory=dict[str, float])
    # The shortcuts that the user has changed. Key: id of a command. Value: portable text of the
    # keys.
    shortcuts: Mapping[str, str] = field(default_factory=dict[str, str])
    read_ahead: bool = True  # True: the engine reads prompts ahead while it is idle
    paused_documents: tuple[str, ...] = ()  # ids of folders whose documents are not read ahead
    name_chats: bool = True  # True: the model names a chat after its first answer
    # True: the engine verifies drafts of an answer's next tokens, where this is expected to be
    # faster
    faster_answers: bool = True
    preview_edits: bool = False  # True: the editor of a message shows a preview of the answer
    picture_size: PictureSize = PictureSize.MEDIUM  # of pictures that are attached
    return_noted: bool = False  # True once the first return to a chat was explained
    # True: the Return key sends the message; False: only Ctrl+Return sends it, on a Mac ⌘+Return
    return_sends: bool = True
    # Entries of the settings file that a newer version of the app wrote and this version does not
    # know. They are written back unchanged.
    unknown: Mapping[str, object] = field(default_factory=dict[str, object])


_NAMES = tuple(field.name for field in fields(Settings) if field.name != "unknown")


def zoom_in_range(percent: int) -> int:
    """Return `percent`, limited to the range of zooms that the window offers."""
    return min(max(percent, ZOOM_MIN), ZOOM_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """The settings as read from their file, and the problem to show if the file was damaged."""

    settings: Settings
    problem: Problem | None = None


def load_settings(path: Path) -> LoadedSettings:
    """Read the settings; replace each missing or invalid value by its default.

    A damaged file is renamed, never deleted. The problem in the result names the file.

    Raises:
        DiskError: the file cannot be read or renamed.
    """
    try:
        parsed = cast("object", json.loads(path.read_bytes()))
    except FileNotFoundError:
        return LoadedSettings(settings=Settings())
    except (ValueError, RecursionError):  # the file is not JSON, not UTF-8, or nested too deeply
        return _keep_aside(path)
    except OSError as error:
        raise DiskError(words.cannot_read(path, error.strerror)) from error
    if not isinstance(parsed, dict):
        return _keep_aside(path)
    return LoadedSettings(settings=_from_json(cast("dict[str, object]", parsed)))


def save_settings(path: Path, settings: Settings) -> None:
    """Replace the settings file atomically: a crash leaves either the old or the new settings.

    Raises:
        DiskError: the file cannot be written.
    """
    text = json.dumps(_to_json(settings), indent=2)
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise DiskError(words.cannot_write(path, error.strerror)) from error


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of a process that was killed while it saved the settings.

    Call it only while no other process may save them. Older versions used random names.
    """
    for leftover in (part_of(path), *path.parent.glob(f"{path.name}{_RANDOM}")):
        with contextlib.suppress(OSError):
            leftover.unlink(missing_ok=True)


def _keep_aside(path: Path) -> LoadedSettings:
    kept = free_name(path, "broken")
    try:
        path.replace(kept)
    except OSError as error:
        raise DiskError(words.cannot_move_damaged(path, error.strerror)) from error
    log.warning("settings file %s is damaged; renamed to %s", path, kept.name)
    problem = Problem(
        title=words.SETTINGS,
        cause=words.damaged(path.name),
        advice=words.settings_kept(kept.name),
        details=str(kept),
    )
    return LoadedSettings(settings=Settings(), problem=problem)


def _to_json(settings: Settings) -> dict[str, object]:
    defaults = {path: asdict(one) for path, one in settings.model_defaults.items()}
    values = {name: getattr(settings, name) for name in _NAMES}
    mappings = {"new_chat_options": settings.new_chat_options, "shortcuts": settings.shortcuts}
    plain = {name: dict[str, object](mapping) for name, mapping in mappings.items()}
    return {**settings.unknown, **values, **plain, "model_defaults": defaults}


def _from_json(parsed: dict[str, object]) -> Settings:
    defaults = Settings()
    known = {name: _read(parsed.get(name), getattr(defaults, name)) for name in _NAMES}
    for name, read in _READERS.items():
        known[name] = read(parsed.get(name))
    unknown = {key: value for key, value in parsed.items() if key not in _NAMES}
    settings = Settings(**cast("dict[str, Any]", known), unknown=unknown)
    memory_gb = settings.memory_gb if settings.memory_gb in MEMORY_GB else 0
    return replace(settings, text_zoom=zoom_in_range(settings.text_zoom), memory_gb=memory_gb)


def _read(value: object, default: object) -> object:
    """Return a value of the JSON file if it has the type of the default, else the default."""
    match default:
        case None if isinstance(value, str):
            return value
        case tuple() if isinstance(value, list):
            items = cast("list[object]", value)
            return tuple(item for item in items if isinstance(item, str))
        case StrEnum() if isinstance(value, str) and value in set(type(default)):
            return type(default)(value)
        case _:
            # isinstance() would accept true as a number, because bool is a subclass of int.
            return value if type(value) is type(default) else default


def _read_defaults(value: object) -> ModelDefaults:
    """Return the options of one model; replace each missing or invalid value by its default."""
    entry = _entries(value)
    thinking, context_len = entry.get("thinking"), entry.get("context_len")
    kv_bits = entry.get("kv_bits")
    return ModelDefaults(
        thinking=thinking if isinstance(thinking, bool) else None,
        context_len=max(0, context_len) if type(context_len) is int else 0,
        kv_bits=kv_bits if type(kv_bits) is int and kv_bits in KV_BITS else 0,
    )


def _entries(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _read_model_defaults(value: object) -> dict[str, ModelDefaults]:
    return {path: _read_defaults(entry) for path, entry in _entries(value).items()}


def _read_numbers(value: object) -> dict[str, float]:
    """Return the entries that are finite numbers. A bool is a number of Python."""
    entries = _entries(value).items()
    return {key: one for key, one in entries if isinstance(one, int | float) and abs(one) < _HUGE}


def _read_texts(value: object) -> dict[str, str]:
    return {key: one for key, one in _entries(value).items() if isinstance(one, str)}


_READERS: dict[str, Callable[[object], object]] = {
    "model_defaults": _read_model_defaults,
    "new_chat_options": _read_numbers,
    "shortcuts": _read_texts,
}
