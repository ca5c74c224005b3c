"""Two small files: the measured times of reading of each model, and the time saved.

Both are read at the start of the app. A file that is damaged, too large or not there gives an empty
record, and values out of range are left out.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from app.store.codec import from_json, to_json
from engine.reading_pace import MeasuredReading
from engine.whole_file import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RATES_FILE = "reading-rates.json"
SAVED_FILE = "time-saved.json"
MAX_MODELS = 20  # models whose times are kept
MAX_MEASURED = 64  # measurements of a model that are kept
MAX_DAYS = 8
_MAX_BYTES = 1_000_000
_MAX_TOKENS = 100_000_000
_MAX_S = 24 * 3600.0  # longest measurement
_MAX_MS = 1e13  # largest time saved: 300 years

log = logging.getLogger(__name__)
_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReadings:
    """The measurements of one model, oldest first."""

    model: str  # path of the model, and the number of Macs if several hold it
    measured: tuple[MeasuredReading, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRates:
    """The measurements of the models that were used last. The newest model is the last one."""

    models: tuple[ModelReadings, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySaved:
    """The time saved on one day."""

    day: str  # local date as in 2026-11-27
    saved_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRecord:
    """The time saved in all, and on the days that were counted last."""

    total_ms: float = 0.0
    days: tuple[DaySaved, ...] = ()


def load_rates(path: Path) -> ReadingRates:
    """Read the measurements of all models."""
    read = _load(ReadingRates, path) or ReadingRates()
    models = [
        ModelReadings(model=one.model, measured=tuple(_sane(one.measured))[-MAX_MEASURED:])
        for one in read.models[-MAX_MODELS:]
    ]
    return ReadingRates(models=tuple(models))


def load_saved(path: Path) -> SavedRecord:
    """Read the time saved."""
    read = _load(SavedRecord, path)
    if read is None or not _is_time(read.total_ms):
        return SavedRecord()
    days = tuple(one for one in read.days[-MAX_DAYS:] if _is_time(one.saved_ms))
    return SavedRecord(total_ms=read.total_ms, days=days)


def save_record(path: Path, record: DataclassInstance) -> None:
    """Replace a file atomically.

    Raises:
        OSError: the file cannot be written.
    """
    write_whole(path, to_json(record).encode())


def _load(kind: type[_Record], path: Path) -> _Record | None:
    try:
        with path.open("rb") as file:
            return from_json(kind, file.read(_MAX_BYTES).decode())  # a cut text is not JSON
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        log.warning("ignoring %s: %s", path, error)
        return None


def _sane(measured: Iterable[MeasuredReading]) -> Iterable[MeasuredReading]:
    for one in measured:
        if 0 <= one.start < one.end <= _MAX_TOKENS and 0 < one.seconds <= _MAX_S:
            yield one


def _is_time(time_ms: float) -> bool:
    return math.isfinite(time_ms) and 0 <= time_ms <= _MAX_MS
