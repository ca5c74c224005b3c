"""The child process that talks to the Hugging Face Hub. It makes one call and ends.

Only this process of the app connects to the Internet. A call is one JSON line on standard input.
Answers are JSON lines on standard output: {"progress": ...}, then {"result": ...} or {"error":
{"kind": ..., ...}}. If the app ends, writing the next line fails, and the process ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

# huggingface_hub reads these when it is imported. Xet is off: downloads over HTTP continue at the
# byte at which they stopped, honour proxies, and are the one way that is tested.
_SILENT = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_OFFLINE": "0",
}
_PROGRESS_S = 0.25  # seconds between two lines of progress


def main() -> None:
    """Make the call that standard input describes."""
    os.environ.update(_SILENT)
    request = json.loads(sys.stdin.readline())
    endpoint = request.get("endpoint")
    if endpoint and not os.environ.get("HF_ENDPOINT"):
        os.environ["HF_ENDPOINT"] = endpoint
    # Imported here, because huggingface_hub reads the environment when it is imported.
    from app.hub.calls import CALLS  # noqa: PLC0415
    from app.hub.connection import HubClient  # noqa: PLC0415
    from app.hub.faults import failure_of  # noqa: PLC0415

    try:
        with HubClient() as client:
            result = CALLS[request["call"]](client, cast("Mapping[str, Any]", request), _Reporter())
    except BrokenPipeError:
        os._exit(0)  # the app has ended, so the output has no reader
    except Exception as error:  # noqa: BLE001 — the Hub's client raises errors of many libraries
        _write({"error": asdict(failure_of(error))})
    else:
        _write({"result": result})


class _Reporter:
    """A writer of progress lines, at most four per second."""

    def __init__(self) -> None:
        self._written = 0.0  # time of the last line

    def __call__(self, **progress: object) -> None:
        now = time.monotonic()
        if now - self._written >= _PROGRESS_S:
            self._written = now
            _write({"progress": progress})


def _write(line: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
