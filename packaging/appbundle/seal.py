"""Reads and verifies the seal of a bundle, the file Contents/_CodeSignature/CodeResources.

The seal is a property list with a hash for every file. A name is a path relative to Contents. This
module reads only version 2 of the entries and rules (files2, rules2).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appbundle.codesign import read_signature
from appbundle.macho import read_image, read_slices
from appbundle.reading import BundleError, mapping, read_bytes, read_plist, span

FOLDER: Final = "_CodeSignature"
# Patterns of the files that codesign omits from a seal. A seal with other omissions is reported,
# because omitted files are not protected.
_OMITTED: Final = frozenset(
    {
        r"^(.*/)?\.DS_Store$",
        r"^Info\.plist$",
        r"^PkgInfo$",
        r"^Resources/.*\.lproj/locversion.plist$",
    }
)
_DEFAULT_WEIGHT: Final = 1.0


@dataclass(frozen=True, slots=True)
class SealedFile:
    """An entry for a file. An optional file, such as a translation, may be missing."""

    sha256: bytes
    optional: bool


@dataclass(frozen=True, slots=True)
class SealedLink:
    """An entry for a symbolic link. The link in the bundle must have the target `target`."""

    target: str


@dataclass(frozen=True, slots=True)
class SealedCode:
    """An entry for signed code. `cdhash` is the hash of a code directory in the signature."""

    cdhash: bytes


Sealed = SealedFile | SealedLink | SealedCode


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a seal for files with matching names: omit them if `omits` is True, else seal them.

    If several rules match a name, the rule with the largest weight applies.
    """

    pattern: re.Pattern[str]
    omits: bool
    weight: float


@dataclass(frozen=True, slots=True)
class Seal:
    """The seal of a bundle: its entries by name, and the rules for names without an entry."""

    entries: Mapping[str, Sealed]
    rules: tuple[Rule, ...]

    def omits(self, name: str) -> bool:
        matching = [rule for rule in self.rules if rule.pattern.search(name)]
        return bool(matching) and max(matching, key=lambda rule: rule.weight).omits


def read_seal(contents: Path) -> Seal:
    """Read the seal of a bundle or framework.

    `contents` is the bundle's folder Contents, or a folder such as Versions/A of a framework.

    Raises:
        BundleError: the seal is missing or malformed.
    """
    resources = read_plist(contents / FOLDER / "CodeResources")
    if "files2" not in resources or "rules2" not in resources:
        raise BundleError("holds no files2 with rules2")
    entries = {name: _entry(value) for name, value in mapping(resources["files2"]).items()}
    rules = tuple(_rule(name, value) for name, value in mapping(resources["rules2"]).items())
    return Seal(entries, rules)


def breaks(seal: Seal, contents: Path, there: Set[str], unsealed: str) -> Iterator[str]:
    """Yield a sentence for each difference between the folder `contents` and its seal.

    `there` is the set of names of all files and symbolic links in the folder. `unsealed` is the
    name of the executable, which has no entry in the seal.
    """
    for rule in seal.rules:
        if rule.omits and rule.pattern.pattern not in _OMITTED:
            yield f"{FOLDER} leaves out {rule.pattern.pattern}, which it should seal"
    for name, sealed in seal.entries.items():
        problem = _difference(contents / name, sealed, is_there=name in there)
        if problem is not None:
            yield f"{name} {problem}"
    for name in sorted(there - seal.entries.keys()):
        if name != unsealed and not name.startswith(f"{FOLDER}/") and not seal.omits(name):
            yield f"{name} is not sealed"


def _difference(path: Path, sealed: Sealed, *, is_there: bool) -> str | None:
    if not is_there:
        optional = isinstance(sealed, SealedFile) and sealed.optional
        return None if optional else "is sealed and missing"
    if isinstance(sealed, SealedLink):
        same = path.is_symlink() and str(path.readlink()) == sealed.target
        return None if same else f"is no longer a link to {sealed.target}"
    if path.is_symlink():
        return "became a link after sealing"
    if isinstance(sealed, SealedCode):
        return None if sealed.cdhash in _cdhashes(path) else "is not the code that was sealed"
    same = _sha256(path) == sealed.sha256
    return None if same else "changed after sealing"


def _sha256(path: Path) -> bytes:
    with path.open("rb") as file:  # hash in chunks, because models and Metal libraries are large
        return hashlib.file_digest(file, "sha256").digest()


def _cdhashes(path: Path) -> set[bytes]:
    data = read_bytes(path)
    found: set[bytes] = set()
    for piece in read_slices(data):
        code = span(data, piece.offset, piece.size, piece.architecture)
        signature = read_image(code).signature
        if signature is not None:
            directories = read_signature(code, signature).directories
            found.update(directory.cdhash for directory in directories)
    return found


def _entry(value: object) -> Sealed:
    facts = mapping(value)
    target, digest, cdhash = facts.get("symlink"), facts.get("hash2"), facts.get("cdhash")
    if isinstance(target, str):
        return SealedLink(target)
    if isinstance(digest, bytes):
        return SealedFile(digest, facts.get("optional") is True)
    if isinstance(cdhash, bytes):
        return SealedCode(cdhash)
    raise BundleError("holds an entry of no known kind")


def _rule(pattern: str, value: object) -> Rule:
    facts: Mapping[str, object] = {} if isinstance(value, bool) else mapping(value)
    weight = facts.get("weight", _DEFAULT_WEIGHT)
    if not isinstance(weight, int | float):
        raise BundleError("holds a rule whose weight is no number")
    try:
        compiled = re.compile(pattern)
    except re.error:
        raise BundleError("holds a rule that is no pattern") from None
    return Rule(compiled, facts.get("omit") is True, float(weight))
