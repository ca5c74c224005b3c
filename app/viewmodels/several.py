"""The Macs that hold a model together, as rows and as parts of a bar. No Qt, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.viewmodels import figures
from app.words import computer, several as words, units
from engine.events import StagePhase, StageState
from engine.hosts.checking import HostCheck
from engine.hosts.hostfile import Hosts

_LOCAL = "localhost"  # the name that mlx.distributed_config gives the Mac on which it runs


@dataclass(frozen=True, slots=True, kw_only=True)
class MacRow:
    """One Mac: its name, and one line or sentence about it."""

    name: str
    text: str
    is_problem: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The part of the model that one Mac holds."""

    name: str
    size: int  # number of layers; before the first start, bytes of memory
    text: str  # the size in words


def mac_rows(
    hosts: Hosts | None,
    checks: Sequence[HostCheck],
    stages: Sequence[StageState],
    *,
    is_checking: bool,
) -> tuple[MacRow, ...]:
    """Return one row for each host: the state of its stage, or else the result of its check."""
    if hosts is None:
        return ()
    names = [host.name for host in hosts.hosts]
    if stages:
        return tuple(MacRow(name=_shown(stage.name), text=stage_text(stage)) for stage in stages)
    if checks and not is_checking:
        return tuple(_checked_row(check) for check in checks)
    text = words.CHECKING if is_checking else words.NOT_CHECKED
    return tuple(MacRow(name=_shown(name), text=text) for name in names)


def _shown(name: str) -> str:
    """Return the name of a host on screen."""
    return computer.IN_TITLES if name == _LOCAL else name


def stage_text(stage: StageState) -> str:
    """Return the state of a stage in words."""
    match stage.phase:
        case StagePhase.STARTING | StagePhase.HERE:
            return words.STARTING
        case StagePhase.LOADING if not stage.total_bytes:
            return words.CONNECTING
        case StagePhase.LOADING:
            return words.loading(
                percent=figures.percent(stage.loaded_bytes / stage.total_bytes),
                share=figures.share(stage.loaded_bytes, stage.total_bytes),
            )
        case StagePhase.READY:
            size = figures.file_size(stage.total_bytes)
            return words.ready(layers=words.layers(stage.num_layers), size=size)


def _checked_row(check: HostCheck) -> MacRow:
    if check.problem is not None:
        return MacRow(name=_shown(check.name), text=str(check.problem), is_problem=True)
    link = ""
    if check.round_trip_ms is not None:
        link = words.link(
            kind=check.link, round_trip=units.milliseconds(f"{check.round_trip_ms:.1f}")
        )
    text = words.checked(memory=figures.file_size(check.memory_bytes), link=link)
    return MacRow(name=_shown(check.name), text=f"{text}. {check.note}" if check.note else text)


def parts(checks: Sequence[HostCheck], stages: Sequence[StageState]) -> tuple[Part, ...]:
    """Return the parts of the model: its layers, or else the memory of the Macs."""
    if stages and all(stage.num_layers for stage in stages):
        # Rank 0 has the last layers, so the first layers are those of the last rank.
        return tuple(
            Part(name=_shown(one.name), size=one.num_layers, text=words.layers(one.num_layers))
            for one in reversed(stages)
        )
    if checks and all(check.memory_bytes for check in checks):
        return tuple(
            Part(
                name=_shown(check.name),
                size=check.memory_bytes,
                text=figures.file_size(check.memory_bytes),
            )
            for check in reversed(checks)
        )
    return ()
