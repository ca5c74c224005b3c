from __future__ import annotations

import os
import signal

from pytestqt.qtbot import QtBot

from app.bridge.quit_signals import QuitSignals


def test_sigterm_wakes_the_event_loop(qtbot: QtBot) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    signals = QuitSignals()
    with qtbot.waitSignal(signals.received):
        os.kill(os.getpid(), signal.SIGTERM)
    signals.close()
    assert signal.set_wakeup_fd(-1) == -1
    signal.signal(signal.SIGTERM, before[0])
    signal.signal(signal.SIGINT, before[1])
