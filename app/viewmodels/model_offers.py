"""The rows of the Models window: suggestions, found models, models on this machine, downloads. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto

from app.hub.values import (
    UNFINISHED,
    Download,
    DownloadState,
    FoundModel,
    RepoDetails,
    typical_choice,
)
from app.viewmodels import figures
from app.viewmodels.fit import speed_text, verdict_text
from app.viewmodels.models import describe
from app.words import hub as words, models as states
from engine.catalog.card import ModelCard
from engine.catalog.choose import ModelSuggestion
from engine.catalog.fit import Fit, FitVerdict
from engine.catalog.installed import InstalledModel
from engine.types import Problem


class OfferAction(Enum):
    """The actions of a row's buttons."""

    SHOW = auto()  # ask the Hub for size and configuration
    DOWNLOAD = auto()
    CHOOSE_FILE = auto()  # choose one of several GGUF files, then download it
    PAUSE = auto()
    RESUME = auto()
    CANCEL = auto()
    USE = auto()  # load the model
    DEFAULTS = auto()  # show the options of the model
    COPY_4 = auto()  # make a copy with 4 bits per weight
    COPY_6 = auto()
    COPY_8 = auto()
    CANCEL_COPY = auto()
    REVEAL = auto()  # show the folder in the system's file manager
    REMOVE = auto()


# The bits per weight of the copy that each action makes.
COPY_BITS: Mapping[OfferAction, int] = {
    OfferAction.COPY_4: 4,
    OfferAction.COPY_6: 6,
    OfferAction.COPY_8: 8,
}
_FULL_BITS = 16  # bits per weight of a model in full precision


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCopy:
    """A smaller copy of a model that is being made, or could not be made."""

    bits: int  # bits per weight
    fraction: float | None  # progress, 0 to 1; None if it ended
    problem: Problem | None = None  # the reason why it could not be made


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A row of the Models window."""

    key: str  # identity of the row: a repository, a download or a folder
    title: str
    description: str = ""  # second line: sizes and kinds
    sentence: str = ""  # third line: a reason, a note or a problem
    state: str = ""  # text above the buttons, such as "Loaded"
    fraction: float | None = None  # progress, 0 to 1; None if no progress bar is shown
    actions: tuple[OfferAction, ...] = ()  # buttons, from left to right
    more: tuple[OfferAction, ...] = ()  # entries of the menu behind the buttons
    stands_out: bool = False  # True: the first button has the accent colour
    choices: tuple[tuple[str, str], ...] = ()  # path and text of each GGUF file


def suggestion_offers(
    suggestions: tuple[ModelSuggestion, ...],
    downloads: tuple[Download, ...],
    cards: Mapping[str, ModelCard],
    loaded: str,
) -> tuple[Offer, ...]:
    """Return a row for each suggested model, in their order.

    Args:
        suggestions: the models. Those that suit this machine come first.
        downloads: all downloads.
        cards: the models on this machine, by the id of their repository.
        loaded: the path of the model in use.
    """
    offers: list[Offer] = []
    for number, one in enumerate(suggestions):
        suits = words.RANKS[one.purpose, one.rank]
        description = words.joined(
            suits if one.suits else words.for_memory(one.memory_gb),
            one.parameters,
            words.bits(str(one.bits)),
            figures.file_size(one.size_bytes),
            one.repo_id,
        )
        offer = Offer(
            key=one.repo_id,
            title=one.name,
            description=description,
            sentence=one.why,
            actions=(OfferAction.DOWNLOAD,),
            stands_out=number == 0,
        )
        offers.append(_with_progress(offer, downloads, cards.get(one.repo_id), loaded))
    return tuple(offers)


def found_offers(
    found: tuple[FoundModel, ...],
    details: Mapping[str, RepoDetails | Problem | None],
    fits: Mapping[str, Fit | Problem],
    downloads: tuple[Download, ...],
    cards: Mapping[str, ModelCard],
    loaded: str,
) -> tuple[Offer, ...]:
    """Return a row for each model of a search.

    Args:
        found: the models.
        details: the details that were asked for, by repository.
        fits: the fit of a model, or the reason why it cannot run here, by repository.
        downloads: all downloads.
        cards: the models on this machine, by the id of their repository.
        loaded: the path of the model in use.
    """
    return tuple(
        _with_progress(_found_offer(one, details, fits), downloads, cards.get(one.repo_id), loaded)
        for one in found
    )


def _found_offer(
    one: FoundModel,
    details: Mapping[str, RepoDetails | Problem | None],
    fits: Mapping[str, Fit | Problem],
) -> Offer:
    description = words.joined(
        one.parameters,
        words.bits(one.bits),
        words.kind(is_mlx=one.is_mlx),
        words.downloads(one.downloads),
        one.updated,
        one.licence,
        words.GATED if one.is_gated else "",
    )
    offer = Offer(key=one.repo_id, title=one.repo_id, description=description)
    if one.repo_id not in details:
        return replace(offer, actions=(OfferAction.SHOW,))
    match details[one.repo_id]:
        case None:
            return replace(offer, state=words.ASKING)
        case Problem() as problem:
            return replace(
                offer,
                sentence=words.spaced(problem.cause, problem.advice),
                actions=(OfferAction.SHOW,),
            )
        case RepoDetails() as known:
            return _described(offer, known, fits.get(one.repo_id))


def _described(offer: Offer, known: RepoDetails, fit: Fit | Problem | None) -> Offer:
    if known.files:
        size = words.joined(figures.file_size(known.size_bytes), offer.description)
        offer = replace(offer, description=size, actions=(OfferAction.DOWNLOAD,))
        match fit:
            case None:
                return replace(offer, state=words.MEASURING, actions=())
            case Problem():
                return replace(offer, sentence=fit.cause, actions=())
            case Fit(verdict=verdict):
                sentence = words.spaced(f"{verdict_text(fit)}.", speed_text(fit))
                fits = verdict is not FitVerdict.TOO_LARGE
                return replace(
                    offer, sentence=sentence, actions=(OfferAction.DOWNLOAD,) if fits else ()
                )
    if known.choices and isinstance(fit, Problem):
        return replace(offer, sentence=fit.cause)
    if known.choices:
        choices = tuple(
            (file.path, words.joined(file.path, figures.file_size(file.size_bytes)))
            for file in known.choices
        )
        measured = typical_choice(known.choices)
        if isinstance(fit, Fit) and measured is not None:
            verdict = words.fit_of(measured.path, verdict_text(fit))
            offer = replace(offer, sentence=words.spaced(verdict, speed_text(fit)))
        return replace(offer, actions=(OfferAction.CHOOSE_FILE,), choices=choices)
    return replace(offer, sentence=words.SENTENCES["no_model"][0])


def _with_progress(
    offer: Offer, downloads: tuple[Download, ...], card: ModelCard | None, loaded: str
) -> Offer:
    """Show the download of a model, or the model itself if it is complete."""
    download = next((one for one in downloads if one.repo_id == offer.key), None)
    if card is not None and (download is None or download.state is DownloadState.DONE):
        if str(card.path) == loaded:
            return replace(offer, state=states.LOADED, actions=())
        return replace(offer, state=words.ON_THIS_COMPUTER, actions=(OfferAction.USE,))
    if download is not None and download.state is not DownloadState.DONE:
        shown = download_offer(download)
        return replace(
            offer,
            sentence=shown.sentence or offer.sentence,
            state=shown.state,
            fraction=shown.fraction,
            actions=shown.actions,
            stands_out=False,
        )
    return offer


def fetching_line(downloads: tuple[Download, ...]) -> str:
    """Return one line about the downloads that are not complete and not paused, "" for none."""
    active = [one for one in downloads if one.state in UNFINISHED]
    if not active:
        return ""
    first = next((one for one in active if one.state is DownloadState.RUNNING), active[0])
    name, left = first.repo_id.rpartition("/")[2], first.seconds_left
    if first.state is not DownloadState.RUNNING:
        state = words.STATES[first.state.value]
    elif first.total_bytes:
        state = figures.percent(first.fraction)
    else:
        state = words.STATES[DownloadState.RUNNING.value]
    time_left = "" if left is None else words.left(figures.seconds(left))
    return words.fetching(words.joined(name, state, time_left), len(active) - 1)


def download_offers(
    downloads: tuple[Download, ...], cards: Mapping[str, ModelCard], loaded: str
) -> tuple[Offer, ...]:
    """Return a row for each download."""
    offers: list[Offer] = []
    for one in downloads:
        offer = download_offer(one)
        card = cards.get(one.repo_id)
        if card is not None and one.state is DownloadState.DONE and str(card.path) != loaded:
            offer = replace(offer, actions=(OfferAction.USE, OfferAction.CANCEL), stands_out=True)
        offers.append(offer)
    return tuple(offers)


def download_offer(download: Download) -> Offer:
    """Return the row of a download."""
    state = words.STATES[download.state.value]
    description = ""
    if download.total_bytes:
        description = figures.share(download.done_bytes, download.total_bytes)
    if download.state is DownloadState.RUNNING and download.bytes_per_s > 0:
        rate = words.rate(figures.file_size(round(download.bytes_per_s)))
        left = download.seconds_left
        description = words.joined(
            description, rate, words.left(figures.seconds(left)) if left is not None else ""
        )
        state = figures.percent(download.fraction)
    problem = download.problem
    shows_bar = download.state is not DownloadState.DONE and download.total_bytes > 0
    return Offer(
        key=download.key,
        title=download.key,
        description=description,
        sentence="" if problem is None else words.spaced(problem.cause, problem.advice),
        state=state,
        fraction=download.fraction if shows_bar else None,
        actions=_ACTIONS[download.state],
    )


_ACTIONS: Mapping[DownloadState, tuple[OfferAction, ...]] = {
    DownloadState.QUEUED: (OfferAction.PAUSE, OfferAction.CANCEL),
    DownloadState.RUNNING: (OfferAction.PAUSE, OfferAction.CANCEL),
    DownloadState.WAITING: (OfferAction.RESUME, OfferAction.CANCEL),
    DownloadState.PAUSED: (OfferAction.RESUME, OfferAction.CANCEL),
    DownloadState.FAILED: (OfferAction.RESUME, OfferAction.CANCEL),
    DownloadState.DONE: (OfferAction.CANCEL,),
}


def local_offers(
    models: tuple[InstalledModel, ...], loaded: str, copies: Mapping[str, ModelCopy]
) -> tuple[Offer, ...]:
    """Return a row for each model on the disk: usable ones first, then by size.

    Args:
        models: the models.
        loaded: the path of the model in use.
        copies: the copies that are being made or failed, by the path of the model.
    """
    ordered = sorted(models, key=lambda one: (_problem(one) is not None, -one.size_bytes))
    return tuple(
        _with_copy(_local_offer(model, loaded), copies.get(str(model.path))) for model in ordered
    )


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


def _problem(model: InstalledModel) -> Problem | None:
    return model.card.problem if model.card is not None else None


def _local_offer(model: InstalledModel, loaded: str) -> Offer:
    is_loaded = str(model.path) == loaded
    card, problem = model.card, _problem(model)
    can_use = model.is_complete and problem is None and not is_loaded
    is_own = card is not None and card.is_starter
    can_copy = card is not None and card.usable and card.bits >= _FULL_BITS
    more = (
        *(COPY_BITS if can_copy else ()),
        OfferAction.REVEAL,
        *(() if is_loaded or is_own else (OfferAction.REMOVE,)),
    )
    kind = describe(card) if card is not None else words.kind(is_mlx=False)
    size = "" if card is not None else figures.file_size(model.size_bytes)
    used = "" if model.last_used is None else words.last_used(_day(model.last_used))
    return Offer(
        key=str(model.path),
        title=model.name,
        description=words.joined(kind, size, model.source.value, used),
        sentence="" if problem is None else words.spaced(problem.title, problem.cause),
        state=states.LOADED if is_loaded else "",
        actions=(
            *((OfferAction.USE,) if can_use else ()),
            *((OfferAction.DEFAULTS,) if card is not None and card.usable else ()),
        ),
        more=more,
    )


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().date().isoformat()
