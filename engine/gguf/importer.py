"""Import a GGUF file as a model folder. The folder appears complete or not at all.

The file import.json in the imported folder contains the SHA-256 hash of
the source file and the rounding errors of the conversion.

If two imports into the same folder run at the same time, a lock file makes the second import wait.
The second import then finds and uses the folder of the first. Call on any worker thread.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from engine.gguf.convert import WEIGHTS_NAME, plan_conversion, write_files
from engine.gguf.reader import GgufFile, model_name, part_paths, read_gguf
from engine.new_folder import locked, new_folder, numbered, require_space
from engine.plain_file import open_plain

RECORD_NAME: Final = "import.json"
# Version of the written files. A folder with another version is imported again.
_VERSION: Final = 2
_HASH_BYTES: Final = 1 << 23
_SMALL_FILES_BYTES: Final = 16_000_000  # estimated bytes of all files except the weights


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecord:
    """The content of import.json. `convert.Rounding` explains the two error fields."""

    version: int  # value of _VERSION at the time of the import
    source_name: str  # name of the first file
    source_bytes: int  # of all files
    source_sha256: str  # of the contents of all files, one after the other
    model_name: str
    organization: str
    license: str
    weights_bytes: int
    scale_error: float
    requantised_error: float


def import_once(source: Path, destination: Path, progress: Callable[[float], None]) -> ImportRecord:
    """Import a GGUF file, unless destination already contains an import of this file.

    A file with the same name and size counts as the same file. If an error is raised, destination
    is unchanged.

    Args:
        source: the GGUF file, or any file of a model in several files.
        destination: the model folder to create or replace.
        progress: called with the finished share, 0 to 1.

    Raises:
        GgufError: the source cannot be imported.
        DiskError: the destination cannot be written.
    """
    with locked(destination):
        record = _read_record(destination)
        if record is None or not _is_current(record, source, destination):
            record = _import(read_gguf(source), destination, progress)
    progress(1.0)
    return record


def import_into(models_dir: Path, source: Path, progress: Callable[[float], None]) -> Path:
    """Import a GGUF file into a folder of models_dir that is named after the file.

    If models_dir already contains an import of this file, use it. If another file with the same
    name was imported before, add a number to the new folder's name.

    Args:
        models_dir: the folder that contains all imported models.
        source: the GGUF file, or any file of a model in several files.
        progress: called with the finished share, 0 to 1.

    Returns:
        The folder of the imported model.

    Raises:
        GgufError: the source cannot be imported.
        DiskError: the folder cannot be written.
    """
    number = 1
    while not _may_hold(
        folder := models_dir / numbered(model_name(source), number), source, progress
    ):
        number += 1
    import_once(source, folder, progress)
    return folder


def _may_hold(folder: Path, source: Path, progress: Callable[[float], None]) -> bool:
    """Return True if folder does not exist, or if it contains an import of exactly this file.

    Compare the file's hash, because different files may have the same name and size.
    """
    if not folder.exists():
        return True
    record = _read_record(folder)
    if record is None or not _is_of(record, source):
        return False
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(open_plain(path)) for path in part_paths(source)]
            contents = [
                stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                for file in files
            ]
            meter = _Meter(record.source_bytes, progress)
            return _sha256(contents, meter) == record.source_sha256
    except (OSError, ValueError):
        return False  # The import that follows will report that a file cannot be read.


def _import(gguf: GgufFile, destination: Path, progress: Callable[[float], None]) -> ImportRecord:
    conversion = plan_conversion(gguf)
    meter = _Meter(2 * gguf.num_bytes, progress)
    with new_folder(destination) as folder:
        require_space(folder, conversion.weights_bytes + _SMALL_FILES_BYTES)
        rounding = write_files(conversion, folder, meter.add)
        record = ImportRecord(
            version=_VERSION,
            source_name=gguf.paths[0].name,
            source_bytes=gguf.num_bytes,
            source_sha256=_sha256(gguf.contents, meter),
            model_name=gguf.metadata.text("general.name", ""),
            organization=gguf.metadata.text("general.organization", ""),
            license=gguf.metadata.text("general.license", ""),
            weights_bytes=(folder / WEIGHTS_NAME).stat().st_size,
            scale_error=rounding.scale_error,
            requantised_error=rounding.requantised_error,
        )
        (folder / RECORD_NAME).write_text(
            json.dumps(asdict(record), indent=2) + "\n", encoding="utf-8"
        )
    return record


class _Meter:
    """A counter of processed bytes that reports the finished share to a callback."""

    def __init__(self, total_bytes: int, progress: Callable[[float], None]) -> None:
        self._total_bytes = total_bytes
        self._done_bytes = 0
        self._progress = progress

    def add(self, num_bytes: int) -> None:
        self._done_bytes += num_bytes
        self._progress(min(1.0, self._done_bytes / self._total_bytes))


def _sha256(contents: Iterable[mmap.mmap], meter: _Meter) -> str:
    digest = hashlib.sha256()
    for content in contents:
        with memoryview(content) as whole:
            for start in range(0, len(whole), _HASH_BYTES):
                with whole[start : start + _HASH_BYTES] as part:
                    digest.update(part)
                    meter.add(len(part))
    return digest.hexdigest()


def _read_record(folder: Path) -> ImportRecord | None:
    """Return the import record in a folder, or None if there is no readable record."""
    try:
        content: object = json.loads((folder / RECORD_NAME).read_bytes())
    except (OSError, ValueError):
        return None
    match content:
        case {
            "version": int(version),
            "source_name": str(source_name),
            "source_bytes": int(source_bytes),
            "source_sha256": str(source_sha256),
            "model_name": str(model_name),
            "organization": str(organization),
            "license": str(license_),
            "weights_bytes": int(weights_bytes),
            "scale_error": float(scale_error),
            "requantised_error": float(requantised_error),
        }:
            return ImportRecord(
                version=version,
                source_name=source_name,
                source_bytes=source_bytes,
                source_sha256=source_sha256,
                model_name=model_name,
                organization=organization,
                license=license_,
                weights_bytes=weights_bytes,
                scale_error=scale_error,
                requantised_error=requantised_error,
            )
        case _:
            return None


def _is_current(record: ImportRecord, source: Path, destination: Path) -> bool:
    try:
        weights_bytes = (destination / WEIGHTS_NAME).stat().st_size
    except OSError:
        return False
    return (
        record.version == _VERSION
        and record.weights_bytes == weights_bytes
        and _is_of(record, source)
    )


def _is_of(record: ImportRecord, source: Path) -> bool:
    paths = part_paths(source)
    try:
        source_bytes = sum(path.stat().st_size for path in paths)
    except OSError:
        return False
    return (record.source_name, record.source_bytes) == (paths[0].name, source_bytes)
