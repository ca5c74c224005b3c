"""A table of damages to a bundle. For each, the table names the check that must report it.

Every check of the verifier has at least one damage.
"""

from __future__ import annotations

import errno
import shutil
from dataclasses import dataclass
from enum import Enum, auto

from appbundle.checks.python import NO_INTERPRETER
from tests.packaging.crafted import pyc
from tests.packaging.damaging import (
    Action,
    appended,
    as_a_library,
    both,
    copied,
    cut,
    distribution,
    edited,
    executable,
    flipped_at_the_end_of,
    flipped_in_the_middle,
    for_macos,
    for_platform,
    for_x86,
    leaving_out,
    linked,
    model,
    moved,
    naming,
    removed,
    replaced,
    resource,
    root,
    seal,
    signed_as,
    site,
    unsigned,
    with_flags,
    with_folder,
    with_longer_tensors,
    with_mode,
    with_plist,
    with_x86,
    written,
)
from tests.packaging.signing import bind, reseal, reseal_outside
from tests.packaging.tree import Tree


class After(Enum):
    """The seals to renew after a damage, so that only the check under test can report it."""

    SEALED = auto()  # renew the seals of the app and of its frameworks
    SEALED_OUTSIDE = auto()  # renew the seal of the app, but not the seals of its frameworks
    BOUND = auto()  # renew only the executable's signature, which contains a hash of the app's seal
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class Damage:
    """A damage to a bundle, and the check that must report it."""

    check: str
    what: str  # the damage in words, for test ids and printed results
    reason: str  # part of the problem that the check must report
    do: Action
    after: After = After.SEALED

    def apply(self, tree: Tree) -> None:
        self.do(tree)
        match self.after:
            case After.SEALED:
                reseal(tree)
            case After.SEALED_OUTSIDE:
                reseal_outside(tree)
            case After.BOUND:
                bind(tree)
            case After.NOTHING:
                pass


def _no_interpreter(tree: Tree) -> None:
    tree.remove(tree.layout.libpython)
    for path in tree.layout.stdlib.iterdir():
        if path != tree.layout.site_packages:
            tree.remove(path)


def _too_large(tree: Tree) -> None:
    tree.truncate(tree.layout.resources / "large", (tree.spec.bundle_mb + 1) * 1_000_000)


def _too_large_to_send(tree: Tree) -> None:
    model_bytes = sum(path.stat().st_size for path in tree.layout.models.glob("*/*"))
    archive = tree.layout.app.parent / "large.zip"
    archive.touch()
    with archive.open("r+b") as file:
        file.truncate(model_bytes + (tree.spec.archive_mb + 1) * 1_000_000)
    tree.archives = (archive,)


def _licences_of(prefix: str) -> Action:
    def do(tree: Tree) -> None:
        found = [
            path
            for path in tree.layout.licences.iterdir()
            if path.name.lower().replace("_", "-").startswith(prefix)
        ]
        for path in found or [tree.layout.licences / prefix]:
            tree.remove(path)

    return do


def _no_licence_of_python(tree: Tree) -> None:
    if not tree.layout.libpython.exists():
        raise FileNotFoundError("there is no interpreter that would need one")
    _licences_of("cpython")(tree)


def _lgpl(tree: Tree) -> None:
    for prefix in ("qt", "pyside6", "shiboken6", "lgpl"):
        for path in tree.layout.licences.iterdir():
            if path.name.lower().startswith(prefix):
                tree.remove(path)
    for name in ("pyside6_essentials", "shiboken6"):
        if any(tree.layout.site_packages.glob(f"{name}-*.dist-info")):
            tree.write(tree.layout.licences / name / "LICENSE", b"Permission is granted\n")


def _nested_pycache(tree: Tree) -> None:
    folder = tree.layout.site_packages / "numpy"
    tree.write(folder / "__init__.pyc", pyc((folder / "__init__.py").read_bytes()))


def _hard_copied_framework(tree: Tree) -> None:
    framework = tree.layout.site_packages / "PySide6/Qt/lib/QtCore.framework"
    tree.remove(framework / "Resources")
    shutil.copytree(framework / "Versions/A/Resources", framework / "Resources")
    tree.changed.add(framework / "Resources")


def _two_names(first: str, second: str) -> Action:
    def do(tree: Tree) -> None:
        folder = tree.layout.resources
        tree.write(folder / first, b"")
        if (folder / second).exists():
            raise FileExistsError(errno.EEXIST, "one file already")
        tree.write(folder / second, b"")

    return do


_CORE = site("mlx/core.cpython-312-darwin.so")
_SPEEDUPS = site("markupsafe/_speedups.cpython-312-darwin.so")
_METALLIB = site("mlx/lib/mlx.metallib")
_TYPED = site("PySide6/py.typed")
_TOKENIZERS_PYC = site("tokenizers/__pycache__/__init__.cpython-312.pyc")
_FRAMEWORK = "PySide6/Qt/lib/QtCore.framework"

DAMAGES: tuple[Damage, ...] = (
    Damage("interpreter", "there is none", NO_INTERPRETER, _no_interpreter),
    Damage(
        "interpreter",
        "only the standard library is there",
        "libpython3.12.dylib is missing",
        removed(lambda tree: tree.layout.libpython),
    ),
    Damage(
        "Info.plist",
        "a key is missing",
        "LSMinimumSystemVersion is missing",
        with_plist(LSMinimumSystemVersion=None),
    ),
    Damage(
        "Info.plist",
        "another version",
        "CFBundleShortVersionString is '9.9'",
        with_plist(CFBundleShortVersionString="9.9"),
    ),
    Damage(
        "Info.plist",
        "a number where a truth value belongs",
        "NSHighResolutionCapable is 1, not True",
        with_plist(NSHighResolutionCapable=1),
    ),
    Damage(
        "Info.plist",
        "a version that is no number",
        "CFBundleVersion is '1.0-beta'",
        with_plist(CFBundleVersion="1.0-beta"),
    ),
    Damage(
        "document types",
        "none",
        "names no .gguf files",
        with_plist(CFBundleDocumentTypes=None),
    ),
    Damage(
        "document types",
        "all folders are claimed",
        "it claims all folders",
        with_plist(
            CFBundleDocumentTypes=[
                {"CFBundleTypeRole": "Viewer", "CFBundleTypeExtensions": ["gguf"]},
                {"CFBundleTypeRole": "Viewer", "LSItemContentTypes": ["public.folder"]},
            ]
        ),
    ),
    Damage("icon", "not named", "names no CFBundleIconFile", with_plist(CFBundleIconFile=None)),
    Damage(
        "icon",
        "cut off",
        "is no whole .icns file",
        edited(resource("AppIcon.icns"), appended(b"x")),
    ),
    Damage(
        "executable",
        "a script",
        "is no Mach-O file with arm64 code",
        edited(executable, lambda _: b"#!/bin/sh\n"),
    ),
    Damage("executable", "a library", "not a program", edited(executable, as_a_library)),
    Damage("executable", "not executable", "may not be executed", with_mode(executable, 0o644)),
    Damage("executable", "missing", "is missing", removed(executable)),
    Damage("Mach-O files", "cut off", "is truncated", edited(_CORE, cut(100))),
    Damage(
        "Mach-O files",
        "a library for Linux",
        "is no Mach-O file",
        written(site("numpy/x.abi3.so"), b"\x7fELF"),
    ),
    Damage("arm64 only", "two architectures", "is for arm64, x86_64", edited(_CORE, with_x86)),
    Damage("arm64 only", "for Intel", "is for x86_64", edited(_SPEEDUPS, for_x86)),
    Damage(
        "extension modules",
        "one for another Python",
        "is built for cpython-311-darwin",
        moved(_SPEEDUPS, site("markupsafe/_speedups.cpython-311-darwin.so")),
    ),
    Damage(
        "dependencies",
        "a library of the machine that built it",
        "needs /opt/x/libmlx.dylib",
        edited(_CORE, naming("@rpath/libmlx", "/opt/x/libmlx.dylib")),
    ),
    Damage(
        "dependencies",
        "one that is not there",
        "needs @rpath/libnot.dylib",
        edited(_CORE, naming("@rpath/libmlx", "@rpath/libnot.dylib")),
    ),
    Damage(
        "search paths",
        "one outside",
        "looks for libraries in /usr/lib",
        edited(site(f"{_FRAMEWORK}/Versions/A/QtCore"), naming("@loader_path/", "/usr/lib")),
    ),
    Damage("system version", "a newer macOS", "needs macOS 99.0", edited(_CORE, for_macos(99))),
    Damage(
        "system version", "another platform", "not built for macOS", edited(_CORE, for_platform(2))
    ),
    Damage("signed", "one is not", "is not signed", edited(_CORE, unsigned)),
    Damage(
        "signed",
        "a malformed signature",
        "malformed code directory",
        edited(_CORE, lambda data: with_flags(0)(data).replace(b"\xfa\xde\x0c\x02", b"\0\0\0\0")),
    ),
    Damage(
        "code hashes",
        "a byte of code changed",
        "the code was changed after signing",
        edited(_CORE, flipped_in_the_middle),
    ),
    Damage(
        "code hashes", "a byte more", "1 bytes follow the signature", edited(_CORE, appended(b"x"))
    ),
    Damage(
        "bound files",
        "another Info.plist",
        "the Info.plist changed after signing",
        edited(root("Contents/Info.plist"), appended(b"\n")),
        After.NOTHING,
    ),
    Damage(
        "bound files",
        "another seal",
        "the CodeResources changed after signing",
        edited(seal, appended(b"\n")),
        After.NOTHING,
    ),
    Damage(
        "bound files",
        "other requirements",
        "the requirements changed after signing",
        edited(executable, flipped_at_the_end_of(2)),
    ),
    Damage(
        "bound files",
        "another seal of a framework",
        "QtCore: the CodeResources changed after signing",
        edited(site(f"{_FRAMEWORK}/Versions/A/_CodeSignature/CodeResources"), appended(b"\n")),
        After.SEALED_OUTSIDE,
    ),
    Damage(
        "signing flags",
        "signed as something else",
        "is signed as",
        edited(executable, signed_as(b"X")),
    ),
    Damage(
        "signing flags",
        "hardened without a team",
        "none of its libraries would load",
        edited(executable, with_flags(0x10002)),
    ),
    Damage(
        "signing flags",
        "signed by the linker only",
        "only the signature of its linker",
        edited(executable, with_flags(0x20002)),
    ),
    Damage(
        "seal",
        "a file changed",
        "changed after sealing",
        edited(_TYPED, appended(b"\n")),
        After.BOUND,
    ),
    Damage("seal", "a file is missing", "is sealed and missing", removed(_TYPED), After.BOUND),
    Damage(
        "seal",
        "a file more",
        "more.txt is not sealed",
        written(resource("more.txt"), b""),
        After.BOUND,
    ),
    Damage(
        "seal",
        "a file became a link",
        "became a link",
        linked(_TYPED, "__init__.py"),
        After.BOUND,
    ),
    Damage(
        "seal",
        "a file of a framework",
        "PrivacyInfo.xcprivacy changed after sealing",
        edited(site(f"{_FRAMEWORK}/Versions/A/Resources/PrivacyInfo.xcprivacy"), appended(b"\n")),
        After.SEALED_OUTSIDE,
    ),
    Damage("seal", "beside Contents", "lies beside Contents", written(root("README"), b"")),
    Damage(
        "seal",
        "a rule that leaves out more",
        "_CodeSignature leaves out",
        both(edited(seal, leaving_out("^Resources/more")), written(resource("more.txt"), b"")),
    ),
    Damage("Metal library", "missing", "one mlx.metallib, there is: none", removed(_METALLIB)),
    Damage(
        "Metal library",
        "elsewhere",
        "is not beside",
        moved(_METALLIB, site("mlx/mlx.metallib")),
    ),
    Damage(
        "Metal library",
        "a second libmlx",
        "one libmlx.dylib",
        copied(site("mlx/lib/libmlx.dylib"), site("mlx/libmlx.dylib")),
    ),
    Damage(
        "Metal library",
        "something else",
        "is no Metal library",
        edited(_METALLIB, replaced(0, b"XXXX")),
    ),
    Damage(
        "Metal library",
        "for a newer macOS",
        "is for macOS 26.2",
        edited(_METALLIB, replaced(12, b"\x1a\0\x02\0")),
    ),
    Damage("Metal library", "cut off", "its header says", edited(_METALLIB, cut(-1))),
    Damage(
        "MLX versions", "one is missing", "mlx-metal is missing", removed(distribution("mlx_metal"))
    ),
    Damage(
        "MLX versions",
        "another",
        "mlx-metal is 0.0.1",
        moved(distribution("mlx_metal"), site("mlx_metal-0.0.1.dist-info")),
    ),
    Damage(
        "Qt modules",
        "one is missing",
        "QtSvg.abi3.so is missing",
        removed(site("PySide6/QtSvg.abi3.so")),
    ),
    Damage(
        "Qt plugins",
        "no window can be opened",
        "libqcocoa.dylib is missing",
        removed(site("PySide6/Qt/plugins/platforms/libqcocoa.dylib")),
    ),
    Damage(
        "Qt leftovers",
        "a plugin for databases",
        "libqsqlite.dylib is not needed",
        copied(
            site("PySide6/Qt/plugins/platforms/libqcocoa.dylib"),
            site("PySide6/Qt/plugins/sqldrivers/libqsqlite.dylib"),
        ),
    ),
    Damage(
        "Qt leftovers", "QML", "is not needed", written(site("PySide6/Qt/qml/QtQml/qmldir"), b"\n")
    ),
    Damage(
        "Qt frameworks",
        "a copy where a link belongs",
        "Resources is no link",
        _hard_copied_framework,
    ),
    Damage(
        "Qt frameworks",
        "a link past the current version",
        "is a link to Versions/A/QtCore",
        linked(site(f"{_FRAMEWORK}/QtCore"), "Versions/A/QtCore"),
    ),
    Damage(
        "Qt frameworks",
        "no Info.plist",
        "has no Info.plist",
        removed(site(f"{_FRAMEWORK}/Versions/A/Resources/Info.plist")),
    ),
    Damage(
        "modules",
        "our version is not known",
        "Rejoinder is not installed as version",
        removed(distribution("rejoinder")),
    ),
    Damage("modules", "a package is missing", "tokenizers is missing", removed(site("tokenizers"))),
    Damage(
        "modules",
        "a file of ours is missing",
        "resources/models.toml is missing",
        removed(site("resources/models.toml")),
    ),
    Damage("bytecode", "missing", "has no bytecode", removed(_TOKENIZERS_PYC)),
    Damage(
        "bytecode",
        "of Python 3.11",
        "magic number is 3495",
        edited(_TOKENIZERS_PYC, replaced(0, b"\xa7\x0d")),
    ),
    Damage(
        "bytecode",
        "checked against the source",
        "its flags are 0b11",
        edited(_TOKENIZERS_PYC, replaced(4, b"\x03")),
    ),
    Damage(
        "bytecode",
        "with a time",
        "its flags are 0b00",
        edited(_TOKENIZERS_PYC, replaced(4, b"\x00")),
    ),
    Damage(
        "bytecode",
        "stale",
        "the bytecode of another source",
        edited(site("tokenizers/__init__.py"), appended(b"\n")),
    ),
    Damage(
        "bytecode",
        "without a source",
        "belongs to no source",
        copied(_TOKENIZERS_PYC, site("tokenizers/__pycache__/gone.cpython-312.pyc")),
    ),
    Damage("bytecode", "outside __pycache__", "belongs to no source", _nested_pycache),
    Damage(
        "starter model",
        "missing",
        "it holds 0",
        lambda tree: tree.remove(model(".")(tree).resolve()),
    ),
    Damage(
        "starter model",
        "its weights are cut off",
        "its tensors end at",
        edited(model("model.safetensors"), cut(-1)),
    ),
    Damage(
        "starter model",
        "its weights promise more",
        "its tensors end at",
        edited(model("model.safetensors"), with_longer_tensors),
    ),
    Damage("starter model", "no weights", "no .safetensors", removed(model("model.safetensors"))),
    Damage(
        "starter model",
        "a malformed config.json",
        "config.json is no JSON object",
        edited(model("config.json"), cut(1)),
    ),
    Damage(
        "starter model",
        "no tokenizer",
        "tokenizer.json can't be read",
        removed(model("tokenizer.json")),
    ),
    Damage(
        "starter model",
        "what its import left behind",
        "does not belong beside the model",
        written(resource("models/starter.lock"), b""),
    ),
    Damage(
        "no second copy",
        "the file that it was made from",
        "starter.gguf is a model's file",
        written(resource("starter.gguf"), b"GGUF"),
    ),
    Damage("licences", "one is missing", "numpy", _licences_of("numpy")),
    Damage("licences", "none of ours", "Rejoinder has no licence", _licences_of("rejoinder")),
    Damage("licences", "none for the model", "Instruct has no licence", _licences_of("smollm2")),
    Damage("licences", "none for Qt", "the LGPL", _lgpl),
    Damage("licences", "none for Python", "the licence of Python", _no_licence_of_python),
    Damage(
        "stray files", "an object file", "x.o is of use in building", written(resource("x.o"), b"")
    ),
    Damage(
        "stray files",
        "a header",
        "x.h is of use in building",
        written(site("numpy/x.h"), b""),
    ),
    Damage("stray files", "tests", "tests holds tests", written(site("numpy/tests/data.txt"), b"")),
    Damage("stray files", "Finder's", ".DS_Store is hidden", written(resource(".DS_Store"), b"")),
    Damage("stray files", "an archiver's", "._x is hidden", written(resource("._x"), b"")),
    Damage(
        "stray files",
        "an archiver's folder",
        "__MACOSX was left behind",
        with_folder(resource("__MACOSX")),
    ),
    Damage("stray files", "for Windows", "on Windows only", written(resource("x.exe"), b"MZ")),
    Damage(
        "symbolic links", "absolute", "the absolute path /usr", linked(resource("link"), "/usr")
    ),
    Damage(
        "symbolic links",
        "out of the bundle",
        "leads out of the bundle, to",
        linked(resource("link"), "../../../other"),
    ),
    Damage("symbolic links", "to nothing", "which is not there", linked(resource("link"), "gone")),
    Damage("symbolic links", "to itself", "which is not there", linked(resource("link"), "link")),
    Damage("file names", "a colon", "has a colon", written(resource("a:b"), b"")),
    Damage(
        "file names",
        "not UTF-8",
        "is not UTF-8",
        with_folder(resource("caf\udce9")),
    ),
    Damage(
        "file names",
        "two of one case",
        "are one file on a Mac",
        _two_names("Name", "name"),
    ),
    Damage(
        "file names",
        "two of one look",
        "are one file on a Mac",
        _two_names("caf\u00e9", "cafe\u0301"),
    ),
    Damage("file modes", "for one person", "not everyone can read it", with_mode(_TYPED, 0o600)),
    Damage("file modes", "for all to change", "it grants too much", with_mode(_TYPED, 0o666)),
    Damage("bundle size", "too large", "are allowed", _too_large),
    Damage("archive size", "too large", "are allowed", _too_large_to_send),
)
