"""The options that divide a model over several processes or hosts: --stages and --hosts."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from engine.hosts.hostfile import MAX_HOSTS, Hosts, local_stages, read_hosts


def add_stages(parser: ArgumentParser) -> None:
    """Add the options."""
    places = parser.add_mutually_exclusive_group()
    places.add_argument(
        "--stages",
        type=_count,
        metavar="N",
        help="divide the model over N processes of this computer",
    )
    places.add_argument(
        "--hosts",
        type=Path,
        metavar="FILE",
        help="divide the model over the hosts of FILE, in the format of mlx.launch",
    )


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= MAX_HOSTS:
        raise ArgumentTypeError(f"{text} is not between 1 and {MAX_HOSTS}")
    return count


def stages_of(args: Namespace) -> Hosts | None:
    """Return the stages that the options name, or None: the engine runs in this process.

    Raises:
        HostsFileError: the hosts file cannot be used.
    """
    if args.hosts is not None:
        return read_hosts(args.hosts)
    return None if args.stages is None else local_stages(args.stages)
