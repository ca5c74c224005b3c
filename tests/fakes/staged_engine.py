"""The real engine on a model in several stages, all of them in the test's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.pipeline.follower import Follower
from engine.pipeline.last_stage import LastStage
from engine.pipeline.messages import Encoded, Expected, Op, StageMessage
from engine.pipeline.relay import Relay
from engine.pipeline.run import load_follower, staged_config
from tests.fakes.asking import cache_of
from tests.fakes.inline_engine import InlineClient


class DirectLine:
    """Rank 0's connection to followers in the same process. They work when a message is received.

    Messages take the form in which they would go over a network, except for their arrays.
    """

    def __init__(self, followers: Sequence[Follower]) -> None:
        """Connect followers, rank 1 first."""
        self._followers = followers
        self._messages: deque[StageMessage] = deque()

    def send(self, message: StageMessage) -> None:
        self._messages.append(message)

    def receive(self, expected: Expected) -> StageMessage:
        message = self._messages.popleft()
        for follower in reversed(self._followers):
            message = follower.handle(_received(message, follower.expected))
        return _received(message, expected)


def _received(message: StageMessage, expected: Expected) -> StageMessage:
    return Encoded.of(message.encoded(), expected).with_arrays(message.arrays)


class StagedClient(InlineClient):
    """A client of an engine whose model is divided. Rank 0 is the engine of InlineClient."""

    def __init__(self, folder: Path, layers: Sequence[int], config: EngineConfig) -> None:
        """Load a model.

        Args:
            folder: the model folder.
            layers: number of layers of each rank, rank 0 first.
            config: the settings of all stages.
        """
        self.followers: Sequence[Follower] = [
            load_follower(folder, layers, rank, config, lambda _done, _total: None)
            for rank in range(1, len(layers))
        ]
        self.opener = LastStage(folder, layers, Relay(DirectLine(self.followers)))
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
