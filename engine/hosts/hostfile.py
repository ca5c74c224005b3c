"""The hosts of a pipeline: read from a file in mlx.launch's format, or N processes of this machine.

    [{"ssh": "studio", "ips": ["192.168.1.2"]}, ...]
    {"backend": "ring", "hosts": [...]}                 as mlx.distributed_config writes it

The order of the file is the order of the ranks. Rank 0 has the last layers and answers, so the
first host must be this machine.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from engine.errors import UserFixableError, printable
from engine.plain_file import read_plain

LOOPBACK = "127.0.0.1"
_OWN_NAMES = frozenset({"localhost", LOOPBACK, "::1"})
MAX_HOSTS = 16
_MAX_ADDRESSES = 16  # of one host: a cable each
_MAX_SETTINGS = 64
_MAX_FILE_BYTES = 1_000_000
# A name goes to ssh: USER@HOST. No letter of it means anything to a shell, and no name is an
# option.
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_ZONE = re.compile(r"[A-Za-z0-9_.-]{1,32}")  # of an address of one link: the en0 in fe80::1%en0
_SETTING = re.compile(r"MLX_[A-Z0-9_]{1,64}=[A-Za-z0-9_.,:;/@%+=~ -]{0,1024}")


class HostsFileError(UserFixableError):
    """A hosts file cannot be used."""

    title = "The hosts file can’t be used."
    advice = "Correct the file, or make a new one with mlx.distributed_config."


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One stage of a pipeline: the machine that runs it, and the addresses of its links."""

    name: str  # the name for ssh, or the name for the user of a stage of this machine
    ips: tuple[str, ...]
    is_local: bool  # True: the stage is started without ssh


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The stages of a pipeline, in the order of their ranks."""

    hosts: tuple[Host, ...]
    envs: tuple[str, ...] = ()  # NAME=VALUE for the environment of every stage

    @property
    def num_machines(self) -> int:
        """The number of machines: all stages of this machine count once."""
        return len({host.name for host in self.hosts if not host.is_local}) + 1


def this_machine() -> str:
    """Return what a sentence calls this machine."""
    return "this Mac" if sys.platform == "darwin" else "this computer"


def local_stages(count: int) -> Hosts:
    """Return `count` stages that are processes of this machine."""
    names = [this_machine() if count == 1 else f"stage {n + 1} of {count}" for n in range(count)]
    return Hosts(hosts=tuple(Host(name=n, ips=(LOOPBACK,), is_local=True) for n in names))


def read_hosts(path: Path) -> Hosts:
    """Read a hosts file.

    Raises:
        HostsFileError: the file cannot be read, or it lists no usable hosts.
    """
    try:
        content = json.loads(read_plain(path, _MAX_FILE_BYTES))
    except OSError as error:
        raise HostsFileError(f"{path} can’t be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise HostsFileError(f"{path.name} is not JSON: {error}.") from error
    return parse_hosts(content)


def parse_hosts(content: Any) -> Hosts:
    """Return the hosts of the content of a hosts file.

    Raises:
        HostsFileError: it lists no usable hosts.
    """
    backend: object = ""
    envs: object = []
    entries = content
    if isinstance(content, dict):
        table = cast("dict[str, Any]", content)
        backend, envs = table.get("backend") or "", table.get("envs") or []
        entries = table.get("hosts")
    if backend not in ("", "ring", "any"):
        cause = f"It asks for the backend “{printable(str(backend))}”, and Rejoinder uses ring."
        raise HostsFileError(cause)
    if not isinstance(entries, list) or not entries:
        raise HostsFileError("It lists no hosts.")
    listed = cast("list[Any]", entries)
    if len(listed) > MAX_HOSTS:
        raise HostsFileError(f"It lists {len(listed)} hosts; at most {MAX_HOSTS} can be used.")
    hosts = tuple(_host(entry, number) for number, entry in enumerate(listed, 1))
    if not hosts[0].is_local:
        cause = (
            f"Its first host is {hosts[0].name}, but it must be {this_machine()}, which answers."
        )
        raise HostsFileError(cause)
    return Hosts(hosts=hosts, envs=_environment(envs))


def _host(entry: Any, number: int) -> Host:
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    name: object = fields.get("ssh")
    if not isinstance(name, str) or not name:
        raise HostsFileError(f"Host {number} has no name in the field “ssh”.")
    if not _is_ssh_name(name):
        cause = f"The name “{printable(name, 60)}” of host {number} is no name for ssh."
        advice = "Use a name such as studio, user@studio.local or 192.168.1.2."
        raise HostsFileError(cause, advice=advice)
    is_local = name in _OWN_NAMES or name.lower() in _own_host_names()
    addresses = _addresses(name, fields.get("ips") or [])
    if not addresses and not is_local:
        raise HostsFileError(f"{name} has no address in the field “ips”.")
    return Host(name=name, ips=addresses or (LOOPBACK,), is_local=is_local)


def _is_ssh_name(name: str) -> bool:
    user, at, host = name.rpartition("@")
    if at and not _USER.fullmatch(user):
        return False
    return bool(_HOST.fullmatch(host)) or _is_address(host)


def _addresses(name: str, ips: object) -> tuple[str, ...]:
    """Return the addresses of a host, which its name may be."""
    listed = cast("list[object]", ips) if isinstance(ips, list) else [ips]
    if len(listed) > _MAX_ADDRESSES:
        cause = f"{name} has {len(listed)} addresses; at most {_MAX_ADDRESSES} can be used."
        raise HostsFileError(cause)
    found: list[str] = []
    for address in listed:
        if not isinstance(address, str) or not _is_address(address):
            cause = f"“{printable(str(address), 60)}” of {name} is no IP address of one machine."
            raise HostsFileError(cause)
        found.append(address)
    if not found and _is_address(name):
        found.append(name)
    return tuple(found)


def _own_host_names() -> set[str]:
    own = socket.gethostname().lower()
    short = own.split(".")[0]
    return {own, short, f"{short}.local"}


def _is_address(text: str) -> bool:
    """Return True for the address of one machine. 0.0.0.0, for example, would be all of them."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None and not _ZONE.fullmatch(address.scope_id):
            return False
        address = address.ipv4_mapped or address
    if isinstance(address, ipaddress.IPv4Address) and address.is_reserved:
        return False
    return not address.is_unspecified and not address.is_multicast


def _environment(envs: object) -> tuple[str, ...]:
    """Return the environment variables of the file that concern MLX; others are refused."""
    texts = cast("list[object]", envs) if isinstance(envs, list) else [envs]
    if len(texts) > _MAX_SETTINGS:
        cause = f"It has {len(texts)} lines in “envs”; at most {_MAX_SETTINGS} can be used."
        raise HostsFileError(cause)
    found: list[str] = []
    for text in texts:
        if not isinstance(text, str) or not _SETTING.fullmatch(text):
            cause = f"“{printable(str(text), 60)}” in “envs” is no setting of MLX."
            raise HostsFileError(cause)
        found.append(text)
    return tuple(found)
