"""One bundle as the checks see it: its tree is walked once, the load commands in it are read once."""

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
    """A Mach-O file of the bundle. image is what its arm64 slice says, if it has one."""

    path: Path
    slices: tuple[Slice, ...]
    image: Image | None

    def arm64_bytes(self) -> Bytes:
        """The arm64 slice itself."""
        piece = arm64_slice(self.slices)
        assert piece is not None, "a code without an image has no such slice"
        return span(memoryview(read_bytes(self.path)), piece.offset, piece.size, "arm64 part")


class Bundle:
    """A bundle to check, and the archives made of it. Names are relative to it, with slashes.

    app is a path without links, so that what they lead to can be compared with it.
    """

    def __init__(self, app: Path, spec: Spec, archives: Sequence[Path] = ()) -> None:
        self.layout = BundleLayout(app, spec.name, spec.python)
        self.spec = spec
        self.archives = archives
        self.folders: dict[Path, str] = {}  # to their names
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
        """The files and links below a folder, by their names relative to that."""
        start = self.name(folder) + "/"
        return {
            name.removeprefix(start): path
            for path, name in (*self.files.items(), *self.links.items())
            if name.startswith(start)
        }

    def holds(self, path: Path) -> bool:
        """Whether a path is inside, once every link in it is followed."""
        return Path(os.path.realpath(path)).is_relative_to(self.layout.app)

    @cached_property
    def codes(self) -> Sequence[Code]:
        """Its Mach-O files, but those that can't be read."""
        return [code for code in self._read.values() if isinstance(code, Code)]

    @cached_property
    def images(self) -> Sequence[tuple[Code, Image]]:
        """Its Mach-O files with arm64 code."""
        return [(code, code.image) for code in self.codes if code.image is not None]

    @cached_property
    def unreadable(self) -> Mapping[Path, BundleError]:
        """Files that begin as Mach-O files and are none."""
        return {path: code for path, code in self._read.items() if isinstance(code, BundleError)}

    @cached_property
    def distributions(self) -> Mapping[str, str]:
        """The versions of the Python packages installed in it, by their names."""
        infos = self.layout.site_packages.glob("*.dist-info")
        pairs = (info.name.removesuffix(".dist-info").partition("-") for info in infos)
        return {name: version for name, _, version in sorted(pairs)}

    @cached_property
    def has_interpreter(self) -> bool:
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
