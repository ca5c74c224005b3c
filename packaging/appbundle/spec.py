"""The specification of the bundle, read from bundle.toml, and the paths inside a bundle."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The values of bundle.toml, and the app's version from pyproject.toml."""

    name: str
    version: str
    identifier: str
    category: str
    copyright: str
    local_network: str  # shown when macOS asks for access to the local network
    min_macos: str
    python: str  # major and minor version, as in "3.12"
    bundle_mb: int  # size limit of the bundle in MB, without the starter model
    archive_mb: int  # size limit of each archive in MB, without the starter model
    qt_modules: frozenset[str]
    qt_plugins: frozenset[str]
    qt_linux_plugins: frozenset[str]
    drop: tuple[str, ...]  # patterns of paths in site-packages that are not copied
    keep: tuple[str, ...]  # patterns of paths that are copied even if `drop` matches them


@dataclass(frozen=True, slots=True)
class BundleLayout:
    """The paths inside a bundle. `python` is the Python version in file names, such as "3.12"."""

    app: Path
    name: str
    python: str

    @property
    def contents(self) -> Path:
        return self.app / "Contents"

    @property
    def executable(self) -> Path:
        return self.contents / "MacOS" / self.name

    @property
    def info_plist(self) -> Path:
        return self.contents / "Info.plist"

    @property
    def resources(self) -> Path:
        return self.contents / "Resources"

    @property
    def python_home(self) -> Path:
        return self.resources / "python"

    @property
    def libpython(self) -> Path:
        return self.python_home / "lib" / f"libpython{self.python}.dylib"

    @property
    def stdlib(self) -> Path:
        return self.python_home / "lib" / f"python{self.python}"

    @property
    def encodings(self) -> Path:
        """The folder of the package `encodings`, without which no interpreter starts."""
        return self.stdlib / "encodings"

    @property
    def site_packages(self) -> Path:
        """The folder for installed wheels and for our own folders app, engine and resources."""
        return self.stdlib / "site-packages"

    @property
    def models(self) -> Path:
        """The folder that contains the starter model's folder."""
        return self.resources / "models"

    @property
    def licences(self) -> Path:
        return self.resources / "licences"


def read_spec() -> Spec:
    facts = tomllib.loads((ROOT / "packaging" / "bundle.toml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    app, budget, qt, trim = facts["app"], facts["budget"], facts["qt"], facts["trim"]
    return Spec(
        **app,
        **budget,
        version=project["version"],
        qt_modules=frozenset(qt["modules"]),
        qt_plugins=frozenset(qt["plugins"]),
        qt_linux_plugins=frozenset(qt["linux_plugins"]),
        drop=tuple(trim["drop"]),
        keep=tuple(trim["keep"]),
    )


def version_of(text: str) -> tuple[int, int]:
    """Parse a version of two numbers: "15.0" gives (15, 0)."""
    major, minor = text.split(".")
    return int(major), int(minor)
