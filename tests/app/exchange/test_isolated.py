"""The import process gives what an import in this process gives, and is ended at its limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.exchange.found import Unreadable
from app.exchange.importing import Import
from app.exchange.isolated import IsolatedImport
from app.store.pictures import PictureFiles
from app.words import exchange as words
from tests.fakes.foreign_exports import EXPORTS, write_export

NO_PICTURES = PictureFiles(Path("/nowhere"))


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("exports")
    paths = [write_export(folder, kind) for kind in EXPORTS]
    damaged = folder / "damaged.json"
    damaged.write_text('[{"title": ', encoding="utf-8")
    return [*paths, damaged, folder / "missing.json"]


def test_isolated_import_finds_what_an_import_finds(exports: list[Path]) -> None:
    work = IsolatedImport(exports, NO_PICTURES, now=5.0)

    assert list(work.found()) == list(Import(exports, now=5.0).found())
    assert work.share == 1.0


@pytest.mark.slow
def test_file_that_takes_too_long_is_reported_and_the_next_one_is_read(
    exports: list[Path], tmp_path: Path
) -> None:
    slow = tmp_path / "slow.json"
    slow.write_text(f"[{'0,' * 4_000_000}0]", encoding="utf-8")

    first, *rest = IsolatedImport([slow, exports[0]], NO_PICTURES, now=5.0, step_s=0.3).found()

    assert first == Unreadable(name="slow.json", reason=words.TOO_COMPLEX)
    assert rest == list(Import(exports[:1], now=5.0).found())


def test_stopped_import_ends(exports: list[Path]) -> None:
    work = IsolatedImport(exports, NO_PICTURES, now=5.0)
    found = work.found()
    next(found)

    work.stop()

    assert len(list(found)) < len(exports)
