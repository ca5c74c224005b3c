from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.bridge.garbage import YOUNG, GarbageSearch


class Cycle:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def search(qtbot: QtBot) -> Iterator[GarbageSearch]:
    search = GarbageSearch()
    yield search
    search.close()


def make_garbage(destroyed_on: list[str]) -> None:
    """Make a garbage cycle, then so many objects that Python's own collector would start."""
    cycle = Cycle()
    weakref.finalize(cycle, lambda: destroyed_on.append(threading.current_thread().name))
    del cycle
    many_objects()


def many_objects() -> list[Cycle]:
    return [Cycle() for _ in range(2 * YOUNG)]


@pytest.mark.slow
def test_garbage_of_another_thread_is_destroyed_on_main_thread(
    search: GarbageSearch, qtbot: QtBot
) -> None:
    destroyed_on: list[str] = []
    thread = threading.Thread(target=make_garbage, args=(destroyed_on,))
    thread.start()
    thread.join()
    assert destroyed_on == []
    # Keep these objects alive, because freed objects do not count for GarbageSearch's limit YOUNG.
    alive = many_objects()
    qtbot.waitUntil(lambda: bool(destroyed_on))
    assert destroyed_on == [threading.main_thread().name]
    assert alive


def test_automatic_collection_stays_off_after_close(qtbot: QtBot) -> None:
    gc.enable()
    GarbageSearch().close()
    assert not gc.isenabled()
