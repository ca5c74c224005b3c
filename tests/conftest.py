"""Fixtures for all tests: no display, a fixed locale, and checks for leaks.

A test fails if it leaves a thread, timer, window or pressed mouse button behind.
"""

from __future__ import annotations

import gc
import inspect
import locale
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from hypothesis import Phase, settings
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QTimer, SignalInstance
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from pytestqt.wait_signal import SignalBlocker
from typing_extensions import override

from app.widgets.application import Application
from tests.fakes.ask_store import PATIENCE_S

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["LC_ALL"] = "C.UTF-8"
locale.setlocale(locale.LC_ALL, "C.UTF-8")
QLocale.setDefault(QLocale.c())

# No time limit for a Hypothesis example: its time depends on the load of the machine.
settings.register_profile("untimed", deadline=None)
# Mutation tests need no small example of a failure. To find one takes minutes.
settings.register_profile(
    "unshrunk", deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
settings.load_profile("untimed")

# A wait ends as soon as its condition is true. On a busy machine a process may wait for seconds until it
# gets a processor.
PATIENCE_MS = round(1000 * PATIENCE_S)
# Number of tests. The survivors of a full collection are excluded from later ones. So a full collection,
# also one that a test asks for, takes milliseconds. Without the exclusion it took 0.4 s.
FULL_COLLECTION_EVERY = 50

_num_tests = count(1)
gc.disable()  # imports and collection leave no garbage worth a search


def pytest_collection_finish() -> None:
    """Exclude modules and tests, which live until the end, from the collections after each test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def same_log() -> Iterator[None]:
    """Undo what a test changes in the log of the process, as the start of the app does."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for package in ("app", "engine"):
        logging.getLogger(package).setLevel(logging.NOTSET)
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


class PatientQtBot(QtBot):
    """A QtBot that waits for a minute, and not for five seconds, until a condition is true."""

    @override
    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = PATIENCE_MS) -> None:
        super().waitUntil(callback, timeout=timeout)

    @override
    def waitSignal(
        self,
        signal: SignalInstance,
        *,
        timeout: int = PATIENCE_MS,
        raising: bool | None = None,
        check_params_cb: Callable[..., bool] | None = None,
    ) -> SignalBlocker:
        return super().waitSignal(
            signal, timeout=timeout, raising=raising, check_params_cb=check_params_cb
        )


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    return PatientQtBot(request)


@pytest.fixture(scope="session")
def qapp_cls() -> type[Application]:
    """Return the class that pytest-qt instantiates as the application."""
    return Application


@pytest.fixture(autouse=True)
def main_thread_collects_garbage() -> Iterator[None]:
    """Collect garbage after each test, and not during it, on whatever thread needs memory.

    The app does the same (app/bridge/garbage.py): a collection on another thread destroys Qt objects
    there, and a test hung for good while the store thread collected.
    """
    gc.disable()
    if next(_num_tests) % FULL_COLLECTION_EVERY == 0:  # the fixtures of the last test are finished
        gc.collect()
        gc.freeze()
    yield
    gc.collect(1)


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    """Fail if a thread that the test started is still running after the test."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(timeout=PATIENCE_S)
    still = [thread.name for thread in left if thread.is_alive()]
    assert not still, f"threads left running: {still}"


@pytest.fixture(autouse=True)
def no_leaked_windows() -> Iterator[None]:
    """Fail if a window that the test created still exists after the test."""
    before = _windows()
    yield
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    if _windows() - before:
        gc.collect()
    left = _windows() - before
    assert not left, f"windows left: {sorted(left)}"


@pytest.fixture(autouse=True)
def no_pressed_mouse_button() -> Iterator[None]:
    """Fail if the test pressed a mouse button and did not release it.

    Qt keeps its buttons beyond the window. In the next test each move of the mouse would be a drag.
    """
    yield
    assert not QApplication.mouseButtons(), "a mouse button is still pressed"


@pytest.fixture(autouse=True)
def no_leaked_timers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if a timer that the test started is still active after the test."""
    started: list[tuple[weakref.ref[QTimer], str]] = []
    start = QTimer.start

    def recorded(timer: QTimer, *interval: int) -> None:
        started.append((weakref.ref(timer), _callers(2)))
        start(timer, *interval)

    monkeypatch.setattr(QTimer, "start", recorded)
    yield
    if any(_is_active(timer()) for timer, _where in started):
        gc.collect()
    left = [where for timer, where in started if _is_active(timer())]
    assert not left, f"timers left running, started at:\n{left[0]}"


def _callers(num: int) -> str:
    """Return the places of the innermost calls that led to the caller of this function."""
    # traceback.format_stack reads source lines: it would take 36 µs for each started timer, instead of 3.
    places: list[str] = []
    # No variable may keep the frame of this function: that cycle would keep all callers and their
    # wrappers of Qt objects until the next collection. PySide then takes a new object for a deleted one.
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    while frame is not None and len(places) < num:
        places.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    return "\n".join(places)


def _is_active(timer: QTimer | None) -> bool:
    try:
        return timer is not None and timer.isActive()
    except RuntimeError:  # Qt has already deleted the C++ object of the timer
        return False


def _windows() -> set[str]:
    if not isinstance(QCoreApplication.instance(), QApplication):
        return set()
    return {
        f"{type(widget).__name__} {widget.objectName()} at {id(widget):#x}"
        for widget in QApplication.topLevelWidgets()
    }
