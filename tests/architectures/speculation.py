"""Answer with right, wrong and mixed drafts on every model type, alone and three at a time.

    python -m tests.architectures.speculation [TYPE ...]

The drafts are planted: a first engine answers without drafts, and a second one drafts these answers,
with a part of the drafts made wrong. Temperatures are 0, 0.3 and 0.7, with filters and penalties.
One line is printed for each type that answers without speculation, whose tokens differ, or whose
replayed passes have other bits, and then the counts. MLX uses its own BLAS.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pytest

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.events import RequestFinished
from tests.architectures.configs.every import CONFIGS
from tests.architectures.modules import model_modules
from tests.fakes.drafted_requests import SAMPLINGS, answer, ids_of, request_of
from tests.fakes.inline_engine import InlineClient
from tests.fakes.planted_drafts import PlantedDrafts, plant
from tests.fakes.tiny_model import Template, build_tiny

TOLERANCE = 1e-4  # as in engine/checking/oracle.py
REQUESTS = [request_of(number, max_tokens=32) for number in range(len(SAMPLINGS))]


def opened(folder: Path) -> InlineClient:
    client = InlineClient(EngineConfig(use_openblas=False, idle_work=False))
    load_model(client, folder, lambda _: None)
    return client


class Trial:
    """The runs of one model type, and what they found."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.accepted = 0
        self.other_tokens = 0  # number of replies with other tokens than without drafts
        self.replay_difference = 0.0
        self.max_difference = 0.0

    def run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for right in (0.0, 0.7, 1.0):
            drafter = PlantedDrafts(right)
            plant(monkeypatch, drafter)
            plain = ids_of(answer(opened(self._folder), REQUESTS))
            drafter.is_learning = False
            for together in (False, True):
                client = opened(self._folder)
                finished: dict[str, RequestFinished] = {}
                for batch in [REQUESTS] if together else [[request] for request in REQUESTS]:
                    finished |= answer(client, batch)
                found = ids_of(finished)
                self.other_tokens += sum(found[name] != plain[name] for name in plain)
                self.accepted += sum(one.usage.accepted_tokens for one in finished.values())
                self._verify(client)

    def _verify(self, client: InlineClient) -> None:
        for request in REQUESTS:
            result = client.answer(client.verify(request.request_id, request.messages))
            self.replay_difference = max(self.replay_difference, result.replay_difference)
            self.max_difference = max(self.max_difference, result.max_difference)

    @property
    def verdict(self) -> str:
        if self.replay_difference:
            return f"replayed bits differ by {self.replay_difference:.1e}"
        if not self.accepted:
            return "no speculation"
        if self.other_tokens:
            return f"{self.other_tokens} other replies, logits differ by {self.max_difference:.1e}"
        return "same tokens, same bits" if not self.max_difference else "same tokens"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TYPE")
    counts: dict[str, int] = {}
    failed = False
    for name in parser.parse_args().names or model_modules():
        with tempfile.TemporaryDirectory() as parent, pytest.MonkeyPatch.context() as monkeypatch:
            try:
                build_tiny(name, Path(parent) / name, Template.KEEPING, CONFIGS)
                trial = Trial(Path(parent) / name)
                trial.run(monkeypatch)
                verdict = trial.verdict
            except (Exception, SystemExit) as error:  # noqa: BLE001 — a module may raise anything
                verdict = f"not run: {error!r}"
            else:
                failed = failed or trial.replay_difference > 0 or trial.max_difference > TOLERANCE
        if not verdict.startswith("same tokens"):
            print(f"{name}: {verdict}", flush=True)
        kind = verdict.split(":")[0].split(" by ")[0].lstrip("0123456789 ")
        counts[kind] = counts.get(kind, 0) + 1
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
