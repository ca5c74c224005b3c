"""The command `serve`: its arguments and what it prints."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

import pytest

from app.cli import serve
from app.server.access import Access, ServerAddress
from app.server.errors import invalid
from app.server.report import Report
from tests.fakes.fake_engine import FACTS


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_impossible_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    serve.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--port", port])

    assert "--port" in capsys.readouterr().err


@pytest.mark.parametrize(("key", "says"), [("k", "that has the key"), ("", "without a key")])
def test_open_server_says_who_can_use_it(
    key: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address = ServerAddress(host="192.168.1.5", access=Access(key=key))
    serve.announce("http://192.168.1.5:1", FACTS, address)

    assert says in capsys.readouterr().out


def test_report_for_a_closed_pipe_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(sys.stdout, "write", fail)

    serve.Terminal(is_verbose=True).report(Report(client="curl", ended=invalid("No.")))
