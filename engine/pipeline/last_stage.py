"""Rank 0's model: the last layers here, all others behind the relay. The engine sees one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
from typing_extensions import override

from engine.cache.layout import Layout
from engine.cache.positions import ConversationCaches, shift_of
from engine.errors import ModelFolderError
from engine.models.adapter import stand_in_ids
from engine.models.opening import StageMemory, UntestedModel
from engine.pipeline.far import Received, StageCaches, StageGroup
from engine.pipeline.job import LIMITS
from engine.pipeline.messages import Op
from engine.pipeline.own import OwnLayers, load_own_part, require_exact, require_tower
from engine.pipeline.relay import Relay
from engine.vision.tower import EncodedPicture


class StagedModel(OwnLayers):
    """The whole model as the engine uses it. Caches end with an object for the other stages."""

    relay: Relay
    followers: Sequence[Layout] = ()

    @override
    def new_caches(self) -> list[object]:
        own = super().new_caches()
        if self.followers:
            own.append(StageCaches(self.relay, self.followers))
        return own

    @override
    def run(self, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        others = caches[-1]
        if isinstance(others, StageGroup):
            received = others.run_pass(input_ids)
        else:
            assert isinstance(others, StageCaches)
            received = others.run_pass(input_ids, shift_of(caches))
        return self._finished(input_ids, caches, received)

    @override
    def read_picture(self, picture: EncodedPicture, caches: Sequence[object]) -> mx.array:
        others = caches[-1]
        assert isinstance(others, StageCaches)
        received = others.read_picture(picture, shift_of(caches))
        return self._finished(stand_in_ids(picture), caches, received, picture)

    def _finished(
        self,
        input_ids: mx.array,
        caches: Sequence[object],
        received: Received,
        picture: EncodedPicture | None = None,
    ) -> mx.array:
        """Run the own layers on what the followers have computed. Return the logits."""
        own = ConversationCaches(caches[:-1])
        own.shift = shift_of(caches)
        return self.pass_through(input_ids, own, *received, picture)[0]

    @override
    def send_ahead(self, token_ids: Sequence[int], caches: Sequence[object]) -> bool:
        others = caches[-1]
        assert isinstance(others, StageCaches)
        if max(token_ids) >= self.vocab_size:
            return False  # they are a picture, or `forward` will refuse them
        others.send_ahead(mx.array([token_ids], mx.int32), shift_of(caches))
        return True


class LastStage:
    """Opens the model of rank 0. The followers have loaded their layers already, and rest."""

    needs_all = False

    def __init__(
        self,
        folder: Path,
        layers: Sequence[int],
        relay: Relay,
        *,
        loading: Callable[[int, int], None] = lambda _done, _total: None,
        ready: Callable[[StageMemory], None] = lambda _: None,
    ) -> None:
        """Keep what is needed to open the model.

        Args:
            folder: the only model folder that can be opened.
            layers: number of layers of each rank, rank 0 first.
            relay: the connection to the followers.
            loading: called with the loaded bytes and the total bytes of the own weights.
            ready: called with the sizes of the own layers, once they are loaded.
        """
        self._folder = folder
        self._layers = layers
        self.relay = relay
        self._loading = loading
        self._ready = ready

    @property
    def namespace(self) -> str:
        """The split and the devices of all stages: the bits of a result depend on them."""
        facts = [str(report["facts"]) for report in self.relay.ask(Op.REPORT).values()]
        return f"{list(self._layers)} {facts}"

    def open(
        self, path: Path, progress: Callable[[int, int], None], kv_bits: int | None
    ) -> UntestedModel:
        if path.resolve() != self._folder.resolve():
            raise ModelFolderError(
                f"The stages hold {self._folder.name}, not {path.name}.",
                advice="Start them again with the other model.",
            )
        if kv_bits is not None:
            raise ModelFolderError(LIMITS, advice="Turn the quantisation of K/V off.")
        require_exact(self._folder)
        require_tower(self._folder)
        end = sum(self._layers)
        own = load_own_part(self._folder, end - self._layers[0], end, progress, kind=StagedModel)
        others = self._others()
        own.part.relay = self.relay
        self.relay.received_forms = own.part.received_forms
        own.part.followers = [stage.layout for stage in others]
        return UntestedModel(own.part, own.config, others=tuple(others))

    def rest(self) -> float | None:
        return self.relay.rest()

    def _others(self) -> list[StageMemory]:
        reports = self.relay.ask(Op.REPORT)
        return [_memory(reports[rank]["memory"]) for rank in range(1, len(self._layers))]


def _memory(values: dict[str, Any]) -> StageMemory:
    layout: dict[str, Any] = values.pop("layout")
    layout.pop("stages")
    return StageMemory(Layout(**layout), **values)
