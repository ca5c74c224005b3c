"""The rows of the Models window: suggestions, found models, models on this machine. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from app.hub.values import (
    Download,
    DownloadState,
    FoundModel,
    RepoDetails,
    typical_choice,
)
from app.viewmodels import figures
from app.viewmodels.days import days_ago
from app.viewmodels.download_offers import download_offer
from app.viewmodels.fit import speed_text, verdict_text
from app.viewmodels.model_use import is_in_use, with_use
from app.viewmodels.models import describe
from app.viewmodels.offer import COPY_BITS, ModelsState, Offer, OfferAction
from app.words import hub as words, models as model_words
from engine.catalog.choose import ModelSuggestion
from engine.catalog.fit import Fit, FitVerdict
from engine.catalog.installed import InstalledModel
from engine.model_titles import model_title
from engine.problem import Problem

_FULL_BITS = 16  # bits per weight of a model in full precision


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCopy:
    """A smaller copy of a model that is being made, or could not be made."""

    bits: int  # bits per weight
    fraction: float | None  # progress, 0 to 1; None if it ended
    problem: Problem | None = None  # the reason why it could not be made


def suggestion_offers(
    suggestions: tuple[ModelSuggestion, ...], state: ModelsState
) -> tuple[Offer, ...]:
    """Return a row for each suggested model, in their order.

    Args:
        suggestions: the models. Those that suit this machine come first.
        state: the state of models and downloads.
    """
    offers: list[Offer] = []
    for model in suggestions:
        suits = words.RANKS[model.purpose, model.rank]
        description = words.joined(
            suits if model.suits else words.for_memory(model.memory_gb),
            figures.file_size(model.size_bytes),
            model.parameters,
            words.bits(str(model.bits)),
            model.repo_id,
        )
        offer = Offer(
            key=model.repo_id,
            title=model_title(model.repo_id),
            description=description,
            sentence=model.why,
            actions=(OfferAction.DOWNLOAD,),
        )
        offers.append(_with_progress(offer, state))
    return tuple(offers)


def found_offers(
    found: tuple[FoundModel, ...],
    details: Mapping[str, RepoDetails | Problem | None],
    fits: Mapping[str, Fit | Problem],
    state: ModelsState,
) -> tuple[Offer, ...]:
    """Return a row for each model of a search.

    Args:
        found: the models.
        details: the details of repositories. None: the Hub is being asked.
        fits: the fit of a model, or the reason why it cannot run here, by repository.
        state: the state of models and downloads.
    """
    return tuple(
        _with_progress(
            _with_details(
                _found_offer(model, details.get(model.repo_id), state), details, fits, state
            ),
            state,
        )
        for model in found
    )


def _found_offer(
    found: FoundModel, known: RepoDetails | Problem | None, state: ModelsState
) -> Offer:
    updated = date.fromisoformat(found.updated) if found.updated else None
    description = words.joined(
        words.bits(found.bits),
        words.kind(is_mlx=found.is_mlx),
        model_words.SEES if _sees(found, known, state) else "",
        "" if updated is None else words.updated(days_ago(updated, state.today)),
        words.downloads(found.downloads),
        found.licence,
        words.GATED if found.is_gated else "",
    )
    return Offer(
        key=found.repo_id,
        title=model_title(found.repo_id),
        description=words.lines(description, found.repo_id),
    )


def _sees(found: FoundModel, known: RepoDetails | Problem | None, state: ModelsState) -> bool:
    """Return True if a model sees pictures, by the best source that is there.

    The files on this machine tell for certain, then config.json, then the tags of the search.
    """
    card = state.cards.get(found.repo_id)
    if card is not None:
        return card.sees
    return known.found.sees if isinstance(known, RepoDetails) else found.sees


def _with_details(
    offer: Offer,
    details: Mapping[str, RepoDetails | Problem | None],
    fits: Mapping[str, Fit | Problem],
    state: ModelsState,
) -> Offer:
    """Add what the Hub has answered about a model, unless the model is on this machine."""
    if offer.key in state.cards:
        return offer
    if offer.key not in details:
        return replace(offer, actions=(OfferAction.SHOW,))
    match details[offer.key]:
        case None:
            return replace(offer, sentence=words.CHECKING)
        case Problem() as problem:
            sentence = words.spaced(problem.cause, problem.advice)
            return replace(offer, sentence=sentence, actions=(OfferAction.ASK_AGAIN,))
        case RepoDetails() as known:
            return _described(offer, known, fits.get(offer.key))


def _described(offer: Offer, known: RepoDetails, fit: Fit | Problem | None) -> Offer:
    measured = typical_choice(known.choices)
    if known.files:
        offer = _with_size(offer, known.size_bytes)
        match fit:
            case None:
                actions = (OfferAction.DOWNLOAD,)
                return replace(offer, sentence=words.CHECKING_FIT, actions=actions)
            case Problem():
                return replace(offer, sentence=fit.cause)
            case Fit(verdict=verdict):
                sentence = words.fit_of(verdict_text(fit), speed_text(fit))
                fits = verdict is not FitVerdict.TOO_LARGE
                return replace(
                    offer, sentence=sentence, actions=(OfferAction.DOWNLOAD,) if fits else ()
                )
    if measured is not None:
        offer = _with_size(offer, measured.size_bytes)
    if known.choices and isinstance(fit, Problem):
        return replace(offer, sentence=fit.cause)
    if known.choices:
        choices = tuple(
            (file.path, words.joined(file.path, figures.file_size(file.size_bytes)))
            for file in known.choices
        )
        if isinstance(fit, Fit) and measured is not None:
            sentence = words.fit_of(verdict_text(fit), speed_text(fit), measured.path)
            offer = replace(offer, sentence=sentence)
        return replace(offer, actions=(OfferAction.CHOOSE_FILE,), choices=choices)
    return replace(offer, sentence=words.SENTENCES["no_model"][0])


def _with_size(offer: Offer, size_bytes: int) -> Offer:
    size = words.joined(figures.file_size(size_bytes), offer.description)
    return replace(offer, description=size)


def _with_progress(offer: Offer, state: ModelsState) -> Offer:
    """Show the download of a model, or the model itself if it is complete."""
    card = state.cards.get(offer.key)
    download = next((one for one in state.downloads if one.repo_id == offer.key), None)
    is_done = download is None or download.state is DownloadState.DONE
    if card is not None and is_done:
        on_disk = replace(offer, state=words.ON_THIS_COMPUTER)
        return with_use(on_disk, str(card.path), state)
    if download is None or is_done:
        return offer
    shown = download_offer(download, state.now)
    return replace(
        offer,
        sentence=shown.sentence or offer.sentence,
        state=shown.state,
        fraction=shown.fraction,
        actions=shown.actions,
    )


def local_offers(
    models: tuple[InstalledModel, ...], copies: Mapping[str, ModelCopy], state: ModelsState
) -> tuple[Offer, ...]:
    """Return a row for each model on the disk: usable ones by size, downloads, then unusable ones.

    Args:
        models: the models.
        copies: the copies that are being made or failed, by the path of the model.
        state: the state of models and downloads. What has arrived of a download may already be
            one of the models, with missing files.
    """
    arriving = [one for one in state.downloads if one.state is not DownloadState.DONE]
    ordered = sorted(models, key=lambda one: -one.size_bytes)
    unusable = [one for one in ordered if not _can_be_used(one)]
    return (
        *(
            _with_copy(_local_offer(one, state), copies.get(str(one.path)))
            for one in ordered
            if _can_be_used(one)
        ),
        *(download_offer(download, state.now) for download in arriving),
        *(_unusable_offer(one, state) for one in unusable if not _is_arriving(one, arriving)),
    )


def _can_be_used(model: InstalledModel) -> bool:
    return model.is_complete and (model.card is None or model.card.usable)


def _is_arriving(model: InstalledModel, arriving: list[Download]) -> bool:
    """Return True if the files of an incomplete model are a part of a download."""
    return any(one.repo_id == model.repo_id for one in arriving)


def _with_copy(offer: Offer, copy: ModelCopy | None) -> Offer:
    """Show the copy of a model that is being made, or why it could not be made."""
    if copy is None:
        return offer
    if copy.problem is not None:
        problem = copy.problem
        sentence = words.spaced(problem.title, problem.cause, problem.advice)
        return replace(offer, sentence=sentence)
    fraction = copy.fraction or 0.0
    return replace(
        offer,
        state=words.copying(copy.bits, figures.percent(fraction)),
        fraction=fraction,
        actions=(OfferAction.CANCEL_COPY,),
        more=(OfferAction.REVEAL,),
    )


def _unusable_offer(model: InstalledModel, state: ModelsState) -> Offer:
    """Return the row of files that cannot be loaded: the reason, and Remove as a button."""
    problem = None if model.card is None else model.card.problem
    reason = words.INCOMPLETE if problem is None else words.spaced(problem.cause, problem.advice)
    offer = _local_offer(model, state)
    removes = not offer.keeps
    return replace(
        offer,
        sentence=reason,
        state=words.UNUSABLE,
        actions=(OfferAction.REMOVE,) if removes else (),
        more=(OfferAction.REVEAL,) if removes else (OfferAction.REVEAL, OfferAction.REMOVE),
        is_usable=False,
    )


def _local_offer(model: InstalledModel, state: ModelsState) -> Offer:
    card = model.card
    can_copy = card is not None and card.usable and card.bits >= _FULL_BITS
    kind = describe(card) if card is not None else words.kind(is_mlx=False)
    size = "" if card is not None else figures.file_size(model.size_bytes)
    offer = Offer(
        key=str(model.path),
        title=model.title,
        description=words.joined(kind, size, model.source.value),
        more=(
            *(COPY_BITS if can_copy else ()),
            OfferAction.REVEAL,
            OfferAction.REMOVE,
        ),
        keeps=_why_kept(model, state),
    )
    if _can_be_used(model):
        offer = with_use(offer, offer.key, state)
    if card is not None and card.usable:
        offer = replace(offer, actions=(*offer.actions, OfferAction.DEFAULTS))
    return offer


def _why_kept(model: InstalledModel, state: ModelsState) -> str:
    """Return the reason why a model cannot be removed now, or an empty string."""
    if model.card is not None and model.card.is_starter:
        return words.IS_A_PART
    if not is_in_use(str(model.path), state.status):
        return ""
    if state.status.will_be_ready:
        return words.IS_BEING_LOADED
    return words.IS_ANSWERING if state.is_answering else ""
