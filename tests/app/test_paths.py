from __future__ import annotations

from pathlib import Path

import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from app.paths import Paths, bundle_resources, free_name, make_paths
from engine.errors import DiskError


def folders_in(paths: Paths) -> tuple[Path, ...]:
    return paths.logs_dir, paths.cache_dir, paths.models_dir


def test_make_paths_creates_private_folders_in_data_folder(tmp_path: Path) -> None:
    paths = make_paths(tmp_path / "deep" / "data")

    assert paths.data_dir == tmp_path / "deep" / "data"
    for folder in (paths.data_dir, *folders_in(paths)):
        assert folder.stat().st_mode & 0o777 == 0o700
    for path in (*folders_in(paths), paths.database, paths.settings):
        assert path.parent == paths.data_dir


def test_make_paths_keeps_permissions_of_existing_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    make_paths(tmp_path)
    make_paths(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("platform", "data", "logs", "caches"),
    [
        (
            MacOS,
            "Library/Application Support/Rejoinder",
            "Library/Logs/Rejoinder",
            "Library/Caches/Rejoinder",
        ),
        (
            Unix,
            ".local/share/Rejoinder",
            ".local/state/Rejoinder/log",
            ".cache/Rejoinder",
        ),
    ],
)
def test_make_paths_without_data_folder_uses_platform_folders(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    platform: type[object],
    data: str,
    logs: str,
    caches: str,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DATA", "STATE", "CACHE"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)
    monkeypatch.setattr("platformdirs.PlatformDirs", platform)

    paths = make_paths()

    assert paths.data_dir == tmp_path / data
    assert paths.logs_dir == tmp_path / logs
    assert paths.cache_dir == tmp_path / caches
    for folder in (paths.data_dir, *folders_in(paths)):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("prefix", "resources"),
    [
        (
            "/Applications/Rejoinder.app/Contents/Resources/python",
            "/Applications/Rejoinder.app/Contents/Resources",
        ),
        ("/home/me/rejoinder/.venv", None),
        ("/opt/Resources/python", None),
        ("/", None),
    ],
)
def test_bundle_resources_are_found_by_python_prefix(prefix: str, resources: str | None) -> None:
    assert bundle_resources(Path(prefix)) == (resources and Path(resources))


@pytest.mark.parametrize("folder", [None, "data"])
def test_make_paths_finds_bundle_with_any_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str | None
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "R.app/Contents/Resources/python"))

    paths = make_paths(tmp_path / folder if folder else None)

    assert paths.bundle == tmp_path / "R.app/Contents/Resources"


def test_make_paths_makes_relative_data_folder_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert make_paths(Path("data")).data_dir == tmp_path / "data"


def test_make_paths_on_existing_file_raises_disk_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    with pytest.raises(DiskError) as refused:
        make_paths(tmp_path / "data")

    assert str(tmp_path / "data") in refused.value.problem.cause


def test_free_name_counts_up_past_existing_files(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    assert free_name(path, "damaged").name == "a.damaged-1.db"
    (tmp_path / "a.damaged-1.db").write_text("")
    assert free_name(path, "damaged").name == "a.damaged-2.db"
