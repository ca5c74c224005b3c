"""Write a model folder that appears complete or not at all.

The files are written into a hidden folder beside the destination. At the end, the hidden folder
replaces the destination. Scans skip hidden folders. A process that is killed leaves its hidden
folder behind, which `remove_leftovers` or the next write removes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from engine.errors import DiskError

_SUFFIX: Final = ".writing"


def numbered(name: str, number: int) -> str:
    """Return the name itself for the number 1, else the name with the number behind it."""
    return name if number == 1 else f"{name}-{number}"


@contextmanager
def locked(destination: Path) -> Generator[None]:
    """Lock a destination folder. Wait while another thread or process holds the lock.

    The operating system releases the lock when a process ends, so no lock is left after a crash.

    Raises:
        DiskError: the lock file cannot be written.
    """
    path = _lock_of(destination)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        descriptor = os.open(path, os.O_RDWR)
    except OSError as error:
        raise _disk_error(destination, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def new_folder(destination: Path) -> Generator[Path]:
    """Create an empty folder. If the with block succeeds, the folder replaces destination.

    Yields:
        The empty folder, in the same parent folder as destination.

    Raises:
        DiskError: a file cannot be written.
    """
    staging = _staging_of(destination)
    try:
        # A killed process leaves its staging folder behind. Remove this folder.
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(mode=0o700)
        yield staging
        _settle(staging)
        _replace(staging, destination)
    except OSError as error:
        raise _disk_error(destination, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def remove_leftovers(models_dir: Path) -> None:
    """Remove the hidden folders of processes that were killed. Skip those of running processes."""
    for staging in models_dir.glob(f".*{_SUFFIX}"):
        destination = models_dir / staging.name.removeprefix(".").removesuffix(_SUFFIX)
        try:
            descriptor = os.open(_lock_of(destination), os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(staging, ignore_errors=True)
        except OSError:
            continue  # a running process writes it
        finally:
            os.close(descriptor)


def require_space(folder: Path, needed_bytes: int) -> None:
    """Check that a number of bytes fit onto the disk of a folder.

    Raises:
        DiskError: they do not.
    """
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise DiskError(
            f"{needed_bytes / 1e6:,.0f} MB are needed in {folder.parent}, "
            f"and {free_bytes / 1e6:,.0f} MB are free.",
            advice="Free some space, then try again.",
        )


def _staging_of(destination: Path) -> Path:
    return destination.with_name(f".{destination.name}{_SUFFIX}")


def _lock_of(destination: Path) -> Path:
    return destination.with_name(f".{destination.name}.lock")


def _settle(folder: Path) -> None:
    """Restrict the files of a folder to their owner. Wait until all data is on the disk."""
    for path in folder.iterdir():
        path.chmod(0o600)
        _fsync(path)
    _fsync(folder)


def _replace(staging: Path, destination: Path) -> None:
    replaced = destination.with_name(f".{destination.name}.replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    if destination.exists():
        destination.rename(replaced)
    staging.rename(destination)
    _fsync(destination.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _disk_error(destination: Path, error: OSError) -> DiskError:
    return DiskError(f"{destination} could not be written: {error.strerror}.", details=repr(error))
