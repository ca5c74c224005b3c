"""Collects the licences of all parts of a bundle: one folder for each part, and an index.

The licence files of a library come from its *.dist-info folder. If a library has no such files, its
folder gets a statement with the licence from its metadata, and the standard text of that licence.
The texts for Qt, Python, fonts and the starter model are in packaging/licences.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageMetadata
from pathlib import Path
from typing import Final

from appbundle.spec import ROOT, BundleLayout, read_spec

INDEX: Final = "INDEX.txt"
_NOTES = ROOT / "packaging" / "licences"
_OURS = ROOT / "LICENSE"
_FOLDERS = ("licenses", "license_files")  # folders in *.dist-info that contain licence files
_FILE = re.compile(r"(licen[cs]e|copying|notice|authors)", re.IGNORECASE)
_CLASSIFIER = "License :: "
_QT = ("Qt.txt", "LGPL-3.0-only.txt", "GPL-3.0-only.txt")
# Files to copy for libraries that contain Qt or a font. Key: name of the library. Value: file names
# in packaging/licences.
_BESIDES = {
    "pyside6-essentials": _QT,
    "shiboken6": _QT,
    "ziafont": ("DejaVu.txt",),
    "ziamath": ("STIX.txt",),
}
# Standard licence texts. Key: word in the licence's name. Value: file name in the bundle, and path
# of the file to copy.
_TEXTS = {"Apache": ("Apache-2.0.txt", _OURS), "MIT": ("MIT.txt", _NOTES / "MIT.txt")}


class NoLicenceError(Exception):
    """The error if parts of the bundle have no known licence. The message names the parts."""


@dataclass(frozen=True, slots=True, order=True)
class LicencedPart:
    """A line of the index: one part of the bundle. An unknown licence is an empty string."""

    name: str
    version: str
    licence: str


def collect(layout: BundleLayout) -> None:
    """Write the licences of all parts of the bundle, and the index.

    Raises:
        NoLicenceError: a part has no licence. It is raised after all known licences are written.
    """
    shutil.rmtree(layout.licences, ignore_errors=True)
    parts = [_own(layout)]
    if (layout.stdlib / "os.py").exists():
        parts.append(_python(layout))
    if layout.models.exists():
        parts += [_model(layout, model) for model in sorted(layout.models.iterdir())]
    for folder in sorted(layout.site_packages.glob("*.dist-info")):
        parts.append(_library(layout, folder))
    _write_index(layout.licences / INDEX, parts)
    without = [part.name for part in parts if not part.licence]
    if without:
        raise NoLicenceError(f"without a licence: {', '.join(without)}")


def _own(layout: BundleLayout) -> LicencedPart:
    spec = read_spec()
    _copy([_OURS], layout.licences / spec.name.lower())
    return LicencedPart(spec.name, spec.version, "Apache-2.0")


def _python(layout: BundleLayout) -> LicencedPart:
    text = layout.stdlib / "LICENSE.txt"
    if not text.exists():
        return LicencedPart("Python", layout.python, "")
    _copy([text, _NOTES / "Python.txt"], layout.licences / "python")
    return LicencedPart("Python", layout.python, "PSF-2.0")


def _model(layout: BundleLayout, model: Path) -> LicencedPart:
    note = _NOTES / f"{model.name}.txt"
    if not note.exists():
        return LicencedPart(model.name, "", "")
    _copy([_OURS, note], layout.licences / model.name.lower())
    return LicencedPart(model.name, "", "Apache-2.0")


def _library(layout: BundleLayout, folder: Path) -> LicencedPart:
    library = Distribution.at(folder)
    name = re.sub(r"[-_.]+", "-", library.name).lower()
    target = layout.licences / name
    stated = _stated(library.metadata)
    files = [path for path in sorted(folder.rglob("*")) if _is_licence(path, folder)]
    for path in files:
        place = path.relative_to(folder)
        inner = Path(*place.parts[1:]) if place.parts[0] in _FOLDERS else place
        _copy([path], (target / inner).parent)
    if not files and stated:
        _write_statement(target, library, stated)
    _copy((_NOTES / note for note in _BESIDES.get(name, ())), target)
    return LicencedPart(name, library.version, stated or ("see its files" if files else ""))


def _is_licence(path: Path, folder: Path) -> bool:
    in_their_folder = path.relative_to(folder).parts[0] in _FOLDERS
    return path.is_file() and (in_their_folder or bool(_FILE.match(path.name)))


def _stated(metadata: PackageMetadata) -> str:
    """Return the licence that the metadata states.

    Use the first of these fields that is not empty: License-Expression, License, the classifiers.
    """
    for field in ("License-Expression", "License"):
        for value in metadata.get_all(field) or []:
            if value.strip() and "\n" not in value:
                return value.strip()
    classifiers = metadata.get_all("Classifier") or []
    found = [line.split(" :: ")[-1] for line in classifiers if line.startswith(_CLASSIFIER)]
    return ", ".join(found)


def _write_statement(target: Path, library: Distribution, stated: str) -> None:
    """Write a file with the licence from the metadata. Copy the standard texts of that licence."""
    fields = ("Author", "Author-email", "Home-page", "Project-URL")
    lines = [
        f"{field}: {value}" for field in fields for value in library.metadata.get_all(field) or []
    ]
    said = [f"{library.name} {library.version} brings no licence file. Its metadata says:", ""]
    target.mkdir(parents=True)
    text = "\n".join([*said, f"License: {stated}", *lines]) + "\n"
    (target / "STATEMENT.txt").write_text(text, encoding="utf-8")
    for word, (name, source) in _TEXTS.items():
        if re.search(rf"\b{re.escape(word)}\b", stated):
            shutil.copyfile(source, target / name)


def _copy(files: Iterable[Path], folder: Path) -> None:
    for file in files:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / file.name)


def _write_index(path: Path, parts: list[LicencedPart]) -> None:
    name = max(len(part.name) for part in parts)
    version = max(len(part.version) for part in parts)
    head = "Each part's licence lies in the folder of its name, in small letters.\n\n"
    body = "".join(f"{p.name:{name}}  {p.version:{version}}  {p.licence}\n" for p in parts)
    path.write_text(head + body, encoding="utf-8")
