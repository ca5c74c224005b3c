"""Calls to the Hub in the process of the test, for tests of what a call asks and answers.

A process for each call takes 0.2 s to import the client. Tests of downloads and of the environment
use the real process.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import pytest
from huggingface_hub import constants
from typing_extensions import override

from app.hub import process
from app.hub.calls import CALLS
from app.hub.connection import HubClient
from app.hub.faults import failure_of
from app.hub.process import HubCall, Progress, StoppedError


def call_in_process(patch: pytest.MonkeyPatch) -> None:
    """Let calls run in this process. HF_HOME must be set. A running call cannot be cancelled."""
    home = Path(os.environ["HF_HOME"])
    patch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    patch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))
    patch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)  # as app/hub/program.py does
    patch.setattr(process, "HubCall", _CallHere)


class _CallHere(HubCall):
    """A call that does the work of app/hub/program.py in the calling thread."""

    @override
    def run(self, progress: Progress = lambda _: None) -> Any:
        if self._is_cancelled:
            raise StoppedError
        request = cast("dict[str, Any]", json.loads(json.dumps(self._request)))
        address = os.environ.get("HF_ENDPOINT") or request.get("endpoint") or ""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(constants, "ENDPOINT", address)
            try:
                with HubClient() as client:
                    result = CALLS[request["call"]](client, request, _report_nothing)
            except Exception as error:
                raise self._error(failure_of(error)) from error
        return json.loads(json.dumps(result))


def _report_nothing(**_progress: object) -> None: ...
