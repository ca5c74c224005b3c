"""The bundle to check. Its file tree and load commands are read only once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from appbundle.macho import Image, Slice, is_macho, read_image, read_slices
from appbundle.reading import BundleError, Bytes, read_bytes, span
from appbundle.spec import BundleLayout, Spec

_MAGIC_BYTES = 8


@dataclass(frozen=True, slots=True)
class Code:
    """A Mach-O file of the bundle.

    `image` has the load commands of the arm64 slice. If the file has no arm64 slice, `image` is
    None.
    """

    path: Path
    slices: tuple[Slice, ...]
    image: Image | None

    def arm64_bytes(self) -> Bytes:
        """Return the bytes of the arm64 slice."""
        piece = arm64_slice(self.slices)
        assert piece is not None, "this file has no arm64 slice"
        return span(memoryview(read_bytes(self.path)), piece.offset, piece.size, "arm64 part")


class Bundle:
    """A bundle to check, with the zip and the disk image that were made from it.

    A name is a path relative to the bundle, with slashes. The path `app` must not lead through
    symbolic links, because holds() resolves other paths and compares them with `app`.
    """

    def __init__(self, app: Path, spec: Spec, archives: Sequence[Path] = ()) -> None:
        self.layout = BundleLayout(app, spec.name, spec.python)
        self.spec = spec
        self.archives = archives
        # The folders, files and links of the bundle. Key: path. Value: path relative to the bundle.
        self.folders: dict[Path, str] = {}
        self.files: dict[Path, str] = {}
        self.links: dict[Path, str] = {}
        self.devices: dict[Path, str] = {}
        self._walk(app, "")

    def name(self, path: Path) -> str:
        return path.relative_to(self.layout.app).as_posix()

    @property
    def everything(self) -> Mapping[Path, str]:
        return {**self.folders, **self.files, **self.links, **self.devices}

    def below(self, folder: Path) -> Mapping[str, Path]:
        """Return all files and links below a folder. The keys are paths relative to the folder."""
        start = self.name(folder) + "/"
        return {
            name.removeprefix(start): path
            for path, name in (*self.files.items(), *self.links.items())
            if name.startswith(start)
        }

    def holds(self, path: Path) -> bool:
        """Return True if a path leads to a place inside the bundle. Symbolic links are followed."""
        return Path(os.path.realpath(path)).is_relative_to(self.layout.app)

    @cached_property
    def codes(self) -> Sequence[Code]:
        """The readable Mach-O files of the bundle."""
        return [code for code in self._read.values() if isinstance(code, Code)]

    @cached_property
    def images(self) -> Sequence[tuple[Code, Image]]:
        """The Mach-O files with an arm64 slice, each with the load commands of that slice."""
        return [(code, code.image) for code in self.codes if code.image is not None]

    @cached_property
    def unreadable(self) -> Mapping[Path, BundleError]:
        """The malformed Mach-O files, each with the error that reading it raised."""
        return {path: code for path, code in self._read.items() if isinstance(code, BundleError)}

    @cached_property
    def distributions(self) -> Mapping[str, str]:
        """The versions of the Python packages in the bundle, by package name."""
        infos = self.layout.site_packages.glob("*.dist-info")
        pairs = (info.name.removesuffix(".dist-info").partition("-") for info in infos)
        return {name: version for name, _, version in sorted(pairs)}

    @cached_property
    def has_interpreter(self) -> bool:
        """True if libpython or the standard library is in the bundle."""
        return self.layout.libpython.is_file() or self.layout.encodings.is_dir()

    @cached_property
    def _read(self) -> Mapping[Path, Code | BundleError]:
        return {path: _read_code(path) for path in self.files if _claims_macho(path)}

    def _walk(self, folder: Path, start: str) -> None:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            path, name = Path(entry.path), start + entry.name
            if entry.is_symlink():
                self.links[path] = name
            elif entry.is_dir():
                self.folders[path] = name
                self._walk(path, f"{name}/")
            elif entry.is_file():
                self.files[path] = name
            else:
                self.devices[path] = name


def arm64_slice(slices: Sequence[Slice]) -> Slice | None:
    return next((piece for piece in slices if piece.architecture == "arm64"), None)


def _claims_macho(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_macho(file.read(_MAGIC_BYTES))
    except OSError:
        return False


def _read_code(path: Path) -> Code | BundleError:
    try:
        data = memoryview(read_bytes(path))
        slices = read_slices(data)
        piece = arm64_slice(slices)
        if piece is None:
            return Code(path, slices, None)
        return Code(path, slices, read_image(span(data, piece.offset, piece.size, "arm64 part")))
    except BundleError as error:
        return error
