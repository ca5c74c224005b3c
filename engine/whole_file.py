"""Replace a small file atomically."""

from __future__ import annotations

import os
from pathlib import Path


def part_of(path: Path) -> Path:
    """Return the name under which `write_whole` writes a file before it replaces `path`."""
    return path.with_name(f"{path.name}.part")


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by one that only its owner can read. A crash leaves the old or the new one.

    A process that is killed leaves its part behind. The name of the part is fixed, so the next
    write replaces it. At most one thread of one process may write a file at a time.

    Raises:
        OSError: the file cannot be written. The old file is unchanged.
    """
    part = part_of(path)
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
