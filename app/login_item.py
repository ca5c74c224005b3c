"""The LaunchAgent that opens the app when the user logs in to a Mac.

launchd reads the property lists in ~/Library/LaunchAgents at each login. So the file is the
setting: it exists if the app opens at login. No process is started, and nothing else is changed.
"""

from __future__ import annotations

import plistlib
import sys
from dataclasses import dataclass
from pathlib import Path

from app.words import problems as words
from engine.errors import DiskError
from engine.whole_file import write_whole

LABEL = "org.rejoinder.Rejoinder.login"


@dataclass(frozen=True, slots=True)
class LoginItem:
    """The file of the LaunchAgent, and the .app bundle that it opens. Call on a worker thread."""

    file: Path
    app: Path

    @property
    def is_on(self) -> bool:
        return self.file.is_file()

    def turn_on(self) -> None:
        """Write the file.

        Raises:
            DiskError: the file cannot be written.
        """
        agent = {
            "Label": LABEL,
            "ProgramArguments": ["/usr/bin/open", str(self.app)],
            "RunAtLoad": True,
            "LimitLoadToSessionType": "Aqua",  # a login at the screen, not over ssh
        }
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.file, plistlib.dumps(agent))
        except OSError as error:
            raise DiskError(words.cannot_write(self.file, error.strerror)) from error

    def turn_off(self) -> None:
        """Remove the file.

        Raises:
            DiskError: the file cannot be removed.
        """
        try:
            self.file.unlink(missing_ok=True)
        except OSError as error:
            raise DiskError(words.cannot_write(self.file, error.strerror)) from error

    def renew(self) -> bool:
        """Write the file again if there is one, because the app may have moved. Return is_on.

        Raises:
            DiskError: the file cannot be written.
        """
        if self.is_on:
            self.turn_on()
        return self.is_on


def login_item(bundle: Path | None) -> LoginItem | None:
    """Return the item of an app bundle. `bundle` is its folder Contents/Resources.

    Return None on other systems than macOS, and for an app that runs from its source folder.
    """
    if sys.platform != "darwin" or bundle is None:
        return None
    file = Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    return LoginItem(file, bundle.parents[1])
