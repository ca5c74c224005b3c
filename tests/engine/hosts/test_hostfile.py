"""Hosts files in mlx.launch's format, and the sentences about unusable ones."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from engine.hosts.hostfile import HostsFileError, local_stages, parse_hosts, read_hosts

OWN = {"ssh": "localhost", "ips": ["127.0.0.1"]}
STUDIO = {"ssh": "studio", "ips": ["192.168.1.2", "fe80::1"]}


def test_list_of_hosts_keeps_order_and_addresses(tmp_path: Path) -> None:
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps([OWN, STUDIO]), encoding="utf-8")

    hosts = read_hosts(path)

    assert [(host.name, host.is_local) for host in hosts.hosts] == [
        ("localhost", True),
        ("studio", False),
    ]
    assert hosts.hosts[1].ips == ("192.168.1.2", "fe80::1")
    assert hosts.num_machines == 2


def test_file_of_mlx_distributed_config_gives_hosts_and_settings() -> None:
    own: dict[str, Any] = {"ssh": socket.gethostname(), "ips": [], "rdma": []}
    hosts = parse_hosts({"backend": "ring", "envs": ["MLX_RING_VERBOSE=1"], "hosts": [own, STUDIO]})

    assert hosts.hosts[0].is_local
    assert hosts.envs == ("MLX_RING_VERBOSE=1",)


def test_address_as_name_is_also_the_address() -> None:
    hosts = parse_hosts([OWN, {"ssh": "10.0.0.2"}])

    assert hosts.hosts[1].ips == ("10.0.0.2",)


def test_local_stages_are_processes_of_one_machine() -> None:
    hosts = local_stages(3)

    assert [host.is_local for host in hosts.hosts] == [True, True, True]
    assert len({host.name for host in hosts.hosts}) == 3
    assert hosts.num_machines == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "no hosts"),
        ({"hosts": 3}, "no hosts"),
        ([STUDIO, OWN], "first host is studio"),
        ([OWN, {"ips": ["10.0.0.2"]}], "Host 2 has no usable name"),
        ([OWN, {"ssh": "-oProxyCommand=x", "ips": ["10.0.0.2"]}], "Host 2 has no usable name"),
        ([OWN, {"ssh": "a b", "ips": ["10.0.0.2"]}], "space"),
        ([OWN, {"ssh": "studio", "ips": ["elsewhere"]}], "“elsewhere” of studio"),
        ([OWN, {"ssh": "studio", "ips": 5}], "“5” of studio"),
        ([OWN, {"ssh": "studio"}], "studio has no address"),
        ([OWN, "studio"], "Host 2 has no usable name"),
        ([OWN] * 17, "at most 16"),
        ({"backend": "mpi", "hosts": [OWN]}, "“mpi”"),
        ({"envs": ["LD_PRELOAD=/x"], "hosts": [OWN]}, "LD_PRELOAD"),
    ],
)
def test_unusable_hosts_raise_a_sentence(content: Any, words: str) -> None:
    with pytest.raises(HostsFileError) as raised:
        parse_hosts(content)

    assert words in str(raised.value.problem)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_file_without_json_raises_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(HostsFileError, match="is not JSON"):
        read_hosts(path)


def test_missing_file_raises_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HostsFileError, match="can’t be read"):
        read_hosts(tmp_path / "none.json")
