"""A client for streamed answers of a server with OpenAI's chat protocol. Standard library only."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any, TypeAlias, cast

from app.cli.tree.scenario import ChatMessage

Json: TypeAlias = dict[str, Any]


class EndpointError(Exception):
    """The server can't be measured. The message is one sentence for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointUsage:
    """The token counts that a server reports for one answer.

    If the server does not report `cached_tokens`, it is 0: many servers leave out this count if it
    is 0.
    """

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswer:
    """The answer of a server to one request."""

    text: str
    reasoning: str
    first_text: str  # first piece of the text; it may hold several tokens
    ttft_ms: float
    total_ms: float
    usage: EndpointUsage | None  # None if the stream was stopped before the counts, which come last


class Endpoint:
    """A client of a chat endpoint. It reads one streamed reply at a time.

    `options` are further fields of the request. With needs_usage=False a server may report no token
    counts.

    Raises:
        EndpointError: the URL does not begin with http:// or https://.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        needs_usage: bool = True,
        options: Mapping[str, object] | None = None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise EndpointError(f"{url} is no address: one begins with http:// or https://")
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._model = model
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._timeout_s = timeout_s
        self._needs_usage = needs_usage
        self._options = dict(options or {})

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        thinking: bool,
        max_tokens: int,
        stop_after: int | None = None,
    ) -> ServerAnswer:
        """Return a reply of at most `max_tokens` tokens. Stop after `stop_after` pieces, if given.

        Raises:
            EndpointError: the server gave no answer, or no answer that can be measured.
        """
        body = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "chat_template_kwargs": {"enable_thinking": thinking},
            **self._options,
        }
        request = urllib.request.Request(
            self._url, json.dumps(body).encode(), self._headers, method="POST"
        )
        start = time.perf_counter()
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                return self._read(response, start, stop_after)
        except urllib.error.HTTPError as error:
            with error:
                said = " ".join(error.read(300).decode(errors="replace").split())
            raise EndpointError(
                f"{self._url} answered {error.code} {error.reason}: {said}"
            ) from error
        except urllib.error.URLError as error:
            raise EndpointError(f"{self._url} can't be reached: {error.reason}") from error
        except (OSError, HTTPException) as error:
            raise EndpointError(f"{self._url} broke off its answer: {error!r}") from error

    def _read(self, response: HTTPResponse, start: float, stop_after: int | None) -> ServerAnswer:
        text = reasoning = first_text = ""
        ttft_ms: float | None = None
        usage: EndpointUsage | None = None
        pieces = 0
        for event in self._events(response):
            usage = _usage(event) or usage
            delta = _delta(event)
            said = delta.get("content") or ""
            thought = delta.get("reasoning_content") or delta.get("reasoning") or ""
            if not said and not thought:
                continue
            if ttft_ms is None:
                ttft_ms, first_text = (time.perf_counter() - start) * 1e3, said
            text, reasoning, pieces = text + said, reasoning + thought, pieces + 1
            if pieces == stop_after:
                break
        else:
            if usage is None and self._needs_usage:
                raise EndpointError(
                    f"{self._url} reports no usage: without prompt_tokens nothing can be measured"
                )
        total_ms = (time.perf_counter() - start) * 1e3
        return ServerAnswer(
            text=text,
            reasoning=reasoning,
            first_text=first_text,
            ttft_ms=total_ms if ttft_ms is None else ttft_ms,  # None: the answer has no text
            total_ms=total_ms,
            usage=usage,
        )

    def _events(self, response: HTTPResponse) -> Iterator[Json]:
        """Yield the events of a stream. Skip the comments that keep the connection open."""
        for line in response:
            field, _, value = line.decode(errors="replace").partition(":")
            if field == "data" and value.strip() != "[DONE]":
                yield self._event(value.strip())

    def _event(self, text: str) -> Json:
        try:
            event: object = json.loads(text)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise EndpointError(f"{self._url} sent no JSON object: {text[:300]}")
        values = cast("Json", event)
        if values.get("error"):
            raise EndpointError(f"{self._url} failed: {json.dumps(values['error'])[:300]}")
        return values


def _delta(event: Json) -> dict[str, str | None]:
    choices: list[Json] = event.get("choices") or [{}]
    return choices[0].get("delta") or {}


def _usage(event: Json) -> EndpointUsage | None:
    values: Json = event.get("usage") or {}
    if values.get("prompt_tokens") is None:
        return None
    details: Json = values.get("prompt_tokens_details") or {}
    return EndpointUsage(
        prompt_tokens=values["prompt_tokens"],
        cached_tokens=details.get("cached_tokens") or 0,
        output_tokens=values.get("completion_tokens"),
    )
