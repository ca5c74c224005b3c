"""The HTTP client that huggingface_hub uses in the child process."""

from __future__ import annotations

from typing import Any

import httpx2
from huggingface_hub.utils._http import hf_request_event_hook
from typing_extensions import override


class HubClient(httpx2.Client):
    """A client that reports at once that there is no connection.

    huggingface_hub waits and retries after a ConnectError, five times and for 23 seconds. It does
    not retry after a plain TransportError. Downloads have pauses and retries of their own.
    """

    def __init__(self) -> None:
        """Create a client with huggingface_hub's own settings."""
        super().__init__(
            event_hooks={"request": [hf_request_event_hook]}, follow_redirects=True, timeout=None
        )

    @override
    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request.

        Raises:
            httpx2.TransportError: the host cannot be reached.
        """
        try:
            return super().send(request, **options)
        except httpx2.ConnectError as error:
            raise httpx2.TransportError(str(error), request=request) from error
