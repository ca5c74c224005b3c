"""Hold requests that have ended to the bare model, one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events import Verified, Verify
from engine.types import Request
from tests.fakes.inline_engine import InlineClient
from tests.oracle.harness import BITWISE


def hold_to_the_oracle(client: InlineClient, name: str, requests: Iterable[Request]) -> None:
    """Every bit as when the same passes are repeated by an engine that starts cold, and alone."""
    for request in requests:
        client.send(Verify(request.request_id, request.messages))
        (event,) = client.run_until_idle()
        assert isinstance(event, Verified)
        assert event.result.prompt_equal, event.result
        assert event.result.equal, event.result
        assert event.result.replay_difference == 0.0
        if name in BITWISE:
            assert event.result.max_difference == 0.0
