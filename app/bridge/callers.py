"""Other Rejoinders that hand over to this one (`app.hand_over`), as a Qt signal. Main thread; nothing blocks."""

from __future__ import annotations

import logging
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal

from app.hand_over import END, WILL_DO, read_request

log = logging.getLogger(__name__)

PIECE_BYTES = 1 << 16
MAX_BYTES = 1 << 20  # a request is a list of files


class Callers(QObject):
    """Answers them as long as it is there. The listening socket stays its owner's."""

    called = Signal(object)  # tuple[Path, ...]: come to the front, and open these

    def __init__(self, listener: socket.socket, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._listener = listener
        self._notifier = QSocketNotifier(listener.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_called)

    def close(self) -> None:
        self._notifier.setEnabled(False)
        for caller in self.findChildren(_Caller):
            caller.close()

    def _on_called(self) -> None:
        try:
            connection, _address = self._listener.accept()
        except OSError:
            return  # gone already
        caller = _Caller(connection, self)
        caller.asked.connect(self.called)


class _Caller(QObject):
    """One that has connected: its request is read to the end, answered, and it is gone."""

    asked = Signal(object)  # tuple[Path, ...]

    def __init__(self, connection: socket.socket, parent: QObject) -> None:
        super().__init__(parent)
        connection.setblocking(False)
        self._connection = connection
        self._request = b""
        self._notifier = QSocketNotifier(connection.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_readable)

    def close(self) -> None:
        self._notifier.setEnabled(False)
        self._connection.close()
        self.deleteLater()

    def _on_readable(self) -> None:
        try:
            piece = self._connection.recv(PIECE_BYTES)
            self._request += piece
            if self._request.endswith(END):
                files = read_request(self._request)
                self._connection.send(WILL_DO)
                self.asked.emit(files)
                self.close()
            elif not piece or len(self._request) > MAX_BYTES:
                self.close()
        except OSError as error:
            log.warning("a caller was gone before it was answered: %s", error)
            self.close()
        except ValueError as error:
            log.warning("a caller was not understood: %s", error)
            self.close()
