"""The address of a server, and the programs that may use it."""

from __future__ import annotations

from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
# Hosts that stand for all addresses of this machine
ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 (they are compared with the host that a user chose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The programs and pages that may use a server."""

    key: str  # "": no key is needed
    # Names and addresses of this server, besides those of the loopback interface
    hosts: tuple[str, ...] = ()
    # True if the server listens on all addresses of this machine, so that it has any of them as its
    # name. A page whose domain leads here still sends the name of its domain.
    has_any_address: bool = False
    origins: frozenset[str] = frozenset()  # of pages that may use the server


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """The address on which a server listens, and the programs that may use it."""

    host: str = LOOPBACK
    port: int = 0  # 0: any free port
    access: Access

    @property
    def is_local(self) -> bool:
        """True if only programs on this machine can connect."""
        return self.host in (LOOPBACK, "::1", "localhost")
