"""The abilities of models, which test passes find when a model is loaded.

The tests take dozens of passes (probe.py, draft_probe.py). So the results are kept until the process
ends: a model that is loaded again, after another one or after a rest, is ready without a pass. Use
on the engine thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.cache.layout import Layout
from engine.models.adapter import ModelAdapter
from engine.models.draft_probe import can_merge_drafts, find_rewinding
from engine.models.opening import StageMemory
from engine.models.probe import can_merge, probe
from engine.models.rewinding import Rewinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """Operations on the caches of a model that give the results of plain passes."""

    # The layers that hold K/V and the layers that hold recurrent state, and their sizes in bytes.
    layout: Layout
    can_merge: bool  # True if one forward pass can serve several conversations
    # Rewinds recurrent states after a pass that verified drafts. None: no speculation.
    rewinding: Rewinding | None
    # True if one forward pass can verify drafts of several conversations.
    can_merge_drafts: bool


# Key: see `namespace` of find_abilities.
_found: dict[str, Abilities] = {}


def find_abilities(
    adapter: ModelAdapter, others: Sequence[StageMemory], namespace: str
) -> Abilities:
    """Return the abilities of a loaded model.

    Args:
        adapter: the model.
        others: the other stages, if the model is divided. Its results are not kept.
        namespace: the result of loader.namespace_of. Two loads with the same namespace have the
            same abilities. Empty: the model is tested in any case.

    Raises:
        StateError: the model gives other results after its state was restored.
    """
    if others or not namespace:
        return _test(adapter, others)
    if namespace not in _found:
        _found[namespace] = _test(adapter, others)
    return _found[namespace]


def _test(adapter: ModelAdapter, others: Sequence[StageMemory]) -> Abilities:
    layout = probe(adapter)
    merges = all(stage.can_merge for stage in others) and can_merge(adapter)
    # Drafts are verified by passes that are partly undone, which other stages do not.
    rewinding = None if others else find_rewinding(adapter)
    return Abilities(
        layout=layout,
        can_merge=merges,
        rewinding=rewinding,
        can_merge_drafts=merges and rewinding is not None and can_merge_drafts(adapter, rewinding),
    )
