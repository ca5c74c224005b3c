"""A comparison of finished requests with the bare model."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events import Verified, Verify
from engine.types import Request
from tests.fakes.inline_engine import InlineClient
from tests.oracle.harness import BITWISE


def hold_to_the_oracle(client: InlineClient, name: str, requests: Iterable[Request]) -> None:
    """Assert that each request's answer is exact.

    The same passes on empty caches, with no other request beside them, must give the same bits. On
    the models in BITWISE, so must a prompt that is read in one go.
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
