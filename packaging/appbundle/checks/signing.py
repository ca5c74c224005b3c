"""Checks of the signatures and the seal, which macOS verifies before it runs the app."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from appbundle.bundle import Bundle, Code
from appbundle.codesign import (
    AD_HOC,
    ENTITLEMENTS,
    INFO_PLIST,
    LINKER_SIGNED,
    RESOURCES,
    RUNTIME,
    Signature,
    read_signature,
    unbound,
    uncovered,
)
from appbundle.macho import ByteSpan
from appbundle.reading import BundleError, Bytes, about, parse_plist, read_bytes
from appbundle.seal import FOLDER, breaks, read_seal

_KEEPS_LIBRARIES = "com.apple.security.cs.disable-library-validation"
_BLOB_HEADER_BYTES = 8


def signed(bundle: Bundle) -> Iterator[str]:
    """Check that all code is signed. Apple silicon runs no unsigned code."""
    for code, image in bundle.images:
        if image.signature is None:
            yield f"{bundle.name(code.path)} is not signed"
        else:
            try:
                read_signature(code.arm64_bytes(), image.signature)
            except BundleError as error:
                yield f"{bundle.name(code.path)} {error}"


def code_hashes(bundle: Bundle) -> Iterator[str]:
    """Check that each page of code has the hash that is stored in the signature."""
    for code, where, data, signature in _signatures(bundle):
        for problem in uncovered(data, where, signature):
            yield f"{bundle.name(code.path)}: {problem}"


def bound_files(bundle: Bundle) -> Iterator[str]:
    """Check the files and data that a signature covers: Info.plist, seal, entitlements and so on.

    These files and data must have the hashes that are stored in the signature.
    """
    for code, _, _, signature in _signatures(bundle):
        for problem in unbound(signature, _outside(bundle, code.path, signature)):
            yield f"{bundle.name(code.path)}: {problem}"


def signing_flags(bundle: Bundle) -> Iterator[str]:
    """Check that the executable has this app's identifier and may load the bundle's libraries."""
    for code, _, _, signature in _signatures(bundle):
        if code.path != bundle.layout.executable:
            continue
        name = bundle.name(code.path)
        for directory in signature.directories:
            if directory.identifier != bundle.spec.identifier:
                yield f"{name} is signed as {directory.identifier}, not as {bundle.spec.identifier}"
        if signature.flags & LINKER_SIGNED:
            yield f"{name} has only the signature of its linker"
        # A program with the hardened runtime loads only libraries that are signed by its own team.
        # An ad-hoc signature has no team, so such a program could load no library.
        if signature.flags & AD_HOC and signature.flags & RUNTIME and not _is_lenient(signature):
            yield f"{name} has the hardened runtime without a team: none of its libraries would load"


def seal(bundle: Bundle) -> Iterator[str]:
    """Check that no file was changed, added or removed after the bundle was signed."""
    layout = bundle.layout
    for path in layout.app.iterdir():
        if path != layout.contents:
            yield f"{path.name} lies beside Contents, where nothing can be sealed"
    yield from _breaks(bundle, layout.contents, layout.executable)
    for folder in bundle.folders:
        contents = folder / "Versions" / "A"
        if folder.suffix == ".framework" and contents / FOLDER in bundle.folders:
            yield from _breaks(bundle, contents, contents / folder.stem)


def _breaks(bundle: Bundle, contents: Path, executable: Path) -> Iterator[str]:
    name = bundle.name(contents)
    with about(f"{name}/{FOLDER}/CodeResources"):
        sealed = read_seal(contents)
    there = bundle.below(contents).keys()
    for problem in breaks(sealed, contents, there, executable.relative_to(contents).as_posix()):
        yield f"{name}/{problem}"


def _signatures(bundle: Bundle) -> Iterator[tuple[Code, ByteSpan, Bytes, Signature]]:
    for code, image in bundle.images:
        if image.signature is None:
            continue
        data = code.arm64_bytes()
        try:
            yield code, image.signature, data, read_signature(data, image.signature)
        except BundleError:
            continue  # signed() reports the malformed signature


def _outside(bundle: Bundle, path: Path, signature: Signature) -> Mapping[int, Bytes]:
    """Return the content of files that a signature covers, such as Info.plist, by slot number.

    `path` is the file with the signed code.
    """
    layout = bundle.layout
    if path == layout.executable:
        places = {
            INFO_PLIST: layout.info_plist,
            RESOURCES: layout.contents / FOLDER / "CodeResources",
        }
        with about("what the executable is bound to"):
            return {slot: read_bytes(place) for slot, place in places.items()}
    places = {
        INFO_PLIST: path.parent / "Resources" / "Info.plist",
        RESOURCES: path.parent / FOLDER / "CodeResources",
    }
    bound = signature.directories[0].slots
    return {
        slot: read_bytes(place)
        for slot, place in places.items()
        if slot in bound and place.is_file()
    }


def _is_lenient(signature: Signature) -> bool:
    blob = signature.blobs.get(ENTITLEMENTS)
    return blob is not None and parse_plist(blob[_BLOB_HEADER_BYTES:]).get(_KEEPS_LIBRARIES) is True
