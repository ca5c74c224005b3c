"""HEIC and AVIF pictures as JPEG, by sips, a program that is a part of macOS.

The format has no free decoder that the app could contain. The program runs as a process of its own,
without environment, in an empty folder. It first tells the size, so that a file that claims a huge
picture is not decoded.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from app.conversation.attachments import MAX_PICTURE_BYTES, MAX_PIXELS
from app.extraction.refusal import Refused, RefusedFileError

SIPS: Final = Path("/usr/bin/sips")
_WAIT_S: Final = 20.0  # a photo of 48 million pixels takes about 2 s
_SIDES: Final = re.compile(r"^ *pixel(?:Width|Height): (\d{1,6})$", re.MULTILINE)


class HeifConverter:
    """Converts one picture at a time. Any thread may call `stop`."""

    def __init__(self, program: Path = SIPS, *, wait_s: float = _WAIT_S) -> None:
        self._program = program
        self._wait_s = wait_s
        self._process: subprocess.Popen[str] | None = None
        self._is_stopped = False

    def jpeg(self, content: bytes) -> bytes:
        """Return the content of a HEIC or AVIF file as JPEG, with the metadata of the file.

        Raises:
            RefusedFileError: it cannot be converted, here or at all.
        """
        if not self._program.is_file():
            raise RefusedFileError(Refused.HEIF)
        with tempfile.TemporaryDirectory(prefix="rejoinder-") as folder:
            photo, copy = Path(folder, "photo.heic"), Path(folder, "photo.jpg")
            photo.write_bytes(content)
            told = self._run(folder, "-g", "pixelWidth", "-g", "pixelHeight", photo.name)
            sides = [int(side) for side in _SIDES.findall(told)]
            if len(sides) != 2:
                raise RefusedFileError(Refused.HEIF)
            if sides[0] * sides[1] > MAX_PIXELS:
                raise RefusedFileError(Refused.PICTURE_TOO_LARGE)
            form = ("-s", "format", "jpeg", "-s", "formatOptions", "best")
            self._run(folder, *form, photo.name, "--out", copy.name)
            # The exit status is 0 for some errors too.
            if not copy.is_file():
                raise RefusedFileError(Refused.HEIF)
            if copy.stat().st_size > MAX_PICTURE_BYTES:
                raise RefusedFileError(Refused.PICTURE_TOO_LARGE)
            return copy.read_bytes()

    def stop(self) -> None:
        """End the program now and from now on. A call in another thread raises RefusedFileError."""
        self._is_stopped = True
        process = self._process
        if process is not None:
            process.kill()

    def _run(self, folder: str, *arguments: str) -> str:
        """Return what the program prints."""
        with subprocess.Popen(  # noqa: S603 — a program of the system
            [str(self._program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={},
            text=True,
            process_group=0,
        ) as self._process:
            if self._is_stopped:
                self._process.kill()
            try:
                told, _ = self._process.communicate(timeout=self._wait_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                raise RefusedFileError(Refused.PICTURE_TOO_COMPLEX) from None
        if self._is_stopped:
            raise RefusedFileError(Refused.STOPPED)
        return told
