"""The command-line options of the window, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.hosts.hostfile import Hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTestOptions:
    """The options of `--selftest`."""

    report: Path | None = None  # JSON file for the findings; None: print the findings as lines
    on_cpu: bool = False  # True: run the engine on the CPU even if there is a GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the window; a normal start sets none of them."""

    model: Path | None = None  # model folder to load, instead of the model chosen last
    files: tuple[Path, ...] = ()  # model folders and GGUF files to open
    # run the self-test with these options, then quit; None: no self-test
    selftest: SelfTestOptions | None = None
    hosts: Hosts | None = None  # hosts that hold the model together
    debug: bool = False  # True: log at level DEBUG, check the engine's cache, show its statistics
