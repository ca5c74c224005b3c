"""The rows of downloads in the Models window, and the line about them in the main window. No Qt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from app.hub.values import UNFINISHED, Download, DownloadState
from app.viewmodels import figures
from app.viewmodels.model_use import with_use
from app.viewmodels.offer import ModelsState, Offer, OfferAction
from app.words import hub as words

_ACTIONS: Mapping[DownloadState, tuple[OfferAction, ...]] = {
    DownloadState.QUEUED: (OfferAction.PAUSE, OfferAction.CANCEL),
    DownloadState.RUNNING: (OfferAction.PAUSE, OfferAction.CANCEL),
    DownloadState.WAITING: (OfferAction.TRY_NOW, OfferAction.CANCEL),
    DownloadState.PAUSED: (OfferAction.RESUME, OfferAction.CANCEL),
    DownloadState.FAILED: (OfferAction.RESUME, OfferAction.CANCEL),
    DownloadState.DONE: (OfferAction.CANCEL,),
}


def fetching_line(
    downloads: tuple[Download, ...], now: float = 0.0, *, is_short: bool = False
) -> str:
    """Return one line about the downloads that run, wait or have failed, "" for none.

    Args:
        downloads: all downloads.
        now: a time of the clock of `retry_at`.
        is_short: True: with an arrow in place of the verb.
    """
    active = [download for download in downloads if download.state in UNFINISHED]
    if not active:
        failed = (one for one in downloads if one.state is DownloadState.FAILED)
        return next((words.failed_line(one.title) for one in failed), "")
    running = (download for download in active if download.state is DownloadState.RUNNING)
    first = next(running, active[0])
    left = first.seconds_left
    if first.state is DownloadState.WAITING:
        state = words.tries_again(_wait(first, now))
    elif first.state is DownloadState.RUNNING and first.total_bytes:
        state = figures.percent(first.fraction)
    else:
        state = words.STATES[first.state.value]
    time_left = "" if left is None else words.left(figures.seconds(left))
    line = words.joined(first.title, state, time_left)
    return (words.fetching_short if is_short else words.fetching)(line, len(active) - 1)


def download_offers(state: ModelsState) -> tuple[Offer, ...]:
    """Return a row for each download."""
    return tuple(_with_use(download, state) for download in state.downloads)


def _with_use(download: Download, state: ModelsState) -> Offer:
    """Return the row of a download. A complete one offers Use."""
    offer = download_offer(download, state.now)
    if download.state is not DownloadState.DONE:
        return offer
    card = state.cards.get(download.repo_id)
    path = str(Path(download.folder, download.chosen)) if card is None else str(card.path)
    if card is None and not download.chosen:
        return offer
    shown = with_use(offer, path, state)
    return replace(shown, actions=(*shown.actions, OfferAction.CANCEL))


def download_offer(download: Download, now: float) -> Offer:
    """Return the row of a download. `now` is a time of the clock of `retry_at`."""
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
    shows_bar = download.state is not DownloadState.DONE and download.total_bytes > 0
    return Offer(
        key=download.key,
        title=download.title,
        description=words.joined(description, download.key),
        sentence=_sentence(download, now),
        state=state,
        fraction=download.fraction if shows_bar else None,
        actions=_ACTIONS[download.state],
        is_usable=download.state is DownloadState.DONE,
    )


def _sentence(download: Download, now: float) -> str:
    problem = download.problem
    if problem is None:
        return ""
    if download.state is DownloadState.WAITING:
        return words.retry(problem.cause, _wait(download, now))
    return words.spaced(problem.cause, problem.advice)


def _wait(download: Download, now: float) -> str:
    """Return the time until a download is retried, such as "12 s"."""
    return figures.seconds(math.ceil(download.retry_at - now))
