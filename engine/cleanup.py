"""One way to take something back when what follows it fails."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def undo_on_error(undo: Callable[[], object]) -> Generator[None]:
    """Call undo if the block raises anything, KeyboardInterrupt included, and let the error pass."""
    try:
        yield
    except BaseException:
        undo()
        raise
