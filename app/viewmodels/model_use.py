"""The state and buttons of a model on this machine: loading, loaded, or ready to be used. No Qt."""

from __future__ import annotations

from dataclasses import replace

from app.viewmodels import figures
from app.viewmodels.models import ModelPhase, ModelStatus, state_word
from app.viewmodels.offer import ModelsState, Offer, OfferAction
from app.words import hub as words, models as states


def is_in_use(path: str, status: ModelStatus) -> bool:
    """Return True if a model is loaded or being loaded, or the next message loads it."""
    return path == status.path and (status.will_be_ready or status.phase is ModelPhase.READY)


def with_use(offer: Offer, path: str, state: ModelsState) -> Offer:
    """Add the state of a model, and the button that loads or unloads it.

    Args:
        offer: the row.
        path: the folder of the model, or a GGUF file.
        state: the state of models and downloads.
    """
    status = state.status
    if path in state.imports:
        fraction = state.imports[path]
        percent = words.importing(figures.percent(fraction))
        return replace(offer, state=percent, fraction=fraction, actions=())
    if not is_in_use(path, status):
        return replace(offer, actions=(OfferAction.USE,))
    if status.will_be_ready:
        return replace(offer, state=state_word(status), fraction=status.fraction, actions=())
    if status.is_unloaded:
        return replace(offer, state=states.UNLOADED, actions=(OfferAction.USE,))
    # Unloading the model would cut off a running answer.
    actions = () if state.is_answering else (OfferAction.UNLOAD,)
    return replace(offer, state=states.LOADED, actions=actions)
