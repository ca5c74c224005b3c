from __future__ import annotations

from pathlib import Path

import pytest
from platformdirs import user_data_path

from app.paths import free_name, make_paths
from engine.errors import DiskError


def test_everything_lies_in_the_data_folder_and_is_private(tmp_path: Path) -> None:
    paths = make_paths(tmp_path / "deep" / "data")

    assert paths.data_dir == tmp_path / "deep" / "data"
    for folder in (paths.data_dir, paths.logs_dir, paths.models_dir):
        assert folder.stat().st_mode & 0o777 == 0o700
    for path in (paths.logs_dir, paths.models_dir, paths.database, paths.settings):
        assert path.parent == paths.data_dir


def test_a_folder_that_exists_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    make_paths(tmp_path)
    make_paths(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_the_default_is_the_platforms_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    paths = make_paths()

    assert paths.data_dir == user_data_path("Rejoinder", appauthor=False)
    assert paths.data_dir.is_relative_to(tmp_path)


def test_relative_folders_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert make_paths(Path("data")).data_dir == tmp_path / "data"


def test_a_file_in_the_way_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    with pytest.raises(DiskError) as refused:
        make_paths(tmp_path / "data")

    assert str(tmp_path / "data") in refused.value.problem.cause


def test_free_names_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    assert free_name(path, "damaged").name == "a.damaged-1.db"
    (tmp_path / "a.damaged-1.db").write_text("")
    assert free_name(path, "damaged").name == "a.damaged-2.db"
