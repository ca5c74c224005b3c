"""A comparison of the answers of finished requests with those of the bare model."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events import Verified, Verify
from engine.types import Request
from tests.fakes.inline_engine import InlineClient
from tests.oracle.harness import BITWISE


def hold_to_the_oracle(client: InlineClient, name: str, requests: Iterable[Request]) -> None:
    """Assert that each request's answer is exact.

    The bare model must give the same bits for the same passes on empty caches, without other
    requests. For models in BITWISE, a prompt that is read in one go must also give these bits.
    """
    for request in requests:
        client.send(Verify(request.request_id, request.messages))
        (event,) = client.run_until_idle()
        assert isinstance(event, Verified)
        assert event.result.prompt_equal, event.result
        assert event.result.equal, event.result
        assert event.result.replay_difference == 0.0
        if name in BITWISE:
            assert event.result.max_difference == 0.0
