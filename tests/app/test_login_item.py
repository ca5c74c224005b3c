"""The file that opens the app at login."""

from __future__ import annotations

import plistlib
import sys
from pathlib import Path

import pytest

from app.login_item import LoginItem, login_item
from engine.errors import DiskError

APP = Path("/Applications/Rejoinder.app")


def test_login_item_is_a_private_agent_that_opens_the_app(tmp_path: Path) -> None:
    item = LoginItem(tmp_path / "LaunchAgents" / "login.plist", APP)
    assert not item.is_on
    item.turn_on()
    agent = plistlib.loads(item.file.read_bytes())
    assert agent["ProgramArguments"] == ["/usr/bin/open", str(APP)]
    assert agent["RunAtLoad"] is True
    assert item.file.stat().st_mode & 0o777 == 0o600
    assert item.is_on
    item.turn_off()
    item.turn_off()
    assert not item.is_on


def test_login_item_of_a_moved_app_is_written_again(tmp_path: Path) -> None:
    file = tmp_path / "login.plist"
    assert not LoginItem(file, APP).renew()
    LoginItem(file, APP).turn_on()
    moved = LoginItem(file, Path("/Users/me/Rejoinder.app"))
    assert moved.renew()
    assert "/Users/me/Rejoinder.app" in plistlib.loads(file.read_bytes())["ProgramArguments"]


def test_login_item_that_cannot_be_written_is_a_disk_error(tmp_path: Path) -> None:
    (tmp_path / "LaunchAgents").touch()
    with pytest.raises(DiskError, match="login"):
        LoginItem(tmp_path / "LaunchAgents" / "login.plist", APP).turn_on()


def test_only_a_bundle_on_a_mac_has_a_login_item(monkeypatch: pytest.MonkeyPatch) -> None:
    resources = APP / "Contents" / "Resources"
    monkeypatch.setattr(sys, "platform", "linux")
    assert login_item(resources) is None
    monkeypatch.setattr(sys, "platform", "darwin")
    assert login_item(None) is None
    item = login_item(resources)
    assert item is not None
    assert item.app == APP
    assert item.file.parent.name == "LaunchAgents"
