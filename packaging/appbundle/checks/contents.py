"""Checks of the starter model, of the licences, and of the sizes of the bundle and archives."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from appbundle.bundle import Bundle
from appbundle.reading import BundleError, mapping, parse_json, read_bytes, sequence, span, unpack

_MB: Final = 1_000_000
_CHUNK_BYTES: Final = 1 << 20
_MODEL_FILES: Final = ("config.json", "tokenizer.json", "tokenizer_config.json")
# Names of the folders in which the licence text of Qt or Python must be. The same text in another
# folder does not count, because it belongs to another library.
_QT: Final = re.compile(r"qt|pyside6|shiboken6|lgpl")
_LGPL: Final = b"GNU LESSER GENERAL PUBLIC LICENSE"
_PYTHON: Final = re.compile(r"c?python(-\d|$)")
_PSF: Final = b"PYTHON SOFTWARE FOUNDATION LICENSE"


def starter_model(bundle: Bundle) -> Iterator[str]:
    """Check that the bundle has exactly one starter model and that its files are complete."""
    models = bundle.layout.models
    folders = [path for path in bundle.folders if path.parent == models]
    if len(folders) != 1:
        yield f"{bundle.name(models)} should hold the folder of one model, it holds {len(folders)}"
    for path in (*bundle.files, *bundle.links):
        if path.parent == models:
            yield f"{bundle.name(path)} does not belong beside the model"
    for folder in folders:
        for path in (folder / name for name in _MODEL_FILES):
            try:
                parse_json(read_bytes(path))
            except BundleError as error:
                yield f"{bundle.name(path)} {error}"
        weights = sorted(
            path for path in bundle.below(folder).values() if path.suffix == ".safetensors"
        )
        if not weights:
            yield f"{bundle.name(folder)} holds no .safetensors file"
        for path in weights:
            try:
                _check_safetensors(path)
            except BundleError as error:
                yield f"{bundle.name(path)} {error}"


def no_second_copy(bundle: Bundle) -> Iterator[str]:
    """Check that the bundle has no GGUF file.

    The starter model is imported from a GGUF file. Only the build needs that file.
    """
    for path in bundle.files:
        if path.suffix.lower() == ".gguf":
            yield f"{bundle.name(path)} is a model's file that nothing here reads"


def licences(bundle: Bundle) -> Iterator[str]:
    """Check that the app, the model, every library, Qt and Python have a licence in the bundle.

    The licence of the app, a model or a library is a file or folder with the same name, with or
    without version.
    """
    texts: dict[str, list[Path]] = {}
    for inner, path in bundle.below(bundle.layout.licences).items():
        entry = inner.partition("/")[0]
        name = _normal(re.sub(r"\.(txt|md|dist-info)$", "", entry))
        texts.setdefault(name, []).append(path)
    models = [path.name for path in bundle.folders if path.parent == bundle.layout.models]
    parts = {
        bundle.spec.name: bundle.spec.version,
        **dict.fromkeys(models, ""),
        **bundle.distributions,
    }
    for name, version in parts.items():
        named = [*texts.get(_normal(name), []), *texts.get(_normal(f"{name}-{version}"), [])]
        if not any(path.stat().st_size for path in named):
            yield f"{name} has no licence in {bundle.name(bundle.layout.licences)}"
    if not _states(texts, _QT, _LGPL):
        yield "the LGPL, which Qt and PySide are under, is missing"
    if bundle.has_interpreter and not _states(texts, _PYTHON, _PSF):
        yield "the licence of Python is missing"


def bundle_size(bundle: Bundle) -> Iterator[str]:
    """Check that the bundle is within its size limit. The starter model does not count."""
    size = sum(path.stat().st_size for path in bundle.files) - _model_bytes(bundle)
    if size > bundle.spec.bundle_mb * _MB:
        yield f"the bundle has {size / _MB:.1f} MB without the starter model, {bundle.spec.bundle_mb} MB are allowed"


def archive_size(bundle: Bundle) -> Iterator[str]:
    """Check that each archive is within its size limit.

    The size of the compressed starter model does not count.
    """
    if not bundle.archives:
        return
    model = sum(map(_compressed_bytes, bundle.below(bundle.layout.models).values()))
    for path in bundle.archives:
        size = path.stat().st_size - model
        if size > bundle.spec.archive_mb * _MB:
            yield f"{path.name} has {size / _MB:.1f} MB without the starter model, {bundle.spec.archive_mb} MB are allowed"


def _model_bytes(bundle: Bundle) -> int:
    return sum(path.stat().st_size for path in bundle.below(bundle.layout.models).values())


def _compressed_bytes(path: Path) -> int:
    compressor = zlib.compressobj()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            size += len(compressor.compress(chunk))
    return size + len(compressor.flush())


def _check_safetensors(path: Path) -> None:
    """Raise BundleError if the size of a file does not match the tensors listed in its header."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        (length,) = unpack("<Q", start, 0, "header")
        header = span(file.read(min(length, size)), 0, length, "header")
    tensors = [mapping(entry) for name, entry in parse_json(header).items() if name[:2] != "__"]
    offsets = [offset for tensor in tensors for offset in sequence(tensor.get("data_offsets"))]
    ends = [offset for offset in offsets if isinstance(offset, int)]
    if not ends:
        raise BundleError("holds no tensors")
    if 8 + length + max(ends) != size:
        raise BundleError(f"has {size} bytes, its tensors end at {8 + length + max(ends)}")


def _states(texts: Mapping[str, Sequence[Path]], names: re.Pattern[str], words: bytes) -> bool:
    paths = [path for name in texts if names.match(name) for path in texts[name]]
    return any(words in read_bytes(path).upper() for path in paths)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
