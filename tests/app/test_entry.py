from __future__ import annotations

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
    assert "chat | models | import | export | search | bench" in " ".join(
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
