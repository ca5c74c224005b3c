"""Sentences about faults of stages: the host, what happened, and what to do."""

from __future__ import annotations

from dataclasses import replace

from engine.errors import TryAgainError, tells_of_full_memory
from engine.hosts.hostfile import Host, this_machine
from engine.problem import Problem

_AGAIN = "Then choose Start Again."
_REFUSED = "Permission denied ("  # ssh puts the allowed kinds of login after it


class StagesError(TryAgainError):
    """A stage of the pipeline failed. All stages have been ended."""

    title = "The model on several Macs stopped."
    advice = "Choose Start Again."


class PeerLostError(StagesError):
    """The connection to another stage broke. Only a stage raises this error."""


def _problem(title: str, cause: str, advice: str, details: str = "") -> Problem:
    return Problem(title=title, cause=cause, advice=advice, details=details)


def not_started(host: Host, reason: str) -> Problem:
    """Return the problem of a host whose stage cannot be started."""
    if host.is_local:
        return _problem(f"{_name(host)} can’t start.", reason, StagesError.advice)
    if _REFUSED in reason:
        return _problem(
            f"{_name(host)} refused the login.",
            reason,
            f"Add the ssh key of {this_machine()} to it, so that ssh needs no password. {_AGAIN}",
        )
    return _problem(
        f"{_name(host)} can’t be reached.",
        reason or "ssh gave no reason.",
        f"Check that it is awake, that Remote Login is on and that ssh needs no password. {_AGAIN}",
    )


def never_came(host: Host, seconds: float) -> Problem:
    return _problem(
        f"{_name(host)} didn’t start.",
        f"It did not respond for {seconds:.0f} seconds.",
        f"{_check(host)} {_AGAIN}",
    )


def silent(host: Host, seconds: float) -> Problem:
    return _problem(
        f"{_name(host)} no longer answers.",
        f"It did not respond for {seconds:.0f} seconds.",
        f"{_check(host)} {_AGAIN}",
    )


def stuck(host: Host, seconds: float) -> Problem:
    return _problem(
        f"{_name(host)} makes no progress.",
        f"One step of its work has taken more than {seconds:.0f} seconds.",
        StagesError.advice,
    )


def died(host: Host, status: int, last_words: str) -> Problem:
    """Return the problem of a stage that ended without giving a reason.

    Args:
        host: the host of the stage.
        status: the exit status, negative for a signal.
        last_words: the last line on its standard error.
    """
    if tells_of_full_memory(last_words.lower()):
        return failed(host, "The device had none left.", "", is_out_of_memory=True)
    if status == -9:
        cause = "The system or a person ended its process; it may have had too little memory."
        advice = f"Close other apps on it. {_AGAIN}"
    elif not host.is_local and status == 255:
        cause = "The ssh connection to it was lost."
        advice = f"{_check(host)} {_AGAIN}"
    else:
        cause = f"Its process ended unexpectedly (status {status})."
        advice = StagesError.advice
    return _problem(f"{_name(host)} stopped.", cause, advice)


def failed(host: Host, cause: str, advice: str, *, is_out_of_memory: bool) -> Problem:
    """Return the problem of a stage that ended itself and gave the cause, and perhaps advice."""
    if is_out_of_memory:
        return _problem(
            f"{_name(host)} ran out of memory.",
            cause,
            f"Close other apps on it, or use more Macs or a smaller model. {_AGAIN}",
        )
    return _problem(f"{_name(host)} stopped.", cause, advice or StagesError.advice)


def link_lost(first: Host, second: Host) -> Problem:
    return _problem(
        f"The connection between {first.name} and {second.name} was lost.",
        "Both still run.",
        f"Check the cable or the network. {_AGAIN}",
    )


def not_formed(host: Host, seconds: float) -> Problem:
    return _problem(
        f"{_name(host)} couldn’t be connected with the others.",
        f"It did not connect within {seconds:.0f} seconds.",
        f"Check the addresses in the hosts file, and the cables. {_AGAIN}",
    )


def no_link(host: Host, ip: str, reason: str) -> Problem:
    return _problem(
        f"{_name(host)} answers over ssh, but not at {ip}.",
        f"{reason}.",
        "Correct the address in the hosts file, check the cable, and allow Rejoinder the local "
        "network in System Settings, under Privacy & Security.",
    )


def other_version(host: Host, theirs: str, own: str) -> Problem:
    return _problem(
        f"{_name(host)} has another version of Rejoinder.",
        f"It has {theirs}, and {this_machine()} has {own}.",
        f"Install the same version on both. {_AGAIN}",
    )


def other_folder(host: Host, difference: str) -> Problem:
    return _problem(
        f"{_name(host)} doesn’t have the same model.",
        difference,
        f"Copy the model’s folder to it again. {_AGAIN}",
    )


def before_start(problem: Problem) -> Problem:
    """Return the problem without the advice to start again, for a check before the first start."""
    return replace(problem, advice=problem.advice.removesuffix(_AGAIN).strip())


def _name(host: Host) -> str:
    """Return the name of a host for the beginning of a sentence."""
    return host.name[:1].upper() + host.name[1:] if host.is_local else host.name


def _check(host: Host) -> str:
    if host.is_local:
        return "Close other apps, if the memory is full."
    return "Wake it and check its cable."
