"""Check that the weight files of a model folder are complete, and count the parameters.

Only the sizes and headers of the safetensors files are read, never the weights. A file that is
shorter than its header states is truncated.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from engine.catalog.model_config import as_settings, read_settings
from engine.errors import ModelFolderError
from engine.sizes import size_of

INDEX_NAME: Final = "model.safetensors.index.json"
_MAX_FILES: Final = 1_000  # the largest known model has 163
_PARTIAL: Final = (".incomplete", ".part", ".partial", ".crdownload", ".download", ".aria2")
_SHARD: Final = re.compile(r"(?P<start>.*-)(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors")
# The largest known header has 12 MB, for 91,000 tensors. A parsed header takes 15 times its size.
_MAX_HEADER_BYTES: Final = 40_000_000
_LARGEST_HEADER_BYTES: Final = 100_000_000  # by the definition of the file format
# Bytes of one value, by number format. The sizes of other formats are not checked.
_VALUE_BYTES: Final[Mapping[str, int]] = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2,
    "U16": 2, "I8": 1, "U8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "BOOL": 1,
}  # fmt: skip
_LENGTH_BYTES: Final = 8
# First bytes of a Git LFS pointer, which stands in for a file until `git lfs pull`.
_LFS_POINTER: Final = b"version "
# Beginnings of the names of a vision tower's weights: as published, and as mlx-vlm writes them.
TOWER_NAMES: Final = (
    "model.visual.",
    "visual.",
    "model.vision_tower.",
    "vision_tower.",
    "vision_model.",
    "model.vision_model.",
)
# Name prefixes of tensors that text generation does not use. They do not count as parameters.
_UNUSED: Final = ("vision", "visual", "audio", "multi_modal", "mtp.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The size of a folder's weights. If the weights cannot be loaded, `fault` is the reason."""

    size_bytes: int  # bytes of all weight files that exist
    num_parameters: int
    num_tensors: int = 0
    has_tower: bool = False  # True if there are weights that turn pictures into embeddings
    is_wide: bool = False  # True if most values are numbers of 32 bits
    fault: str = ""  # sentence for the user; "" if all files are complete


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of one safetensors file."""

    num_values: Mapping[str, int]  # number of stored values, by tensor name
    num_wide: int  # number of values of 32 bits
    end: int  # end of the last tensor, in bytes after the header


def inspect_weights(folder: Path, group_size: int, *, needs_all: bool = True) -> Weights:
    """Check that all weight files exist and are as long as their headers state.

    Args:
        folder: the model folder.
        group_size: number of quantised weights that share one scale.
        needs_all: False if weight files may be missing.
    """
    try:
        names = _file_names(folder)
    except ModelFolderError as error:
        return Weights(size_bytes=0, num_parameters=0, fault=error.problem.cause)
    num_values, size_bytes, faults = dict[str, int](), 0, list[str]()
    num_wide = 0
    missing = [name for name in names if not (folder / name).is_file()]
    if missing and needs_all:
        faults.append(
            f"{len(missing)} of {len(names)} weight files are missing, for example {missing[0]}: "
            "the download is not complete."
        )
    for name in names:
        if name not in missing:
            size_bytes += (folder / name).stat().st_size
            try:
                header = _read_header(folder / name)
                num_values |= header.num_values
                num_wide += header.num_wide
            except ModelFolderError as error:
                faults.append(error.problem.cause)
    return Weights(
        size_bytes=size_bytes,
        num_parameters=_count_parameters(num_values, group_size),
        num_tensors=len(num_values),
        has_tower=any(name.startswith(TOWER_NAMES) for name in num_values),
        is_wide=2 * num_wide > sum(num_values.values()),
        fault=faults[0] if faults else "",
    )


def require_whole_file(path: Path) -> None:
    """Raise an error if a safetensors file is broken or shorter than its header states.

    Raises:
        ModelFolderError: the file is broken, truncated, or its header is too large.
        OSError: the file cannot be read.
    """
    _read_header(path)


def has_partial_download(folder: Path) -> bool:
    """Return True if a model folder contains an unfinished download."""
    places = [folder, folder / ".cache" / "huggingface" / "download"]
    if folder.parent.name == "snapshots":
        places.append(folder.parent.parent / "blobs")
    return any(name.endswith(_PARTIAL) for place in places for name in _names(place))


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _file_names(folder: Path) -> list[str]:
    """Return the names of the weight files that the folder should contain."""
    if (folder / INDEX_NAME).exists():
        return _indexed_names(folder / INDEX_NAME)
    names = sorted(path.name for path in folder.glob("model*.safetensors"))
    if names:
        return sorted({*names, *_numbered_names(names)})
    if has_partial_download(folder):
        raise ModelFolderError("The download of its weights is not complete.")
    raise ModelFolderError("It has no weights: there is no file named model*.safetensors.")


def _indexed_names(index: Path) -> list[str]:
    names = as_settings(read_settings(index).get("weight_map")).values()
    files = [name for name in names if isinstance(name, str) and Path(name).name == name]
    if not files or len(files) != len(names):
        raise ModelFolderError(f"{INDEX_NAME} is broken: it names no weight files.")
    if len(unique := set(files)) > _MAX_FILES:
        raise ModelFolderError(
            f"{INDEX_NAME} names {len(unique):,} weight files, and at most {_MAX_FILES:,} are read."
        )
    return sorted(unique)


def _numbered_names(names: list[str]) -> Iterator[str]:
    """Yield all file names of each numbered series, such as model-00002-of-00004.safetensors.

    One existing file of a series is enough to derive the names of all its files.
    """
    for name in names:
        if shard := _SHARD.fullmatch(name):
            count = int(shard["count"])
            yield from (
                f"{shard['start']}{number:05d}-of-{count:05d}.safetensors"
                for number in range(1, min(count, _MAX_FILES) + 1)
            )


def _read_header(path: Path) -> _Header:
    size_bytes = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(_LENGTH_BYTES)
        if start == _LFS_POINTER:
            raise ModelFolderError(
                f"{path.name} is only a pointer: git lfs pull fetches the file itself."
            )
        header_bytes = int.from_bytes(start, "little")
        if len(start) < _LENGTH_BYTES or not 0 < header_bytes <= _LARGEST_HEADER_BYTES:
            raise ModelFolderError(f"{path.name} is not a safetensors file.")
        if _LENGTH_BYTES + header_bytes > size_bytes:
            raise _truncated(path, size_bytes, _LENGTH_BYTES + header_bytes)
        if header_bytes > _MAX_HEADER_BYTES:
            raise ModelFolderError(
                f"{path.name} has a header of {size_of(header_bytes)},"
                f" and at most {size_of(_MAX_HEADER_BYTES)} are read."
            )
        header = _parse_header(file.read(header_bytes), path.name)
    if (end := _LENGTH_BYTES + header_bytes + header.end) > size_bytes:
        raise _truncated(path, size_bytes, end)
    return header


def _parse_header(text: bytes, file_name: str) -> _Header:
    num_values: dict[str, int] = {}
    end = num_wide = 0
    # Do not check the types in the entries: a large model has thousands, so checking takes time. A
    # malformed entry raises one of the errors below.
    try:
        entries = cast("dict[str, dict[str, Any]]", json.loads(text))
        entries.pop("__metadata__", None)
        for name, entry in entries.items():
            shape, (first, last) = entry["shape"], entry["data_offsets"]
            num_values[name] = number = math.prod(shape)
            value_bytes = _VALUE_BYTES.get(entry["dtype"])
            num_wide += number if entry["dtype"] == "F32" else 0
            if min((first, *shape)) < 0 or (value_bytes and number * value_bytes != last - first):
                raise ModelFolderError(f"{file_name} is broken: the size of {name} is wrong.")
            end = max(end, last)
    except (ValueError, RecursionError, TypeError, LookupError, AttributeError) as error:
        raise ModelFolderError(f"{file_name} is not a safetensors file.") from error
    return _Header(num_values, num_wide, end)


def _count_parameters(num_values: Mapping[str, int], group_size: int) -> int:
    """Return the number of parameters, counted over the tensors of all files.

    All files are needed together, because a weight and its scales may be in different files.
    """
    total = 0
    for name, stored in num_values.items():
        stem, _, last = name.rpartition(".")
        if last == "biases" or name.removeprefix("model.").startswith(_UNUSED):
            continue
        if last == "scales":
            total += stored * group_size
        # Do not count the tensor of a quantised weight, because each of its numbers packs several
        # parameters. These parameters are counted from the tensor of scales.
        elif last != "weight" or f"{stem}.scales" not in num_values:
            total += stored
    return total


def _truncated(path: Path, size_bytes: int, wanted_bytes: int) -> ModelFolderError:
    return ModelFolderError(
        f"{path.name} is truncated: {size_of(size_bytes)} of {size_of(wanted_bytes)} are there."
    )
