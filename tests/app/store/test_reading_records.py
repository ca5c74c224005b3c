"""The files of measured times of reading and of the time saved: what is read from damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.store import reading_records
from app.store.reading_records import (
    MAX_MEASURED,
    MAX_MODELS,
    DaySaved,
    ModelReadings,
    ReadingRates,
    SavedRecord,
    load_rates,
    load_saved,
    save_record,
)
from engine.reading_pace import MeasuredReading

RATES = ReadingRates(
    models=(ModelReadings(model="/models/tiny", measured=(MeasuredReading(0, 400, 0.5),)),)
)
SAVED = SavedRecord(total_ms=5000.5, days=(DaySaved(day="2026-11-27", saved_ms=100.0),))


def test_records_are_read_as_they_were_saved(tmp_path: Path) -> None:
    save_record(tmp_path / "rates", RATES)
    save_record(tmp_path / "saved", SAVED)
    assert load_rates(tmp_path / "rates") == RATES
    assert load_saved(tmp_path / "saved") == SAVED


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"null",
        b'{"models": [{"model": 7}], "total_ms": "much"}',
        b'{"total_ms": NaN, "models": 3}',
        b'{"total_ms": -5, "models": {}}',
        b'{"total_ms": 1e300, "models": [[]]}',
        b"[" * 100_000,
    ],
)
def test_damaged_records_are_empty(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "record"
    file.write_bytes(content)
    assert load_rates(file) == ReadingRates()
    assert load_saved(file) == SavedRecord()


def test_records_that_are_not_there_or_are_folders_are_empty(tmp_path: Path) -> None:
    assert load_rates(tmp_path / "nothing") == ReadingRates()
    assert load_saved(tmp_path) == SavedRecord()


def test_values_out_of_range_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "rates"
    measured = [(0, 400, 0.5), (5, 5, 1.0), (-1, 9, 1.0), (0, 10**12, 1.0)]
    rows = [{"start": start, "end": end, "seconds": time} for start, end, time in measured]
    rows += [{"start": 0, "end": 9, "seconds": time} for time in (0.0, -1.0, 1e9, float("nan"))]
    file.write_text(json.dumps({"models": [{"model": "/models/tiny", "measured": rows}]}))
    assert load_rates(file) == RATES


def test_records_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rates"
    many = tuple(MeasuredReading(0, number, 1.0) for number in range(1, 200))
    models = tuple(ModelReadings(model=str(number), measured=many) for number in range(50))
    save_record(file, ReadingRates(models=models))
    read = load_rates(file)
    assert [one.model for one in read.models] == [str(at) for at in range(50 - MAX_MODELS, 50)]
    assert read.models[0].measured == many[-MAX_MEASURED:]
    monkeypatch.setattr(reading_records, "_MAX_BYTES", 1000)
    assert load_rates(file) == ReadingRates()


def test_record_with_a_number_too_large_for_a_float_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "record"
    file.write_text(f'{{"total_ms": 1{"0" * 400}}}')
    assert load_saved(file) == SavedRecord()
