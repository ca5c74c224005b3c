"""The Info.plist of the bundle, which macOS reads before it starts the app."""

from __future__ import annotations

import plistlib
from pathlib import Path

from appbundle.spec import Spec

ICON = "AppIcon"


def write_plist(path: Path, spec: Spec) -> None:
    path.write_bytes(plistlib.dumps(info(spec)))


def info(spec: Spec) -> dict[str, object]:
    return {
        "CFBundleDevelopmentRegion": "en",
        "CFBundleDisplayName": spec.name,
        "CFBundleDocumentTypes": _document_types(),
        "CFBundleExecutable": spec.name,
        "CFBundleIconFile": ICON,
        "CFBundleIdentifier": spec.identifier,
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleName": spec.name,
        "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": spec.version,
        "CFBundleSupportedPlatforms": ["MacOSX"],
        "CFBundleVersion": spec.version,
        "LSApplicationCategoryType": spec.category,
        "LSArchitecturePriority": ["arm64"],
        "LSMinimumSystemVersion": spec.min_macos,
        "LSRequiresNativeExecution": True,
        "NSHighResolutionCapable": True,
        "NSHumanReadableCopyright": spec.copyright,
        "NSLocalNetworkUsageDescription": spec.local_network,
        "NSPrincipalClass": "NSApplication",
        "NSSupportsAutomaticGraphicsSwitching": True,
        # This key opts out of the new design of macOS 26, because Qt's widgets have the earlier
        # one.
        "UIDesignRequiresCompatibility": True,
    }


def _document_types() -> list[dict[str, object]]:
    """Return the document types, with the rank Alternate: other apps stay the default for them."""
    return [
        {
            "CFBundleTypeName": "GGUF model",
            "CFBundleTypeExtensions": ["gguf"],
            "CFBundleTypeRole": "Viewer",
            "LSHandlerRank": "Alternate",
        },
        {
            "CFBundleTypeName": "Model folder",
            "LSItemContentTypes": ["public.folder"],
            "CFBundleTypeRole": "Viewer",
            "LSHandlerRank": "Alternate",
        },
        {
            "CFBundleTypeName": "Document to attach",
            "LSItemContentTypes": [
                "public.text",
                "com.adobe.pdf",
                "org.openxmlformats.wordprocessingml.document",
                "org.idpf.epub-container",
            ],
            "CFBundleTypeRole": "Viewer",
            "LSHandlerRank": "Alternate",
        },
    ]
