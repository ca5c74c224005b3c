"""The abilities of models: what test passes find out about a model, and the records of it.

Before the first request, probe.py tests what correctness needs: a model continues from restored
state as from its own, or it is refused. FasterWays are operations that only save time. They are
tested in idle time (WaysTest), and not used before.

The results depend only on the model's architecture and on the versions of the libraries, not on the
values of the weights. So they are recorded under a key of all that they depend on: in the process,
and in a folder if there is one. A model that is known is ready without a test pass. Use on the
engine thread.
"""

from __future__ import annotations

import hashlib
import json
import logging
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final, cast

import mlx.core as mx

from engine.cache.layout import Layout
from engine.models.adapter import ModelAdapter
from engine.models.draft_probe import merged_drafts_test, rewinding_test
from engine.models.opening import StageMemory, UntestedModel
from engine.models.probe import Steps, merging_test
from engine.models.quantised_kv import KvQuantisation
from engine.models.rewinding import Rewinding
from engine.plain_file import read_plain
from engine.whole_file import write_whole

log = logging.getLogger(__name__)

# Number of the tests. A change of a test that may change a result needs another number.
_TESTS = 2
# To look up a version reads files, which takes a millisecond.
_LIBRARIES = tuple(f"{name} {version(name)}" for name in ("mlx", "mlx-lm"))
# Highest number of bytes of a record. That of a model with 100 recurrent layers has 5 KB.
_MAX_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class FasterWays:
    """Operations on the caches of a model that give the results of plain passes in less time."""

    can_merge: bool = False  # True if one forward pass can serve several conversations
    # Rewinds recurrent states after a pass that verified drafts. None: no speculation.
    rewinding: Rewinding | None = None
    # True if one forward pass can verify drafts of several conversations.
    can_merge_drafts: bool = False


SAFE: Final = FasterWays()


@dataclass(frozen=True, slots=True)
class Abilities:
    """The results of the tests of a model."""

    # The layers that hold K/V and the layers that hold recurrent state, and their sizes in bytes.
    layout: Layout
    # The caches whose K/V can be quantised. None if the model is loaded without quantised K/V.
    quantisation: KvQuantisation | None = None
    ways: FasterWays | None = None  # None if they are not tested yet


class AbilityRecords:
    """The abilities of models that were tested before. A folder keeps them for later processes."""

    # The records of this process, of all engines. Key: see key_of.
    _known: ClassVar[dict[str, Abilities]] = {}

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self, key: str) -> Abilities | None:
        """Return the abilities under a key. None if there is no record, or a damaged one."""
        if key not in self._known and self._folder is not None:
            try:
                found = _parsed(read_plain(self._file(key), _MAX_BYTES), key)
            except FileNotFoundError:
                return None
            except (
                OSError,
                ValueError,
                TypeError,
                AttributeError,
                LookupError,
                RecursionError,
            ) as error:
                log.info("the record of a model's abilities is not used: %r", error)
                return None
            self._known[key] = found
        return self._known.get(key)

    def keep(self, key: str, abilities: Abilities) -> None:
        """Record abilities. A folder that cannot be written costs only the test of a later load."""
        self._known[key] = abilities
        if self._folder is None:
            return
        try:
            # Without its parents: a stage on another host has the path of a folder of this one.
            self._folder.mkdir(mode=0o700, exist_ok=True)
            write_whole(self._file(key), _content(abilities, key))
        except OSError as error:
            log.info("the abilities of a model are not recorded: %r", error)

    def _file(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{key}.json"


NO_RECORDS: Final = AbilityRecords(None)


def key_of(opened: UntestedModel, namespace: str) -> str:
    """Return a hash of all that the abilities of an opened model depend on.

    It covers config.json, the names, shapes and types of the parameters, the bits of K/V, the other
    stages, the device, and the versions of the libraries and of the tests.

    namespace: ModelOpener.namespace.
    """
    parts = [
        json.dumps(opened.config, sort_keys=True, default=str),
        *opened.adapter.form,
        f"K/V bits: {opened.kv_bits}",
        repr(opened.others),
        namespace,
        str(mx.default_device()),
        str(mx.device_info().get("device_name", "")),
        platform.machine(),
        *_LIBRARIES,
        f"tests {_TESTS}",
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


class WaysTest:
    """The test of a model's faster ways, in steps of a few passes."""

    def __init__(
        self,
        adapter: ModelAdapter,
        others: Sequence[StageMemory],
        on_found: Callable[[FasterWays], None],
    ) -> None:
        self._steps = _ways_test(adapter, others)
        self._on_found = on_found

    def step(self) -> bool:
        """Run a step. After the last one, pass the result on and return False."""
        try:
            next(self._steps)
        except StopIteration as end:
            self._on_found(cast("FasterWays", end.value))
            return False
        return True


def _ways_test(adapter: ModelAdapter, others: Sequence[StageMemory]) -> Steps[FasterWays]:
    can_merge = all(stage.can_merge for stage in others) and (yield from merging_test(adapter))
    # Drafts are verified by passes that are partly undone, which other stages do not.
    rewinding = None if others else (yield from rewinding_test(adapter))
    merges_drafts = False
    if can_merge and rewinding is not None:
        merges_drafts = yield from merged_drafts_test(adapter, rewinding)
    return FasterWays(can_merge=can_merge, rewinding=rewinding, can_merge_drafts=merges_drafts)


# The form of a record: JSON with a digest of its other fields, which a damaged record does not
# have.


def _content(abilities: Abilities, key: str) -> bytes:
    layout, quantisation, ways = abilities.layout, abilities.quantisation, abilities.ways
    fields: dict[str, object] = {
        "key": key,
        "layout": [
            layout.num_kv,
            layout.num_aux,
            layout.kv_bytes_per_token,
            layout.snapshot_bytes,
        ],
        "quantisation": quantisation and [quantisation.bits, *quantisation.group_sizes],
        "ways": ways
        and {
            "can_merge": ways.can_merge,
            "can_merge_drafts": ways.can_merge_drafts,
            "rewinding": ways.rewinding and ways.rewinding.as_numbers(),
        },
    }
    return json.dumps({**fields, "digest": _digest(fields)}).encode()


def _parsed(content: bytes, key: str) -> Abilities:
    """Return the abilities of a record.

    Raises:
        ValueError, TypeError, AttributeError, LookupError, RecursionError: the record is damaged.
    """
    fields: dict[str, Any] = json.loads(content)
    digest = fields.pop("digest")
    if digest != _digest(fields) or fields["key"] != key:
        raise ValueError("it is damaged or of another model")
    num_kv, num_aux, kv_bytes, snapshot_bytes = (int(number) for number in fields["layout"])
    layout = Layout(num_kv, num_aux, kv_bytes, snapshot_bytes)
    quantisation = None
    if fields["quantisation"] is not None:
        bits, *group_sizes = (int(number) for number in fields["quantisation"])
        quantisation = KvQuantisation(bits, tuple(group_sizes))
    ways = fields["ways"]
    if ways is None:
        return Abilities(layout, quantisation)
    sources = ways["rewinding"]
    return Abilities(
        layout,
        quantisation,
        FasterWays(
            can_merge=bool(ways["can_merge"]),
            rewinding=None if sources is None else Rewinding.of_numbers(sources),
            can_merge_drafts=bool(ways["can_merge_drafts"]),
        ),
    )


def _digest(fields: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
