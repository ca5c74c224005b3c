"""A context manager that undoes an earlier step if the code after that step raises."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def undo_on_error(undo: Callable[[], object]) -> Generator[None]:
    """Call `undo` and re-raise if the with block raises any exception, even KeyboardInterrupt."""
    try:
        yield
    except BaseException:
        undo()
        raise
