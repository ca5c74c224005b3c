"""Builds dist/Rejoinder.app, packs it into a zip and a disk image, and checks all three.

`make app` runs this script, on macOS or Linux. appbundle/assemble.py makes the bundle, and
appbundle/archives.py makes the archives. appbundle/verifier.py checks the bundle. Then the script
unpacks each archive and checks the unpacked bundle too. Exit status: 0 if all checks passed; 3 if
only the interpreter is missing, because it could not be downloaded; 1 if a check failed. With
`--twin` the script makes an unsigned bundle for this machine instead, so that tests can start it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from appbundle.archives import unpack_dmg, unpack_zip, why_no_dmg, write_dmg, write_zip
from appbundle.assemble import Builder
from appbundle.checks.python import NO_INTERPRETER
from appbundle.runtime import NoRuntimeError
from appbundle.spec import ROOT, Spec, read_spec
from appbundle.verifier import FAILED, exit_status, report, verify

Unpack = Callable[[Path, Path], None]


def main() -> int:
    arguments = _arguments()
    os.umask(0o022)  # let all users read the files of the bundle
    spec = read_spec()
    app = arguments.out / f"{spec.name}.app"
    builder = Builder(spec, ROOT / "build", ROOT / ".tools")
    started = perf_counter()
    if arguments.twin:
        builder.twin(app)
        _say_made(app, started)
        return 0
    builder.macos(app, _interpreter(builder))
    _say_made(app, started)
    archives = _pack(app, spec)
    results = verify(app, spec, list(archives))
    print(report(results).removeprefix(f"{NO_INTERPRETER}\n"))
    status = exit_status(results)
    opened = [_is_whole(*one, spec, status) for one in archives.items()]
    return status if all(opened) else FAILED


def _interpreter(builder: Builder) -> Path | None:
    try:
        return builder.fetch_interpreter()
    except NoRuntimeError as error:
        print(f"{NO_INTERPRETER}\n(CPython for macOS could not be fetched: {error})", flush=True)
        return None


def _pack(app: Path, spec: Spec) -> dict[Path, Unpack]:
    """Make the zip and the disk image. Skip the disk image if this machine has no tool for it.

    Returns:
        A dictionary. Key: path of the archive. Value: function that unpacks the archive.
    """
    stem = f"{spec.name}-{spec.version}"
    packers = {f"{stem}.zip": (write_zip, unpack_zip), f"{stem}.dmg": (write_dmg, unpack_dmg)}
    missing = why_no_dmg()
    if missing is not None:
        print(missing)
        del packers[f"{stem}.dmg"]
    made: dict[Path, Unpack] = {}
    for name, (write, unpack) in packers.items():
        started, target = perf_counter(), app.parent / name
        write(app, target)
        _say_made(target, started)
        made[target] = unpack
    return made


def _is_whole(archive: Path, unpack: Unpack, spec: Spec, status: int) -> bool:
    """Unpack an archive and check its bundle. Return True if the exit status is `status`."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        unpack(archive, Path(folder))
        results = verify(Path(folder, f"{spec.name}.app"), spec)
        is_whole = exit_status(results) == status
    print(f"{'passed' if is_whole else 'failed'} {archive.name}, opened and checked again")
    if not is_whole:
        print(report(results))
    return is_whole


def _say_made(path: Path, started: float) -> None:
    files = [path] if path.is_file() else [one for one in path.rglob("*") if not one.is_symlink()]
    size = sum(one.stat().st_size for one in files if one.is_file())
    print(f"made {path}: {size / 1e6:.0f} MB in {perf_counter() - started:.0f} s", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--twin", action="store_true", help="make it for this machine, unsigned")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
