"""Measure the memory of models without loading them, in a process of its own. No mlx here.

The process (engine/models/measuring.py) builds the model's class with mlx-lm and reads the shapes
of its arrays. A table of formulas for each architecture would be a second description of what
mlx-lm does, and would have to follow each of its 126 types. The process starts with the first
measurement, which takes one second more, and ends with `close`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from engine.catalog.card import ModelCard
from engine.catalog.fit import Device, Fit, ModelMemory, judge
from engine.catalog.inspect import require_buildable
from engine.config import EngineConfig
from engine.errors import ModelFolderError
from engine.worker.child import ChildEndedError, ChildProcess
from engine.worker.frames import Frame

# Qwen3.5 35B-A3B takes 0.15 seconds and 123 MB; the imports take a second.
_LIMIT_S: Final = 15.0
_MAX_BYTES: Final = 1 << 30
_ADVICE: Final = "Choose another model."


class FitMeter:
    """A measure of models. Any thread may use it; it measures one model at a time."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config  # of the next measurement
        self._child = ChildProcess("engine.models.measuring")
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the process. The next measurement starts it again."""
        with self._lock:
            self._child.close()

    def fit_folder(self, card: ModelCard) -> Fit:
        """Return the fit of a model folder, which must be usable.

        Raises:
            ModelFolderError: the model cannot be loaded or measured.
        """
        if card.problem is not None:
            raise ModelFolderError.of(card.problem)
        return self._measured({"folder": str(card.path)}, b"")

    def fit_config(self, config: str, file_bytes: int) -> Fit:
        """Return the fit of a model that is not on this machine.

        Args:
            config: the text of config.json.
            file_bytes: bytes of all weight files.

        Raises:
            UserFixableError: mlx-lm cannot build the model.
        """
        require_buildable(config)
        return self._measured({"file_bytes": file_bytes}, config.encode())

    def _measured(self, header: Mapping[str, object], body: bytes) -> Fit:
        call = Frame({**header, "on_cpu": self.config.on_cpu}, body)
        with self._lock:
            self._child.drop_ended()
            try:
                answer = self._child.exchange(call, limit_s=_LIMIT_S, max_bytes=_MAX_BYTES)
            except ChildEndedError as error:
                raise _unmeasured(str(error)) from error
        if (cause := answer.header.get("error")) is not None:
            raise _unmeasured(str(cause))
        numbers = answer.header
        memory = ModelMemory(
            weight_bytes=_number(numbers, "weight_bytes"),
            read_bytes=_number(numbers, "read_bytes"),
            kv_bytes_per_token=_number(numbers, "kv_bytes_per_token"),
            snapshot_bytes=_number(numbers, "snapshot_bytes"),
        )
        device = Device(
            memory_bytes=self.config.device_bytes or _number(numbers, "device_bytes"),
            chip=str(numbers["chip"]),
        )
        return judge(memory, device, self.config)


def _number(numbers: Mapping[str, object], name: str) -> int:
    number = numbers[name]
    assert isinstance(number, int)
    return number


def _unmeasured(reason: str) -> ModelFolderError:
    cause = "Its size in memory can’t be told from its description."
    return ModelFolderError(cause, advice=_ADVICE, details=reason)
