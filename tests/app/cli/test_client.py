"""Options of the command line that several commands share."""

from __future__ import annotations

from argparse import ArgumentParser

import pytest

from app.cli.client import add_speculation


@pytest.mark.parametrize(("text", "wanted"), [("off", 0), ("auto", None), ("7", 7)])
def test_speculation_is_a_number_of_drafts(text: str, wanted: int | None) -> None:
    parser = ArgumentParser()
    add_speculation(parser, default="off")

    assert parser.parse_args(["--speculation", text]).speculation == wanted


@pytest.mark.parametrize("text", ["8", "-1", "many"])
def test_more_drafts_than_a_pass_verifies_are_refused(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = ArgumentParser()
    add_speculation(parser, default="off")
    with pytest.raises(SystemExit):
        parser.parse_args(["--speculation", text])

    assert "--speculation" in capsys.readouterr().err
