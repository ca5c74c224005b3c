"""A comparison of the answers of finished requests with those of the bare model."""

from __future__ import annotations

from collections.abc import Iterable

from engine.types import Request
from tests.fakes.inline_engine import InlineClient
from tests.oracle.harness import BITWISE


def hold_to_the_oracle(client: InlineClient, name: str, requests: Iterable[Request]) -> None:
    """Assert that each request's answer is exact.

    The bare model starts with empty caches and repeats the passes of the request. Its logits must
    have the same bits. For models in BITWISE, the bare model must also give these bits if it reads
    the prompt in one go.
    """
    for request in requests:
        result = client.answer(client.verify(request.request_id, request.messages))
        assert result.prompt_equal, result
        assert result.equal, result
        assert result.replay_difference == 0.0
        if name in BITWISE:
            assert result.max_difference == 0.0
