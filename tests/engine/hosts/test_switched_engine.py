"""The engine of the window keeps its settings when another engine takes its place."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue

from engine.config import EngineConfig
from engine.events import Answered, Event
from engine.hosts.switched_engine import SwitchedEngine


def test_next_engine_has_the_settings_of_the_last(tmp_path: Path) -> None:
    events: SimpleQueue[Event] = SimpleQueue()
    engine = SwitchedEngine(EngineConfig(use_openblas=False), events.put)
    engine.set_disk(str(tmp_path / "old"), enabled=True, budget_bytes=None)
    engine.start()
    engine.set_disk(str(tmp_path), enabled=True, budget_bytes=None)
    engine.use_hosts(None)
    (tmp_path / "model").mkdir()

    engine.clear_disk()
    while not isinstance(events.get(timeout=60), Answered):
        pass

    assert not (tmp_path / "model").exists()
    engine.close()
