from __future__ import annotations

import subprocess
import sys

import pytest

from app.__main__ import first_word, main


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("", None),
        ("--data-dir chat", None),
        ("chat --temperature 0 hello", "chat"),
        ("--data-dir /tmp/x bench script", "bench"),
        ("--model /m --data-dir /d models", "models"),
        ("--data-dir=/tmp/x chat", "chat"),
        ("--help", None),
    ],
)
def test_first_word_skips_options_and_their_values(line: str, word: str | None) -> None:
    assert first_word(line.split()) == word


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "chat | serve | models | import | export | search | bench" in " ".join(
        capsys.readouterr().out.split()
    )


def test_start_without_display_prints_reason_and_returns_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert main([]) == 1
    assert "there is no display" in capsys.readouterr().err


def test_process_without_a_standard_output_ends_with_its_status() -> None:
    program = """
import sys
import app.launch
from app.__main__ import main
app.launch.launch = lambda *_: 3
sys.stdout = None  # as after a start with a closed descriptor
main([])
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={"QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": ":".join(sys.path)},
        check=False,
        capture_output=True,
    )
    assert (ended.returncode, ended.stderr) == (3, b"")
