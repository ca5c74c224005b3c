"""The check of a hosts file: can each host take part, with the same model, and over which link."""

from __future__ import annotations

import secrets
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from engine.hosts import faults
from engine.hosts.echo import SECRET_BYTES, MeasuredLink, measure
from engine.hosts.folder import describe, difference
from engine.hosts.hostfile import Host, Hosts
from engine.hosts.lines import LineKind
from engine.hosts.process import StageProcess, stage_command
from engine.problem import Problem

_LIMIT_S = 12.0  # seconds for each answer of a host
# A hop is made twice for each token. Below this round trip it is not noticed beside a pass.
SLOW_MS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCheck:
    """The result of the check of one host."""

    name: str
    # Why the host cannot take part, or None. The fields below have the values that are known.
    problem: Problem | None = None
    version: str = ""
    chip: str = ""
    memory_bytes: int = 0
    round_trip_ms: float | None = None  # None for stages of this machine
    bytes_per_s: float | None = None
    link: str = ""  # name of the kind of link: Wi-Fi, Thunderbolt Bridge, or the interface
    note: str = ""  # a sentence about what works, but not well; "" if there is nothing


class _FailedError(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = faults.before_start(problem)


def check_hosts(hosts: Hosts, model: Path | None) -> tuple[HostCheck, ...]:
    """Check all hosts at the same time. Blocks for some seconds.

    Args:
        hosts: the hosts.
        model: the model folder that all of them must have; None: no folder is compared.
    """
    folder = None if model is None else describe(model)
    with ThreadPoolExecutor(len(hosts.hosts)) as pool:
        check = partial(_check, hosts=hosts, model=model, folder=folder)
        return tuple(pool.map(check, hosts.hosts))


def _check(
    host: Host, hosts: Hosts, model: Path | None, folder: Mapping[str, Any] | None
) -> HostCheck:
    try:
        stage = StageProcess(0, host, stage_command(host, hosts.envs), None)
    except OSError as error:
        problem = faults.not_started(host, f"{error.strerror or error}.")
        return HostCheck(name=host.name, problem=problem)
    try:
        return _checked(stage, host, model, folder)
    except _FailedError as failed:
        facts = stage.facts
        return HostCheck(
            name=host.name,
            problem=failed.problem,
            version=facts.get("version", ""),
            chip=facts.get("chip", ""),
            memory_bytes=facts.get("total", 0),
        )
    finally:
        stage.close()


def _checked(
    stage: StageProcess, host: Host, model: Path | None, folder: Mapping[str, Any] | None
) -> HostCheck:
    stage.order(LineKind.SETUP, ips=host.ips, config=None)
    stage.facts = facts = _next_line(stage, LineKind.HERE)
    own = version("rejoinder")
    if facts["version"] != own:
        raise _FailedError(faults.other_version(host, facts["version"], own))
    note = ""
    if folder is not None:
        stage.order(LineKind.LOOK, path=str(model))
        theirs = _next_line(stage, LineKind.FOLDER)
        differs = difference(folder, theirs, str(model))
        if differs:
            raise _FailedError(faults.other_folder(host, differs))
        note = _note_of_files(folder, theirs)
    link = None if host.is_local else _measured(stage, host)
    kind = "" if link is None else link_kind(link.own_address)
    return HostCheck(
        name=host.name,
        version=facts["version"],
        chip=facts["chip"],
        memory_bytes=facts["total"],
        round_trip_ms=None if link is None else round(link.round_trip_ms, 2),
        bytes_per_s=None if link is None else link.bytes_per_s,
        link=kind,
        note=" ".join(filter(None, (note, "" if link is None else _note_of_link(link, kind)))),
    )


def _note_of_files(own: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    missing = len(own["sizes"].keys() - theirs["sizes"].keys())
    if not missing:
        return ""
    have = len(own["sizes"]) - missing
    return f"It has {have} of {len(own['sizes'])} weight files; those of its own part are enough."


def _note_of_link(link: MeasuredLink, kind: str) -> str:
    if "wi-fi" in kind.lower():
        return "It is connected over Wi-Fi; a Thunderbolt or network cable is faster."
    if link.round_trip_ms > SLOW_MS:
        return "The link is slow; connect the two with a cable."
    return ""


def _measured(stage: StageProcess, host: Host) -> MeasuredLink:
    secret = secrets.token_bytes(SECRET_BYTES)
    ip = host.ips[0]
    stage.order(LineKind.ECHO, ip=ip, secret=secret.hex())
    port: int = _next_line(stage, LineKind.ECHO)["port"]
    try:
        return measure(ip, port, secret)
    except OSError as error:
        raise _FailedError(faults.no_link(host, ip, str(error.strerror or error))) from error


def _next_line(stage: StageProcess, kind: LineKind) -> dict[str, Any]:
    """Return the fields of the next line of a kind.

    Raises:
        _FailedError: the stage ended, failed, or did not answer in time.
    """
    ends_at = time.monotonic() + _LIMIT_S
    while (left := ends_at - time.monotonic()) > 0:
        if not select.select([stage.output], [], [], left)[0]:
            break
        lines = stage.read_lines()
        if lines is None:
            stage.status(timeout_s=1.0)
            raise _FailedError(faults.not_started(stage.host, stage.last_words))
        for found, fields in lines:
            if found is LineKind.PROBLEM:
                cause, advice = fields["cause"], fields["advice"]
                raise _FailedError(faults.failed(stage.host, cause, advice, is_out_of_memory=False))
            if found is kind:
                return fields
    raise _FailedError(faults.never_came(stage.host, _LIMIT_S))


def link_kind(address: str) -> str:
    """Return the kind of link of an address of this machine, as the system names it."""
    interface = next(
        (
            name
            for name, addresses in psutil.net_if_addrs().items()
            if any(one.address.split("%")[0] == address for one in addresses)
        ),
        "",
    )
    return _hardware_ports().get(interface, interface)


def _hardware_ports() -> dict[str, str]:
    """Return the names of the hardware ports of a Mac, by interface."""
    if sys.platform != "darwin":
        return {}
    listed = subprocess.run(
        ["/usr/sbin/networksetup", "-listallhardwareports"],
        capture_output=True,
        text=True,
        timeout=5,
        check=False,
    ).stdout
    return parse_hardware_ports(listed)


def parse_hardware_ports(listed: str) -> dict[str, str]:
    """Return the port names in the output of networksetup, by interface."""
    ports: dict[str, str] = {}
    name = ""
    for line in listed.splitlines():
        key, _, value = line.partition(": ")
        if key == "Hardware Port":
            name = value.strip()
        elif key == "Device" and name:
            ports[value.strip()] = name
    return ports
