"""Checks of the interpreter, of the modules that the app imports, and of their bytecode."""

from __future__ import annotations

from _imp import source_hash
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from appbundle.bundle import Bundle
from appbundle.reading import read_bytes, unpack

NO_INTERPRETER: Final = "NOT LAUNCHABLE: no interpreter"

_MODULES: Final = (
    "app.__main__",
    "engine.engine",
    "mlx.core",
    "mlx_lm",
    "transformers",
    "tokenizers",
    "safetensors",
    "huggingface_hub",
    "jinja2",
    "numpy",
    "PySide6.QtWidgets",
    "shiboken6",
    "markdown_it",
    "pygments",
    "ziamath",
    "platformdirs",
    "psutil",
    "pypdf",
)
_DATA: Final = (
    "resources/models.toml",
    "resources/chips.toml",
    "resources/app-icon.svg",
    "resources/icons",
)

# The magic number at the start of a bytecode file, by Python version.
_MAGIC_NUMBERS: Final = {"3.11": 3495, "3.12": 3531, "3.13": 3571}
_HEADER_BYTES: Final = 16
# Flags of a bytecode file that Python does not compare with its source.
_UNCHECKED_HASH: Final = 0b01


def interpreter(bundle: Bundle) -> Iterator[str]:
    """Check that the bundle has libpython and the standard library, so that it can start."""
    if not bundle.has_interpreter:
        yield NO_INTERPRETER
        return
    layout = bundle.layout
    for path in (layout.libpython, layout.encodings / "__init__.py"):
        if path not in bundle.files:
            yield f"the interpreter is not whole: {bundle.name(path)} is missing"


def modules(bundle: Bundle) -> Iterator[str]:
    """Check that the bundle has the modules and data files that the app uses."""
    site = bundle.layout.site_packages
    tag = f"cpython-{bundle.spec.python.replace('.', '')}-darwin"
    for module in _MODULES:
        path = site.joinpath(*module.split("."))
        endings = ("/__init__.py", ".py", f".{tag}.so", ".abi3.so")
        if not any(Path(f"{path}{ending}").is_file() for ending in endings):
            yield f"the module {module} is missing"
    if bundle.distributions.get(bundle.spec.name.lower()) != bundle.spec.version:
        yield f"{bundle.spec.name} is not installed as version {bundle.spec.version}"
    for data in _DATA:
        if not (site / data).exists():
            yield f"{bundle.name(site / data)} is missing"


def bytecode(bundle: Bundle) -> Iterator[str]:
    """Check that every module has bytecode with an unchecked hash.

    Python loads such bytecode without reading the source. Bytecode with a checked hash would make
    each start slower, because Python would read all sources. Bytecode with a time stamp would be
    invalid after the bundle is copied. Python would then write new bytecode and break the seal.
    """
    tag = f"cpython-{bundle.spec.python.replace('.', '')}"
    for path in bundle.below(bundle.layout.python_home).values():
        if path.suffix == ".py":
            compiled = path.parent / "__pycache__" / f"{path.stem}.{tag}.pyc"
            problem = _problem(compiled, path, _MAGIC_NUMBERS[bundle.spec.python])
            if problem is not None:
                yield f"{bundle.name(path)} {problem}"
    for path in bundle.files:
        if path.suffix == ".pyc":
            module = path.name.removesuffix(f".{tag}.pyc")
            in_place = path.parent.name == "__pycache__" and module != path.name
            if not in_place or path.parent.parent / f"{module}.py" not in bundle.files:
                yield f"{bundle.name(path)} belongs to no source here"


def _problem(compiled: Path, source: Path, magic_number: int) -> str | None:
    if not compiled.is_file():
        return "has no bytecode"
    data = read_bytes(compiled)
    magic, flags = unpack("<2I", data[:_HEADER_BYTES], 0, "header")
    whole_magic = magic_number | 0x0A0D0000
    if magic != whole_magic:
        return f"has bytecode of another Python: its magic number is {magic & 0xFFFF}"
    if flags != _UNCHECKED_HASH:
        return (
            f"has bytecode that Python would check against its source: its flags are {flags:#04b}"
        )
    if data[8:_HEADER_BYTES] != source_hash(whole_magic, read_bytes(source)):
        return "has the bytecode of another source"
    return None
