"""The model whose files are read while the window is created."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.main import read_early
from app.options import Options
from app.settings import Settings
from engine.early_reading import EarlyReading
from engine.hosts.hostfile import Host, Hosts

LAST = Settings(model_path="/models/last")
HOSTS = Hosts(hosts=(Host(name="this", ips=("127.0.0.1",), is_local=True),))


@pytest.mark.parametrize(
    ("options", "settings", "read"),
    [
        (Options(), Settings(), []),
        (Options(), LAST, ["/models/last"]),
        (Options(model=Path("/models/named")), LAST, ["/models/named"]),
        (Options(hosts=HOSTS), LAST, []),
        (Options(), Settings(model_path="/models/last", several_macs=True), []),
    ],
)
def test_model_that_this_process_will_load_is_read_early(
    monkeypatch: pytest.MonkeyPatch, options: Options, settings: Settings, read: list[str]
) -> None:
    started: list[str] = []

    def start(_: EarlyReading, folder: Path) -> None:
        started.append(str(folder))

    monkeypatch.setattr(EarlyReading, "start", start)

    read_early(options, settings)

    assert started == read
