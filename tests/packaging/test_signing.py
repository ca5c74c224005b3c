"""Tests of signatures and seals of kinds that the crafted bundle does not have."""

from __future__ import annotations

import hashlib
import plistlib
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest

from appbundle.codesign import ENTITLEMENTS, INFO_PLIST, Signature, read_signature, unbound
from appbundle.macho import read_image
from appbundle.reading import BundleError
from appbundle.seal import breaks, read_seal
from tests.packaging.machofile import MachO
from tests.packaging.signing import RULES, rehashed


def signature_of(data: bytes) -> Signature:
    where = read_image(data).signature
    assert where is not None
    return read_signature(data, where)


def test_read_signature_returns_hashes_and_flags() -> None:
    data = rehashed(MachO(identifier="org.example.x", flags=0x10000).written())

    signature = signature_of(data)

    (directory,) = signature.directories
    assert directory.identifier == "org.example.x"
    assert signature.flags == 0x10000
    assert directory.page_bytes == 4096
    assert directory.pages == (
        hashlib.sha256(data[:4096]).digest(),
        hashlib.sha256(data[4096:6144]).digest(),
    )
    assert directory.slots == {2: hashlib.sha256(signature.blobs[2]).digest()}
    assert list(unbound(signature, {})) == []


def test_signature_without_info_plist_hash_is_reported() -> None:
    signature = signature_of(rehashed(MachO().written()))

    assert list(unbound(signature, {INFO_PLIST: b"x"})) == [
        "the signature is not bound to its Info.plist"
    ]


def test_entitlements_removed_from_a_signature_are_reported() -> None:
    data = bytearray(rehashed(MachO().written()))
    requirements = data.index(hashlib.sha256(struct.pack(">3I", 0xFADE0C01, 12, 0)).digest())
    at = requirements - (ENTITLEMENTS - 2) * 32
    data[at : at + 32] = b"x" * 32

    assert list(unbound(signature_of(bytes(data)), {})) == [
        "the signature is bound to entitlements that it does not hold"
    ]


@dataclass(frozen=True, slots=True)
class SealedFolder:
    """A folder in which a test writes a seal and verifies it."""

    contents: Path

    def seal(self, files: dict[str, object]) -> None:
        folder = self.contents / "_CodeSignature"
        folder.mkdir(exist_ok=True)
        content = {"files2": files, "rules2": RULES}
        (folder / "CodeResources").write_bytes(plistlib.dumps(content))

    def breaks(self) -> list[str]:
        there = {
            path.relative_to(self.contents).as_posix()
            for path in self.contents.rglob("*")
            if not path.is_dir()
        }
        return list(breaks(read_seal(self.contents), self.contents, there, "MacOS/x"))


@pytest.fixture
def sealed(tmp_path: Path) -> SealedFolder:
    return SealedFolder(tmp_path)


def test_missing_optional_file_does_not_break_the_seal(sealed: SealedFolder) -> None:
    sealed.seal({"Resources/de.lproj/x.strings": {"hash2": bytes(32), "optional": True}})

    assert sealed.breaks() == []


def test_sealed_code_is_compared_by_its_cdhash(sealed: SealedFolder) -> None:
    data = rehashed(MachO().written())
    (directory,) = signature_of(data).directories
    (sealed.contents / "helper").write_bytes(data)

    sealed.seal({"helper": {"cdhash": directory.cdhash, "requirement": "cdhash"}})
    assert sealed.breaks() == []

    (sealed.contents / "helper").write_bytes(rehashed(MachO(oldest=(12, 0)).written()))
    assert sealed.breaks() == ["helper is not the code that was sealed"]


def test_files_that_codesign_omits_need_no_seal(sealed: SealedFolder) -> None:
    sealed.seal({})
    for name in ("Info.plist", "PkgInfo", ".DS_Store", "MacOS/x"):
        path = sealed.contents / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")

    assert sealed.breaks() == []


def test_sealed_path_outside_the_bundle_counts_as_missing(sealed: SealedFolder) -> None:
    sealed.seal({"../../outside": {"hash2": bytes(32)}})

    assert sealed.breaks() == ["../../outside is sealed and missing"]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"files2": {"x": {}}, "rules2": {}},
        {"files2": {"x": 1}, "rules2": {}},
        {"files2": {}, "rules2": {"(": True}},
        {"files2": {}, "rules2": {"x": {"weight": "heavy"}}},
    ],
)
def test_malformed_seal_is_refused(content: dict[str, object], sealed: SealedFolder) -> None:
    sealed.seal({})
    path = sealed.contents / "_CodeSignature" / "CodeResources"
    path.write_bytes(plistlib.dumps(content))

    with pytest.raises(BundleError):
        sealed.breaks()
