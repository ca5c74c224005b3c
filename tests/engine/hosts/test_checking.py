"""The check of hosts: real stages through a program `ssh` that runs its command on this machine."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from app.cli.main import run
from engine.hosts import checking
from engine.hosts.checking import check_hosts, parse_hardware_ports
from engine.hosts.echo import SECRET_BYTES, answer, listen, measure
from engine.hosts.folder import describe, difference
from engine.hosts.hostfile import Hosts, parse_hosts
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.ssh import install_ssh
from tests.fakes.tiny_model import Template

OWN = {"ssh": "localhost", "ips": ["127.0.0.1"]}


def hosts_named(*names: str, ip: str = "127.0.0.1") -> Hosts:
    return parse_hosts([OWN, *({"ssh": name, "ips": [ip]} for name in names)])


@pytest.fixture(autouse=True)
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_ssh(tmp_path, monkeypatch)


@pytest.mark.slow
def test_hosts_that_can_take_part_have_memory_and_a_link(tiny_model: TinyModel) -> None:
    own, studio = check_hosts(hosts_named("studio"), tiny_model("llama", Template.KEEPING))

    assert own.problem is None
    assert own.round_trip_ms is None
    assert studio.problem is None
    assert studio.memory_bytes > 1 << 30
    assert studio.round_trip_ms is not None
    assert studio.bytes_per_s is not None
    assert studio.version


@pytest.mark.slow
def test_hosts_that_cannot_take_part_are_named_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(checking, "_LIMIT_S", 4.0)
    _, refuses, asleep = check_hosts(hosts_named("refuses", "asleep"), None)
    _, wrong = check_hosts(hosts_named("wrong", ip="203.0.113.1"), None)

    assert str(refuses.problem).startswith("refuses refused the login. nobody@refuses: Permission")
    assert str(asleep.problem).startswith("asleep didn’t start. It did not respond")
    assert "203.0.113.1 is not one of its addresses. Correct the hosts file." in str(wrong.problem)
    assert "Start Again" not in f"{refuses.problem} {asleep.problem} {wrong.problem}"


@pytest.mark.slow
def test_command_prints_a_line_a_host_and_fails_if_one_cannot_take_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hosts.json"
    path.write_text('[{"ssh": "localhost"}, {"ssh": "refuses", "ips": ["127.0.0.1"]}]')

    status = run(["hosts", "check", str(path)])

    first, second = capsys.readouterr().out.splitlines()
    assert status == 1
    assert first.startswith("localhost: ready.")
    assert second.startswith("refuses: refuses refused the login.")


def test_same_folder_has_no_difference(tiny_model: TinyModel) -> None:
    own = describe(tiny_model("llama", Template.KEEPING))

    assert difference(own, own, "/m") == ""


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", b"{}", "config.json in /m is another"),
        ("config.json", None, "no model in /m"),
        ("model.safetensors", None, "no weights in /m"),
        ("model.safetensors", b"x", "has 1 bytes instead of"),
    ],
)
def test_other_folder_is_described(
    tiny_model: TinyModel, tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    original = tiny_model("llama", Template.KEEPING)
    copy = shutil.copytree(original, tmp_path / "copy")
    if content is None:
        (copy / name).unlink()
    else:
        (copy / name).write_bytes(content)

    assert words in difference(describe(original), describe(copy), "/m")


def test_missing_file_of_another_stage_is_no_difference(tmp_path: Path) -> None:
    own = {"config": "a", "index": "b", "sizes": {"1.safetensors": 5, "2.safetensors": 6}}
    other = {"config": "a", "index": "b", "sizes": {"2.safetensors": 6}}

    assert difference(own, other, "/m") == ""


def test_echo_without_the_secret_closes_the_connection() -> None:
    listener = listen("127.0.0.1")
    port = listener.getsockname()[1]
    thread = threading.Thread(target=answer, args=(listener, b"a" * SECRET_BYTES))
    thread.start()

    with pytest.raises(OSError):  # noqa: PT011 — the kind depends on the time of the end
        measure("127.0.0.1", port, b"b" * SECRET_BYTES)
    thread.join(10)
    assert not thread.is_alive()


def test_hardware_ports_of_a_mac_are_named_by_interface() -> None:
    listed = (
        "\nHardware Port: Thunderbolt Bridge\nDevice: bridge0\nEthernet Address: 36:0\n"
        "\nHardware Port: Wi-Fi\nDevice: en0\nEthernet Address: 5c:e\n\nVLAN Configurations\n"
    )

    assert parse_hardware_ports(listed) == {"bridge0": "Thunderbolt Bridge", "en0": "Wi-Fi"}
