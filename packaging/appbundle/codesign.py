"""Reads the code signature inside a Mach-O file, and compares its hashes with the files.

A signature has one code directory for each hash type. A code directory has one hash for each page
of code and one hash for each special slot. The hash in a special slot binds the signature to a file
such as Info.plist. This module reads ad-hoc and Developer ID signatures. It does not check the
identity of the signer (the CMS part).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from appbundle.macho import ByteSpan
from appbundle.reading import BundleError, Bytes, span, text, unpack

# Numbers of the special slots. A special slot has the hash of data other than code.
INFO_PLIST: Final = 1
REQUIREMENTS: Final = 2
RESOURCES: Final = 3
ENTITLEMENTS: Final = 5
ENTITLEMENTS_DER: Final = 7
# Special slots whose data is inside the signature. The data of other slots is in files.
_INSIDE: Final = (REQUIREMENTS, ENTITLEMENTS, ENTITLEMENTS_DER)
_SLOT_NAMES: Final = {
    INFO_PLIST: "Info.plist",
    REQUIREMENTS: "requirements",
    RESOURCES: "CodeResources",
    ENTITLEMENTS: "entitlements",
    ENTITLEMENTS_DER: "binary entitlements",
}

# Bits of the field `flags` of a code directory.
AD_HOC: Final = 0x2
RUNTIME: Final = 0x10000
LINKER_SIGNED: Final = 0x20000

_SUPER_BLOB: Final = 0xFADE0CC0
_CODE_DIRECTORY: Final = 0xFADE0C02
_DIRECTORY_SLOTS: Final = (0, *range(0x1000, 0x1005))  # slots that can have a code directory
_MOST_BLOBS: Final = 64  # maximum number of blobs; a signature with a larger count is malformed
_CDHASH_BYTES: Final = 20  # length of a cdhash, the hash of a code directory
# Key: hash type. Value: the hash function, and the number of bytes in a stored hash.
_HASHES: Final[Mapping[int, tuple[Callable[[Bytes], bytes], int]]] = {
    1: (lambda data: hashlib.sha1(data, usedforsecurity=False).digest(), 20),
    2: (lambda data: hashlib.sha256(data).digest(), 32),
    3: (lambda data: hashlib.sha256(data).digest(), 20),
    4: (lambda data: hashlib.sha384(data).digest(), 48),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeDirectory:
    """The hashes of a signature. If `page_bytes` is 0, one hash covers the whole code."""

    identifier: str
    flags: int
    hash_type: int  # key of _HASHES
    page_bytes: int
    code_limit: int  # end offset of the code that the hashes cover
    pages: tuple[bytes, ...]
    slots: Mapping[int, bytes]  # Key: number of a special slot. Value: hash of its data.
    cdhash: bytes  # hash of the code directory itself

    def hash(self, data: Bytes) -> bytes:
        function, kept = _HASHES[self.hash_type]
        return function(data)[:kept]


@dataclass(frozen=True, slots=True)
class Signature:
    """A code signature: its code directories, one for each hash type, and its blobs by slot."""

    directories: tuple[CodeDirectory, ...]
    blobs: Mapping[int, Bytes]

    @property
    def flags(self) -> int:
        return self.directories[0].flags


def read_signature(code: Bytes, where: ByteSpan) -> Signature:
    """Read the signature in the byte range `where` of a slice.

    Raises:
        BundleError: the signature is truncated, malformed or of an unknown kind.
    """
    data = span(code, where.offset, where.size, "signature")
    magic, _, count = unpack(">3I", data, 0, "signature")
    if magic != _SUPER_BLOB or count > _MOST_BLOBS:
        raise BundleError("has a malformed signature")
    blobs: dict[int, Bytes] = {}
    for number in range(count):
        slot, offset = unpack(">2I", data, 12 + 8 * number, "signature")
        _, size = unpack(">2I", data, offset, "signature")
        blobs[slot] = span(data, offset, size, "signature")
    directories = tuple(_directory(blobs[slot]) for slot in _DIRECTORY_SLOTS if slot in blobs)
    if not directories:
        raise BundleError("has a signature without a code directory")
    return Signature(directories, blobs)


def uncovered(code: Bytes, where: ByteSpan, signature: Signature) -> Iterator[str]:
    """Yield a sentence for each difference between the code and the hashes in its signature."""
    if where.offset + where.size != len(code):
        yield f"{len(code) - where.offset - where.size} bytes follow the signature"
    for directory in signature.directories:
        if directory.code_limit != where.offset:
            yield f"the signature covers {directory.code_limit} of {where.offset} bytes"
            continue
        page = directory.page_bytes or max(1, directory.code_limit)
        if len(directory.pages) != -(-directory.code_limit // page):
            yield f"the signature holds {len(directory.pages)} page hashes, which are not enough"
            continue
        for number, expected in enumerate(directory.pages):
            end = min((number + 1) * page, directory.code_limit)
            if directory.hash(code[number * page : end]) != expected:
                yield f"the code was changed after signing, first in bytes {number * page} to {end}"
                break


def unbound(signature: Signature, outside: Mapping[int, Bytes]) -> Iterator[str]:
    """Yield a sentence for each special slot with a hash that does not match the slot's data.

    The data is either a blob of the signature or the content of a file. `outside` has the contents
    of the files by slot.
    """
    belonging = {**{slot: signature.blobs.get(slot) for slot in _INSIDE}, **outside}
    for directory in signature.directories:
        for slot, data in belonging.items():
            signed = directory.slots.get(slot)
            if data is None and signed is not None:
                yield f"the signature is bound to {_SLOT_NAMES[slot]} that it does not hold"
            elif data is not None and signed is None:
                yield f"the signature is not bound to its {_SLOT_NAMES[slot]}"
            elif data is not None and signed != directory.hash(data):
                yield f"the {_SLOT_NAMES[slot]} changed after signing"


def _directory(blob: Bytes) -> CodeDirectory:
    what = "code directory"
    magic, _, _, flags, hashes_at, identifier_at, num_slots, num_pages, limit = unpack(
        ">9I", blob, 0, what
    )
    hash_bytes, hash_type, _, page_shift = unpack(">4B", blob, 36, what)
    if magic != _CODE_DIRECTORY or hash_type not in _HASHES or page_shift > 20:
        raise BundleError("has a malformed code directory")
    if hash_bytes != _HASHES[hash_type][1]:
        raise BundleError("has a code directory whose hashes have the wrong length")
    # The table begins with the hashes of the special slots, highest slot number first. The hashes
    # of the pages follow, from the offset `hashes_at` on.
    table = span(
        blob,
        hashes_at - num_slots * hash_bytes if hashes_at >= num_slots * hash_bytes else len(blob),
        (num_slots + num_pages) * hash_bytes,
        what,
    )
    hashes = [bytes(table[at : at + hash_bytes]) for at in range(0, len(table), hash_bytes)]
    slots = {num_slots - number: value for number, value in enumerate(hashes[:num_slots])}
    function, _ = _HASHES[hash_type]
    return CodeDirectory(
        identifier=text(blob[identifier_at:], "identifier"),
        flags=flags,
        hash_type=hash_type,
        page_bytes=1 << page_shift if page_shift else 0,
        code_limit=limit,
        pages=tuple(hashes[num_slots:]),
        slots={slot: value for slot, value in slots.items() if any(value)},
        cdhash=function(blob)[:_CDHASH_BYTES],
    )
