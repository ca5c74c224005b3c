"""The queue of downloads, with calls that fail in unexpected ways."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.hub.downloads import Downloads, pause_s
from app.hub.process import Progress
from app.hub.values import Download, DownloadState


@dataclass(slots=True)
class FakeCall:
    """A call to the Hub that ends at once with the result of `act`."""

    act: Callable[[], Any]

    def run(self, progress: Progress = lambda _: None) -> Any:
        return self.act()

    def cancel(self) -> None: ...


def no_process() -> Any:
    raise OSError("too many open files")


@pytest.mark.parametrize("fault", [no_process, dict])
def test_download_with_an_unexpected_fault_fails_and_can_be_resumed(
    tmp_path: Path, fault: Callable[[], Any]
) -> None:
    result = {"revision": "1", "folder": "/models/a", "total": 5}
    acts: list[Callable[[], Any]] = [fault, lambda: result]
    changed = threading.Condition()

    def on_changed() -> None:
        with changed:
            changed.notify_all()

    downloads = Downloads(
        tmp_path / "downloads.json", on_changed, lambda _download: FakeCall(acts.pop(0))
    )

    def wait_for(state: DownloadState) -> Download:
        with changed:
            assert changed.wait_for(lambda: downloads.all[0].state is state, 5)
        return downloads.all[0]

    key = downloads.add("owner/model")
    problem = wait_for(DownloadState.FAILED).problem
    downloads.resume(key)
    done = wait_for(DownloadState.DONE)
    downloads.close()

    assert problem is not None
    assert (done.folder, done.problem) == ("/models/a", None)


@pytest.mark.parametrize(
    ("num_tries", "wait_s", "pause"),
    [(0, 0, 1), (3, 0, 8), (5_000, 0, 60), (0, 100, 100), (0, 99_999_999, 300)],
)
def test_pause_before_a_retry_is_limited(num_tries: int, wait_s: int, pause: int) -> None:
    assert pause_s(num_tries, wait_s) == pause


def test_commit_of_the_queue_file_that_is_no_hash_is_forgotten(tmp_path: Path) -> None:
    row = {"repo_id": "a/b", "chosen": "", "revision": "../../x", "folder": "", "state": "paused"}
    file = tmp_path / "downloads.json"
    file.write_text(json.dumps([{**row, "done_bytes": 0, "total_bytes": 0}]))
    downloads = Downloads(file, lambda: None)
    assert [download.revision for download in downloads.all] == [""]
    downloads.close()
