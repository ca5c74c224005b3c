from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli.main import run
from app.exchange.data_urls import make_data_url
from app.store.lock import InstanceLock
from app.words import exchange as words
from tests.fakes.foreign_exports import open_webui, write_export
from tests.fakes.picture_files import saved, scene

Run = Callable[..., int]


@pytest.fixture
def rejoinder(tmp_path: Path) -> Run:
    """Return a function that runs a command in a data folder, and returns its exit status."""
    data_dir = tmp_path / "data"

    def call(*arguments: str | Path) -> int:
        return run([*map(str, arguments), "--data-dir", str(data_dir)])

    return call


def test_import_then_search_then_export(
    tmp_path: Path, rejoinder: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = write_export(tmp_path, "chatgpt")

    assert rejoinder("import", archive, write_export(tmp_path, "jan")) == 0
    assert capsys.readouterr().out == "2 chats imported.\n"
    assert rejoinder("import", archive) == 0
    assert words.ALREADY_HERE in capsys.readouterr().out
    assert rejoinder("search", "agai", "one, again") == 0
    assert capsys.readouterr().out.count("One, again.") == 2
    assert rejoinder("search", "zebra") == 1
    capsys.readouterr()
    assert rejoinder("export", "--all", tmp_path / "all.md") == 0
    assert (tmp_path / "all.md").read_text().count("# Numbers") == 2
    assert rejoinder("export", "--chat", "numbers", tmp_path / "one.md") == 1
    assert "2 chats are called" in capsys.readouterr().err
    assert rejoinder("export", "--chat", "Letters", tmp_path / "one.md") == 1
    assert "No chat is called" in capsys.readouterr().err


def test_exported_picture_is_imported_into_another_data_folder(
    tmp_path: Path, rejoinder: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    value = open_webui()
    value[0]["chat"]["history"]["messages"]["q2"]["files"] = [  # pyright: ignore[reportIndexIssue]
        {"type": "image", "url": make_data_url(saved(scene(), "PNG"), "png")}
    ]
    foreign, ours = tmp_path / "foreign.json", tmp_path / "ours.json"
    foreign.write_text(json.dumps(value))

    assert rejoinder("import", foreign) == 0
    assert rejoinder("export", "--all", ours) == 0
    assert run(["import", str(ours), "--data-dir", str(tmp_path / "other")]) == 0

    names = [
        sorted(path.name for path in (tmp_path / folder / "pictures").iterdir())
        for folder in ("data", "other")
    ]
    assert names[0] == names[1]
    assert len(names[0]) == 3
    capsys.readouterr()


def test_import_lists_what_cannot_be_read(
    tmp_path: Path, rejoinder: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad\x1b.json").write_text("[")

    assert rejoinder("import", tmp_path / "bad\x1b.json") == 1
    out, err = capsys.readouterr()
    assert out == "0 chats imported.\n"
    assert words.DAMAGED in err
    assert "\x1b" not in err


@pytest.mark.parametrize(
    "command", [("import", "x.json"), ("export", "--all", "x.json"), ("search", "word")]
)
def test_commands_while_a_window_is_open_say_so(
    tmp_path: Path,
    rejoinder: Run,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
) -> None:
    (tmp_path / "data").mkdir()
    with InstanceLock(tmp_path / "data"):
        assert rejoinder(*command) == 1

    assert "Rejoinder is already running" in capsys.readouterr().err
