"""Checks of Info.plist and of the app icon. Finder and LaunchServices read both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from appbundle.bundle import Bundle
from appbundle.reading import about, mapping, read_bytes, read_plist, sequence, strings, unpack
from appbundle.spec import Spec

_FOLDER_TYPE = "public.folder"
_GGUF = "gguf"


def info_plist(bundle: Bundle) -> Iterator[str]:
    """Check that Info.plist has every required key, with the value from the specification."""
    facts = _read(bundle)
    for key, value in _expected(bundle.spec).items():
        if key not in facts:
            yield f"{key} is missing"
        elif (type(facts[key]), facts[key]) != (type(value), value):
            yield f"{key} is {facts[key]!r}, not {value!r}"
    version = facts.get("CFBundleVersion")
    if not isinstance(version, str) or not re.fullmatch(r"\d+(\.\d+){0,2}", version):
        yield f"CFBundleVersion is {version!r}, not up to three numbers with dots"


def document_types(bundle: Bundle) -> Iterator[str]:
    """Check that the app can open GGUF files and folders, and is not the default for folders."""
    facts = _read(bundle)
    types = [mapping(item) for item in sequence(facts.get("CFBundleDocumentTypes"))]
    ours = _gguf_types(facts)
    if not any(ours & set(_contents(item)) or _GGUF in _extensions(item) for item in types):
        yield "CFBundleDocumentTypes names no .gguf files, so they can't be opened with it"
    folders = [item for item in types if _FOLDER_TYPE in _contents(item)]
    if not folders:
        yield "CFBundleDocumentTypes names no folders, so a model folder can't be opened with it"
    for item in folders:
        if item.get("LSHandlerRank") not in ("Alternate", "None"):
            yield "it claims all folders: their LSHandlerRank is neither Alternate nor None"
    for item in types:
        if item.get("CFBundleTypeRole") not in ("Viewer", "Editor"):
            yield f"{item.get('CFBundleTypeName')!r} has no CFBundleTypeRole"


def icon(bundle: Bundle) -> Iterator[str]:
    """Check that the icon file exists and is complete."""
    named = _read(bundle).get("CFBundleIconFile")
    if not isinstance(named, str):
        yield "Info.plist names no CFBundleIconFile"
        return
    with about(named):
        data = read_bytes(bundle.layout.resources / f"{named.removesuffix('.icns')}.icns")
        (size,) = unpack(">I", data, 4, "header")
    if data[:4] != b"icns" or size != len(data):
        yield f"{named} is no whole .icns file"


def _read(bundle: Bundle) -> Mapping[str, object]:
    with about("Info.plist"):
        return read_plist(bundle.layout.info_plist)


def _expected(spec: Spec) -> Mapping[str, object]:
    """Return the required values of Info.plist by key.

    This list is separate from the builder's list, so that the check finds keys that the builder
    omits.
    """
    return {
        "CFBundleDevelopmentRegion": "en",
        "CFBundleDisplayName": spec.name,
        "CFBundleExecutable": spec.name,
        "CFBundleIdentifier": spec.identifier,
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleName": spec.name,
        "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": spec.version,
        "CFBundleSupportedPlatforms": ["MacOSX"],
        "LSApplicationCategoryType": spec.category,
        "LSArchitecturePriority": ["arm64"],
        "LSMinimumSystemVersion": spec.min_macos,
        "LSRequiresNativeExecution": True,
        "NSHighResolutionCapable": True,
        "NSHumanReadableCopyright": spec.copyright,
        "NSLocalNetworkUsageDescription": spec.local_network,
        "NSPrincipalClass": "NSApplication",
        "NSSupportsAutomaticGraphicsSwitching": True,
        "UIDesignRequiresCompatibility": True,
    }


def _contents(item: Mapping[str, object]) -> tuple[str, ...]:
    return strings(item.get("LSItemContentTypes"))


def _extensions(item: Mapping[str, object]) -> tuple[str, ...]:
    return strings(item.get("CFBundleTypeExtensions"))


def _gguf_types(facts: Mapping[str, object]) -> set[str]:
    """Return the type identifiers that Info.plist declares for .gguf files."""
    found: set[str] = set()
    for key in ("UTImportedTypeDeclarations", "UTExportedTypeDeclarations"):
        for declared in map(mapping, sequence(facts.get(key))):
            tags = mapping(declared.get("UTTypeTagSpecification"))
            if _GGUF in strings(tags.get("public.filename-extension")):
                found.add(str(declared.get("UTTypeIdentifier")))
    return found
