"""Fuzz tests of the verifier: damaged files lead to reported problems, never to a crash."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from appbundle.codesign import read_signature, unbound, uncovered
from appbundle.macho import read_image, read_slices
from appbundle.reading import BundleError, span
from appbundle.verifier import report, verify
from tests.packaging.crafted import make_bundle
from tests.packaging.damaging import for_x86
from tests.packaging.machofile import MachO, fat
from tests.packaging.signing import rehashed
from tests.packaging.tree import Tree


def spoiled(data: bytes, chance: random.Random, within: int | None = None) -> bytes:
    """Return data with random bytes changed, sometimes truncated.

    If `within` is given, only the first `within` bytes change.
    """
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        if changed:
            end = min(len(changed), within or len(changed))
            changed[chance.randrange(end)] = chance.choice(
                (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
            )
    if chance.random() < 0.2:
        del changed[chance.randrange(len(changed) + 1) :]
    return bytes(changed)


def read_everything(data: bytes) -> None:
    for piece in read_slices(data):
        code = span(data, piece.offset, piece.size, piece.architecture)
        image = read_image(code)
        if image.signature is not None:
            signature = read_signature(code, image.signature)
            list(uncovered(code, image.signature, signature))
            list(unbound(signature, {}))


@pytest.mark.parametrize("seed", range(4))
def test_mach_o_file_with_random_bytes_is_read_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    whole = rehashed(MachO(name="@rpath/libx.dylib", rpaths=("@loader_path",)).written())
    signature = len(whole) - 600
    files = (whole, fat(for_x86(whole), whole))
    outcomes: Counter[str] = Counter()
    for _ in range(300):
        data = chance.choice(files)
        data = spoiled(data, chance, chance.choice((300, None)))
        if chance.random() < 0.5:
            data = data[:signature] + spoiled(data[signature:], chance)
        try:
            read_everything(data)
            outcomes["read"] += 1
        except BundleError:
            outcomes["refused"] += 1
    assert outcomes["read"] > 0
    assert outcomes["refused"] > 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return make_bundle(tmp_path_factory.mktemp("bundle"))


@pytest.mark.parametrize("seed", range(8))
def test_bundle_with_random_bytes_in_files_gets_a_report(
    seed: int, whole: Tree, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    tree = whole.copied(tmp_path)
    files = sorted(path for path in tree.layout.app.rglob("*") if path.is_file())
    described = [tree.layout.info_plist, tree.layout.contents / "_CodeSignature/CodeResources"]
    for _ in range(8):
        for path in (*chance.sample(files, 3), chance.choice(described)):
            tree.edit(path, lambda data: spoiled(data, chance))
        assert report(verify(tree.layout.app, tree.spec, tree.archives))
