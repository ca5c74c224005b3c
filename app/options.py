"""What the command line asks of the window."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTestOptions:
    """report is a file for the findings, as JSON; None: standard output, as lines."""

    report: Path | None = None
    on_cpu: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Nothing, as a rule."""

    model: Path | None = None  # load this one, whatever was chosen last
    files: tuple[Path, ...] = ()  # open these
    selftest: SelfTestOptions | None = None  # try yourself, then end
    debug: bool = False  # DEBUG log, checks of the engine's cache, a line of its statistics
