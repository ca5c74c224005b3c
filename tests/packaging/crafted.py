"""Makes a bundle of a few KB that passes every check of the verifier.

Tests change copies of this bundle and compare the problems that the verifier reports.
"""

from __future__ import annotations

import json
import plistlib
import struct
from _imp import source_hash
from dataclasses import replace
from pathlib import Path

from appbundle.plist import info
from appbundle.spec import Spec, read_spec
from tests.packaging.machofile import MODULE, PROGRAM, MachO
from tests.packaging.signing import RULES, rehashed, reseal
from tests.packaging.tree import Tree

MAGIC = 3531 | 0x0A0D0000  # magic number of Python 3.12's bytecode
DISTRIBUTIONS = (
    "mlx-0.32.4",
    "mlx_metal-0.32.4",
    "mlx_lm-0.32.2",
    "numpy-2.5.5",
    "pyside6_essentials-6.11.3",
)
SOURCES = (
    "app/__main__.py",
    "engine/engine.py",
    "mlx_lm/__init__.py",
    "transformers/__init__.py",
    "tokenizers/__init__.py",
    "safetensors/__init__.py",
    "huggingface_hub/__init__.py",
    "jinja2/__init__.py",
    "numpy/__init__.py",
    "PySide6/__init__.py",
    "shiboken6/__init__.py",
    "markupsafe/__init__.py",
    "markdown_it/__init__.py",
    "pygments/__init__.py",
    "ziamath/__init__.py",
    "platformdirs/__init__.py",
    "psutil/__init__.py",
    "pypdf/__init__.py",
)


def crafted_spec() -> Spec:
    """Return the spec of the app, with size limits of 1 MB, which a test can easily exceed."""
    return replace(read_spec(), bundle_mb=1, archive_mb=1)


def make_bundle(folder: Path) -> Tree:
    spec = crafted_spec()
    archive = folder / f"{spec.name}-{spec.version}.zip"
    tree = Tree(folder / f"{spec.name}.app", spec, (archive,))
    _write_program(tree)
    _write_python(tree)
    _write_mlx(tree)
    _write_qt(tree)
    _write_model(tree)
    _write_licences(tree)
    write_empty_seal(tree, tree.layout.contents)
    reseal(tree)
    archive.write_bytes(bytes(1000))
    return tree


def pyc(source: bytes, magic: int = MAGIC, flags: int = 0b01) -> bytes:
    """Return a .pyc file with the header of `compileall --invalidation-mode unchecked-hash`."""
    return struct.pack("<2I", magic, flags) + source_hash(MAGIC, source) + b"code"


def write_source(tree: Tree, path: Path, source: bytes) -> None:
    tree.write(path, source)
    tree.write(path.parent / "__pycache__" / f"{path.stem}.cpython-312.pyc", pyc(source))


def write_macho(tree: Tree, path: Path, macho: MachO) -> None:
    tree.write(path, rehashed(macho.written()))


def write_empty_seal(tree: Tree, contents: Path) -> None:
    empty = {"files": {}, "files2": {}, "rules": {}, "rules2": RULES}
    tree.write(contents / "_CodeSignature" / "CodeResources", plistlib.dumps(empty))


def metallib(major: int, minor: int, size: int = 100) -> bytes:
    head = b"MTLB" + struct.pack("<3HBB2HQ", 0x8001, 2, 8, 0, 0x81, major, minor, size)
    return head.ljust(100, b"\0")


def _write_program(tree: Tree) -> None:
    spec, layout = tree.spec, tree.layout
    program = MachO(file_type=PROGRAM, oldest=(15, 0), identifier=spec.identifier)
    tree.write(layout.executable, rehashed(program.written()), 0o755)
    tree.write(layout.info_plist, plistlib.dumps(info(spec)))
    tree.write(layout.contents / "PkgInfo", b"APPL????")
    tree.write(layout.resources / "AppIcon.icns", b"icns" + struct.pack(">I", 8))


def _write_python(tree: Tree) -> None:
    layout = tree.layout
    write_macho(tree, layout.libpython, MachO(name="@rpath/libpython3.12.dylib"))
    write_source(tree, layout.encodings / "__init__.py", b"def search_function(): ...\n")
    ssl = layout.stdlib / "lib-dynload" / "_ssl.cpython-312-darwin.so"
    write_macho(tree, ssl, MachO(file_type=MODULE))
    for name in SOURCES:
        write_source(tree, layout.site_packages / name, f'"""{name}"""\n'.encode())
    for name in (
        "resources/models.toml",
        "resources/chips.toml",
        "resources/app-icon.svg",
        "resources/icons/chat.svg",
    ):
        tree.write(layout.site_packages / name, b"\n")
    for name in (*DISTRIBUTIONS, f"rejoinder-{tree.spec.version}"):
        tree.write(
            layout.site_packages / f"{name}.dist-info" / "METADATA", b"Metadata-Version: 2\n"
        )
    speedups = layout.site_packages / "markupsafe" / "_speedups.cpython-312-darwin.so"
    write_macho(tree, speedups, MachO(file_type=MODULE))


def _write_mlx(tree: Tree) -> None:
    folder = tree.layout.site_packages / "mlx"
    core = MachO(
        file_type=MODULE,
        needs=("@rpath/libmlx.dylib", "/usr/lib/libc++.1.dylib"),
        rpaths=("@loader_path/lib",),
    )
    write_macho(tree, folder / "core.cpython-312-darwin.so", core)
    metal = "/System/Library/Frameworks/Metal.framework/Versions/A/Metal"
    library = MachO(name="@rpath/libmlx.dylib", needs=(metal,), oldest=(15, 0))
    write_macho(tree, folder / "lib" / "libmlx.dylib", library)
    tree.write(folder / "lib" / "mlx.metallib", metallib(15, 0))


def _write_qt(tree: Tree) -> None:
    root = tree.layout.site_packages / "PySide6"
    tree.write(root / "py.typed", b"\n")
    for module in tree.spec.qt_modules:
        name = f"{module}.framework/Versions/A/{module}"
        framework = root / "Qt" / "lib" / f"{module}.framework"
        library = MachO(name=f"@rpath/{name}", rpaths=("@loader_path/../../../",))
        write_macho(tree, root / "Qt" / "lib" / name, library)
        inner = framework / "Versions" / "A"
        tree.write(inner / "Resources" / "Info.plist", plistlib.dumps({}))
        tree.write(inner / "Resources" / "PrivacyInfo.xcprivacy", plistlib.dumps({}))
        write_empty_seal(tree, inner)
        tree.link(framework / "Versions" / "Current", "A")
        tree.link(framework / module, f"Versions/Current/{module}")
        tree.link(framework / "Resources", "Versions/Current/Resources")
        binding = MachO(
            file_type=MODULE,
            needs=("@rpath/libpyside6.abi3.6.11.dylib", f"@rpath/{name}"),
            rpaths=("@loader_path/", "@loader_path/Qt/lib"),
        )
        write_macho(tree, root / f"{module}.abi3.so", binding)
    write_macho(tree, root / "libpyside6.abi3.6.11.dylib", MachO(name="@rpath/libpyside6.dylib"))
    for plugin in tree.spec.qt_plugins:
        library = MachO(
            file_type=MODULE,
            needs=("@rpath/QtGui.framework/Versions/A/QtGui",),
            rpaths=("@loader_path/../../lib",),
        )
        write_macho(tree, root / "Qt" / "plugins" / f"{plugin}.dylib", library)


def _write_model(tree: Tree) -> None:
    folder = tree.layout.models / "SmolLM2-135M-Instruct"
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        tree.write(folder / name, b"{}")
    header = json.dumps(
        {"embed": {"dtype": "F16", "shape": [8], "data_offsets": [0, 16]}, "__metadata__": {}}
    ).encode()
    tree.write(folder / "model.safetensors", struct.pack("<Q", len(header)) + header + bytes(16))


def _write_licences(tree: Tree) -> None:
    folder = tree.layout.licences
    names = [name.partition("-")[0] for name in DISTRIBUTIONS]
    for name in (*names, "rejoinder", "smollm2-135m-instruct"):
        tree.write(folder / name / "LICENSE", b"Permission is granted\n")
    tree.write(folder / "Qt" / "LGPL-3.0.txt", b"GNU LESSER GENERAL PUBLIC LICENSE\n")
    tree.write(folder / "CPython.txt", b"PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2\n")
