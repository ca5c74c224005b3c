"""Hosts files in mlx.launch's format, and the sentences about unusable ones."""

from __future__ import annotations

import json
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from engine.hosts.hostfile import Host, HostsFileError, local_stages, parse_hosts, read_hosts
from engine.hosts.process import stage_command

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
        ([OWN, {"ips": ["10.0.0.2"]}], "Host 2 has no name"),
        ([OWN, {"ssh": "-oProxyCommand=x", "ips": ["10.0.0.2"]}], "“-oProxyCommand=x” of host 2"),
        ([OWN, {"ssh": "-luser@a", "ips": ["10.0.0.2"]}], "“-luser@a” of host 2"),
        ([OWN, {"ssh": "user@-a", "ips": ["10.0.0.2"]}], "“user@-a” of host 2"),
        ([OWN, {"ssh": "a b", "ips": ["10.0.0.2"]}], "“a b” of host 2"),
        ([OWN, {"ssh": "a;b", "ips": ["10.0.0.2"]}], "“a;b” of host 2"),
        ([OWN, {"ssh": "a\u202eb", "ips": ["10.0.0.2"]}], "“a b” of host 2"),
        ([OWN, {"ssh": "ssh://a", "ips": ["10.0.0.2"]}], "“ssh://a” of host 2"),
        ([OWN, {"ssh": "studio", "ips": ["0.0.0.0"]}], "“0.0.0.0” of studio"),
        ([OWN, {"ssh": "studio", "ips": ["::"]}], "“::” of studio"),
        ([OWN, {"ssh": "studio", "ips": ["::ffff:0.0.0.0"]}], "“::ffff:0.0.0.0” of studio"),
        ([OWN, {"ssh": "studio", "ips": ["224.0.0.1"]}], "“224.0.0.1” of studio"),
        ([OWN, {"ssh": "studio", "ips": ["fe80::1%a;b"]}], "“fe80::1%a;b” of studio"),
        ([OWN, {"ssh": "studio", "ips": ["10.0.0.2"] * 17}], "studio has 17 addresses"),
        ([OWN, {"ssh": "studio", "ips": ["elsewhere"]}], "“elsewhere” of studio"),
        ([OWN, {"ssh": "studio", "ips": 5}], "“5” of studio"),
        ([OWN, {"ssh": "studio"}], "studio has no address"),
        ([OWN, "studio"], "Host 2 has no name"),
        ([OWN] * 17, "at most 16"),
        ({"backend": "mpi", "hosts": [OWN]}, "“mpi”"),
        ({"envs": ["LD_PRELOAD=/x"], "hosts": [OWN]}, "LD_PRELOAD"),
        ({"envs": ["MLX_A=$(b)"], "hosts": [OWN]}, "“MLX_A=$(b)”"),
        ({"envs": ["MLX_A=b\n"], "hosts": [OWN]}, "“MLX_A=b ”"),
        ({"envs": ["MLX_A=b"] * 100_000, "hosts": [OWN]}, "100000 lines"),
    ],
)
def test_unusable_hosts_raise_a_sentence(content: Any, words: str) -> None:
    with pytest.raises(HostsFileError) as raised:
        parse_hosts(content)

    assert words in str(raised.value.problem)


@pytest.mark.parametrize(
    "name", ["a_b.local", "user@studio", "user.name@10.0.0.2", "u@fe80::1%en0"]
)
def test_names_for_ssh_are_usable(name: str) -> None:
    (_, host) = parse_hosts([OWN, {"ssh": name, "ips": ["10.0.0.2"]}]).hosts

    assert host.name == name
    assert stage_command(host, ())[-3:-1] == ["--", name]


TEXTS = st.text("a0.-_@%:;=$' \n\u202e\u0660", max_size=6)


@given(TEXTS, TEXTS, TEXTS)
@settings(max_examples=100)
def test_texts_of_a_usable_file_mean_nothing_to_ssh_and_a_shell(
    name: str, address: str, value: str
) -> None:
    entry = {"ssh": name, "ips": [address] if address else []}
    content = {"hosts": [OWN, entry], "envs": [f"MLX_{value}"]}

    hosts, sentence = parsed(content)

    assert sentence.isprintable()
    assert len(sentence) < 400
    for host in hosts[1:]:
        assert all(shlex.quote(text) == text for text in (host.name, *host.ips))
        assert not host.name.startswith("-")
        assert not host.name.split("@")[-1].startswith("-")


def parsed(content: Any) -> tuple[tuple[Host, ...], str]:
    """Return the hosts of a usable file, or no hosts and a sentence."""
    try:
        return parse_hosts(content).hosts, ""
    except HostsFileError as error:
        return (), str(error.problem)


def test_endless_file_raises_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HostsFileError, match="a pipe or a device"):
        read_hosts(Path("/dev/zero"))
    path = tmp_path / "hosts.json"
    path.write_bytes(b" " * 1_000_001)
    with pytest.raises(HostsFileError, match="more than 1,000,000 bytes"):
        read_hosts(path)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_file_without_json_raises_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(HostsFileError, match="is not JSON"):
        read_hosts(path)


def test_missing_file_raises_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HostsFileError, match="can’t be read"):
        read_hosts(tmp_path / "none.json")
