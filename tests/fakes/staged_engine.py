"""The real engine on a model in several stages, all of them in the test's thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.pipeline.follower import Follower
from engine.pipeline.last_stage import LastStage
from engine.pipeline.messages import Op
from engine.pipeline.run import direct_stages, staged_config
from tests.fakes.asking import cache_of
from tests.fakes.inline_engine import InlineClient


class StagedClient(InlineClient):
    """A client of an engine whose model is divided. Rank 0 is the engine of InlineClient."""

    def __init__(self, folder: Path, layers: Sequence[int], config: EngineConfig) -> None:
        """Load a model.

        Args:
            folder: the model folder.
            layers: number of layers of each rank, rank 0 first.
            config: the settings of all stages.
        """
        self.opener: LastStage
        self.opener, line = direct_stages(folder, layers, config)
        self.followers: Sequence[Follower] = line.followers
        super().__init__(staged_config(config), self.opener)
        load_model(self, folder, lambda _: None)

    def require_equal_ledgers(self) -> None:
        """Assert that each follower holds what its row of the ledger says, and nothing else."""
        counts = self.opener.relay.ask(Op.COUNT)
        model = self.core.model
        assert model is not None
        _, *rows = cache_of(self).holdings.ledger().rows(model.layout)
        assert [counts[rank]["held"] for rank in range(1, len(rows) + 1)] == rows

    def num_held(self) -> list[int]:
        """Return the number of objects that each follower holds."""
        self.opener.relay.flush()
        return [follower.num_held for follower in self.followers]
