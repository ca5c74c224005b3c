"""Read the files of pictures in a thread beside the engine thread. No mlx."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import TypeVar

import numpy as np
from PIL import Image

from engine.errors import PictureError
from engine.types import Picture, picture_digest

T = TypeVar("T")

_REMOVE = "Send the message again without this picture, or attach it again."


def beside(work: Callable[[], T]) -> Future[T]:
    """Start a piece of work of a second at most in a new thread. Return its future."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (the caller gets it)
            future.set_exception(error)

    Thread(target=run, name="picture").start()
    return future


def read_pixels(path: Path, picture: Picture) -> np.ndarray:
    """Return the pixels of a picture, of shape (3, height, width).

    Raises:
        PictureError: the file is missing, or has another picture.
    """
    try:
        with Image.open(path, formats=["PNG"]) as image:
            size = image.size if image.mode == "RGB" else (0, 0)
            pixels = image.tobytes() if size == (picture.width, picture.height) else b""
    except FileNotFoundError as error:
        raise PictureError("The file of a picture is missing.", advice=_REMOVE) from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise PictureError("The file of a picture is damaged.", advice=_REMOVE) from error
    if picture_digest(picture.width, picture.height, pixels) != picture.digest:
        raise PictureError("The file of a picture is damaged.", advice=_REMOVE)
    rows = np.frombuffer(pixels, np.uint8).reshape(picture.height, picture.width, 3)
    return rows.transpose(2, 0, 1)
