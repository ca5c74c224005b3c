"""Assembles a bundle: Rejoinder.app for Macs, or its twin for the machine that runs this code.

The twin is a bundle that tests can start on Linux. Its layout, launcher and selection of files are
those of Rejoinder.app. Signing is the last step, because the seal covers every file.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path, PurePosixPath

from appbundle import bytecode, launcher, runtime, wheels
from appbundle.bundle import Bundle
from appbundle.icon import write_icns
from appbundle.licences import collect
from appbundle.macho import thin
from appbundle.plist import ICON, write_plist
from appbundle.sign import sign_adhoc
from appbundle.spec import ROOT, BundleLayout, Spec
from appbundle.starter import add_starter
from appbundle.trim import copy_kept, files_below, restore_framework_links, wheel_rule

OURS = ("app", "engine", "resources")  # our own folders, which are copied into site-packages
_NOT_SHIPPED = ("__pycache__", "screenshots")  # names of subfolders that are not copied


class Builder:
    """The steps that make a bundle.

    The folder `work` is a cache for later builds. It keeps wheels, interpreter and starter model.
    """

    def __init__(self, spec: Spec, work: Path, tools: Path) -> None:
        self._spec = spec
        self._work = work
        self._uv = tools / "bin" / "uv"
        self._tools_python = tools / "bin" / "python"

    def fetch_interpreter(self) -> Path:
        """Return the folder of CPython for macOS. If CPython is not in `work`, download it.

        Raises:
            NoRuntimeError: the interpreter can't be fetched.
        """
        return runtime.fetch_macos(self._uv, self._spec, self._work / "python-macos")

    def macos(self, app: Path, interpreter: Path | None) -> None:
        """Make the bundle for Macs and sign it ad hoc.

        With interpreter=None the bundle has no Python, so that it cannot be launched.
        """
        spec = self._spec
        layout = _empty(app, spec.name, spec.python)
        if interpreter is not None:
            runtime.copy_macos(interpreter, layout)
        libraries = self._work / "wheels-macos"
        wheels.install_macos(self._uv, spec, libraries)
        copy_kept(files_below(libraries), layout.site_packages, wheel_rule(spec))
        restore_framework_links(layout.site_packages)
        for code in Bundle(app, spec).codes:
            thin(code.path)
        launcher.compile_for_macos(layout.executable, spec, self._tools_python)
        self._add_ours(layout)
        bytecode.compile_all(layout, bytecode.interpreter(self._uv, spec.python))
        sign_adhoc(app, self._tools_python)

    def twin(self, app: Path) -> None:
        """Make the unsigned bundle for this machine, with the interpreter that runs this code.

        Raises:
            NoRuntimeError: the interpreter has no shared library.
            FileNotFoundError: no C compiler is installed.
        """
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        layout = _empty(app, self._spec.name, version)
        runtime.copy_own(layout)
        installed = list(wheels.installed())
        copy_kept(installed, layout.site_packages, wheel_rule(self._spec, linux=True))
        bytecode.copy_installed(installed, layout.site_packages)
        launcher.compile_for_linux(layout.executable, version)
        self._add_ours(layout)
        # The other folders have the bytecode of their installation. To look at each file takes 2 s.
        ours = [layout.site_packages / name for name in OURS]
        bytecode.compile_all(layout, [sys.executable], ours)

    def _add_ours(self, layout: BundleLayout) -> None:
        for name in OURS:
            copy_kept(files_below(ROOT / name), layout.site_packages / name, _is_shipped)
        add_starter(layout, self._work)
        write_plist(layout.info_plist, self._spec)
        write_icns(ROOT / "resources" / "app-icon.svg", layout.resources / f"{ICON}.icns")
        collect(layout)
        self._name_version(layout)

    def _name_version(self, layout: BundleLayout) -> None:
        """Write the app's package metadata, from which importlib.metadata reads the version."""
        name = self._spec.name.lower()
        folder = layout.site_packages / f"{name}-{self._spec.version}.dist-info"
        folder.mkdir()
        lines = ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {self._spec.version}", "")
        (folder / "METADATA").write_text("\n".join(lines), encoding="utf-8")


def _empty(app: Path, name: str, python: str) -> BundleLayout:
    shutil.rmtree(app, ignore_errors=True)
    layout = BundleLayout(app, name, python)
    layout.resources.mkdir(parents=True)
    return layout


def _is_shipped(path: PurePosixPath) -> bool:
    return not set(path.parts[:-1]) & set(_NOT_SHIPPED)
