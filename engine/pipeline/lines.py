"""The connection of a stage to its neighbours over mlx.distributed."""

# mlx.core.distributed has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, cast

import mlx.core as mx

from engine.cache.trees import evaluate
from engine.pipeline.messages import Encoded, Expected, StageMessage, required_bytes


class GroupLine:
    """The connection to the neighbours in a group of mlx.distributed.

    What is sent must be evaluated before, and what is received is evaluated at once: a transfer in
    one graph with computation would let a GPU wait, and macOS ends work that waits for long.
    Transfers are evaluated one by one, because those of one evaluation arrive in any order.
    """

    def __init__(self, group: Any) -> None:
        self._group = group
        self._next = (group.rank() - 1) % group.size()
        self._previous = (group.rank() + 1) % group.size()

    def send(self, message: StageMessage) -> None:
        data = message.encoded()
        self._send(mx.array([len(data)], mx.int32))
        self._send(mx.array(cast("Any", memoryview(data))))
        for array in message.arrays:
            self._send(mx.contiguous(array, stream=mx.cpu))

    def receive(self, expected: Expected) -> StageMessage:
        announced: Any = self._receive((1,), mx.int32).item()
        data = self._receive((required_bytes(announced),), mx.uint8)
        encoded = Encoded.of(bytes(memoryview(cast("Any", data))), expected)
        return encoded.with_arrays([self._receive(*form) for form in encoded.forms])

    def _send(self, array: mx.array) -> None:
        evaluate(array)
        evaluate(mx.distributed.send(array, self._next, group=self._group, stream=mx.cpu))

    def _receive(self, shape: tuple[int, ...], dtype: mx.Dtype) -> mx.array:
        array = mx.distributed.recv(shape, dtype, self._previous, group=self._group, stream=mx.cpu)
        evaluate(array)
        return array
