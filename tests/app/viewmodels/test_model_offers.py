from __future__ import annotations

import pytest

from app.hub.values import Download, DownloadState
from app.viewmodels.model_offers import fetching_line

RUNNING = Download(
    repo_id="mlx-community/Qwen3.5-9B-MLX-4bit",
    state=DownloadState.RUNNING,
    done_bytes=4_200_000_000,
    total_bytes=10_000_000_000,
    bytes_per_s=50e6,
)
QUEUED = Download(repo_id="owner/Next-4bit")


@pytest.mark.parametrize(
    ("downloads", "line"),
    [
        ((), ""),
        ((Download(repo_id="a/b", state=DownloadState.DONE),), ""),
        ((Download(repo_id="a/b", state=DownloadState.PAUSED),), ""),
        ((RUNNING,), "Downloading Qwen3.5-9B-MLX-4bit · 42% · 2 min left"),
        ((QUEUED, RUNNING), "Downloading Qwen3.5-9B-MLX-4bit · 42% · 2 min left · 1 more"),
        ((QUEUED,), "Downloading Next-4bit · Waiting"),
        (
            (Download(repo_id="a/b", state=DownloadState.WAITING),),
            "Downloading b · Retrying soon",
        ),
        ((Download(repo_id="a/b", state=DownloadState.RUNNING),), "Downloading b · Starting"),
    ],
)
def test_fetching_line_describes_the_running_download(
    downloads: tuple[Download, ...], line: str
) -> None:
    assert fetching_line(downloads) == line
