"""The server for files that a second start of the app hands over to the running app.

The client is app/hand_over.py. Main thread: the sockets do not block, because Qt's event loop
reports when one can be read.
"""

from __future__ import annotations

import logging
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal

from app.hand_over import END, WILL_DO, read_request

log = logging.getLogger(__name__)

PIECE_BYTES = 1 << 16
# Maximum length in bytes of a request, which is a list of files. The connection of a longer request
# is closed.
MAX_BYTES = 1 << 20


class Callers(QObject):
    """The server's open connections. It accepts connections and answers requests until close().

    close() also closes the listening socket, so that the request of a later process fails at once.
    """

    # argument: tuple[Path, ...], the files to open. The receiver also brings the window to the
    # front.
    called = Signal(object)

    def __init__(self, listener: socket.socket, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._listener = listener
        self._notifier = QSocketNotifier(listener.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_called)

    def close(self) -> None:
        self._notifier.setEnabled(False)
        for caller in self.findChildren(_Caller):
            caller.close()
        self._listener.close()

    def _on_called(self) -> None:
        try:
            connection, _address = self._listener.accept()
        except OSError:
            return  # the other process has already closed the connection
        caller = _Caller(connection, self)
        caller.asked.connect(self.called)


class _Caller(QObject):
    """The connection to one other process: reads a request, answers it and closes."""

    asked = Signal(object)  # argument: tuple[Path, ...], the files in the request

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
            log.warning("a hand-over connection failed: %s", error)
            self.close()
        except ValueError as error:
            log.warning("a hand-over request is invalid: %s", error)
            self.close()
