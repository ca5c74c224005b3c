"""Sentences about the fit of a model. No Qt."""

from __future__ import annotations

from app.viewmodels import figures
from app.words import fit as words
from engine.catalog.fit import Fit, FitVerdict


def verdict_text(fit: Fit) -> str:
    """Return the sentence of a verdict."""
    match fit.verdict:
        case FitVerdict.FITS:
            return words.fits(fit.num_chats)
        case FitVerdict.TIGHT:
            return words.TIGHT
        case FitVerdict.TOO_LARGE:
            needed, given = figures.file_size(fit.needed_bytes), figures.file_size(fit.device_bytes)
            return words.too_large(needed=needed, given=given)


def speed_text(fit: Fit) -> str:
    """Return the estimate of tokens per second; "" if there is none or the model is too large."""
    if fit.tokens_per_s is None or fit.verdict is FitVerdict.TOO_LARGE:
        return ""
    return words.speed(round(fit.tokens_per_s))
