"""Conversion of SIGINT, SIGTERM and SIGHUP to a Qt signal, on which the app saves and quits."""

from __future__ import annotations

import signal
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class QuitSignals(QObject):
    """The handler of the signals that end the process; emits `received` on the main thread.

    Python runs signal handlers only between two Python instructions, and an idle event loop
    executes none. The interpreter therefore writes a byte to a socket, which wakes the event loop.
    """

    received = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        self._notifier = QSocketNotifier(self._receiver.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_activated)
        for number in SIGNALS:
            signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)

    def close(self) -> None:
        """Restore the default signal handlers. A quit signal then ends the process at once."""
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        self._notifier.setEnabled(False)
        self._receiver.close()
        self._sender.close()

    def _on_activated(self) -> None:
        self._receiver.recv(1)
        self.received.emit()
