"""The addresses of the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from functools import partial
from itertools import chain

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from app.server import anthropic_models, ollama, ollama_models
from app.server.anthropic_messages import MESSAGES
from app.server.bodies import Bodies
from app.server.chat_request import ChatRequest, Ended, Piece, sum_of
from app.server.errors import ErrorKind, ServerError, invalid
from app.server.fields import Fields
from app.server.generations import Generations
from app.server.guard import Access, Guard
from app.server.metrics import MEDIA_TYPE
from app.server.model_choice import ListedModel
from app.server.openai_chat import CHAT_COMPLETIONS
from app.server.openai_completions import COMPLETIONS
from app.server.openai_responses import RESPONSES
from app.server.protocol import AnswerForm, Protocol, WholeAnswer
from app.server.report import Report
from app.words import server as words

log = logging.getLogger(__name__)

_GONE_STATUS = 499  # status of a response that no client gets, as in nginx
_RETRY_S = "5"  # seconds after which a client may ask again
_NAME = "rejoinder"
_PROTOCOLS = {
    "/v1/chat/completions": CHAT_COMPLETIONS,
    "/v1/completions": COMPLETIONS,
    "/v1/messages": MESSAGES,
    "/v1/responses": RESPONSES,
    "/api/chat": ollama.CHAT,
    "/api/generate": ollama.GENERATE,
}
_OLLAMA = "/api/"  # start of all addresses of Ollama


def make_application(generations: Generations, access: Access) -> Guard:
    """Return the ASGI application of a server."""
    bodies = Bodies()

    def bar(request: Request, error: ServerError) -> Response:
        generations.live.note_barred(Report(client=_client(request), ended=error))
        return _refusal(request, error)

    routes = [
        Route("/", _hello, methods=["GET", "HEAD"]),
        Route("/health", _hello),
        Route("/v1/models", partial(_models, generations)),
        Route("/v1/models/{name:path}", partial(_model, generations)),
        Route("/metrics", partial(_metrics, generations)),
        Route("/api/version", _ollama_version),
        Route("/api/tags", partial(_ollama_tags, generations)),
        Route("/api/ps", partial(_ollama_running, generations)),
        Route("/api/show", partial(_ollama_show, generations, bodies), methods=["POST"]),
    ]
    for path, protocol in _PROTOCOLS.items():
        answer = partial(_answer, generations, bodies, protocol)
        routes.append(Route(path, answer, methods=["POST"]))
    count = partial(_count, generations, bodies, MESSAGES)
    routes.append(Route("/v1/messages/count_tokens", count, methods=["POST"]))
    handlers = {
        HTTPException: partial(_on_http_error, bar),
        ServerError: _on_error,
        ClientDisconnect: _on_gone,
        Exception: _on_bug,
    }
    return Guard(Starlette(routes=routes, exception_handlers=handlers), access, bar)


async def _hello(_request: Request) -> Response:
    return PlainTextResponse(f"{_NAME}\n")


async def _models(generations: Generations, request: Request) -> Response:
    models = await generations.models.listed()
    if anthropic_models.is_wanted(request.headers):
        return JSONResponse(anthropic_models.make_list(models))
    return JSONResponse({"object": "list", "data": [_as_model(model) for model in models]})


async def _model(generations: Generations, request: Request) -> Response:
    name: str = request.path_params["name"]
    is_anthropic = anthropic_models.is_wanted(request.headers)
    as_entry = anthropic_models.make_entry if is_anthropic else _as_model
    for model in await generations.models.listed():
        if model.name == name:
            return JSONResponse(as_entry(model))
    loaded = await generations.models.loaded()
    sentence = words.NO_MODEL if loaded is None else words.other_model(name, loaded.name)
    raise ServerError(ErrorKind.NOT_FOUND, sentence)


def _as_model(model: ListedModel) -> dict[str, object]:
    length = {"context_length": model.context_len} if model.context_len else {}
    return {
        "id": model.name,
        "object": "model",
        "created": 0,
        "owned_by": "local",
        **length,
    }


async def _metrics(generations: Generations, _request: Request) -> Response:
    return PlainTextResponse(generations.metrics.text, media_type=MEDIA_TYPE)


async def _ollama_version(_request: Request) -> Response:
    return JSONResponse(ollama_models.VERSION)


async def _ollama_tags(generations: Generations, _request: Request) -> Response:
    return JSONResponse(ollama_models.tags(await generations.models.listed()))


async def _ollama_running(generations: Generations, _request: Request) -> Response:
    return JSONResponse(ollama_models.running(await generations.models.loaded()))


async def _ollama_show(generations: Generations, bodies: Bodies, request: Request) -> Response:
    with generations.reported_refusals(_client(request)):
        async with bodies.read(request) as fields:
            name = fields.raw("model")
        loaded = await generations.models.required()
        first, *others = await generations.models.listed()
        model = next((other for other in others if other.name == name), first)
        return JSONResponse(ollama_models.show(model, loaded))


async def _answer(
    generations: Generations, bodies: Bodies, protocol: Protocol, request: Request
) -> Response:
    """Answer a chat, whole or as a stream. Until it begins, no other request replaces the model."""
    async with AsyncExitStack() as until_begun:
        return await _begin_answer(generations, bodies, protocol, request, until_begun)


async def _begin_answer(
    generations: Generations,
    bodies: Bodies,
    protocol: Protocol,
    request: Request,
    until_begun: AsyncExitStack,
) -> Response:
    with generations.unopened_request(_client(request)):
        async with bodies.read(request) as fields:
            is_stream = protocol.streams if (flag := fields.flag("stream")) is None else flag
            used_model = generations.models.used(fields.text("model"))
            model = await until_begun.enter_async_context(used_model)
            if (body := protocol.without_answer(fields, model)) is not None:
                return JSONResponse(body, headers=_ignored(fields.unused))
            chat = protocol.read(fields)
            form = protocol.form(fields, chat, model)
            chat = _completed(chat, fields, request)
        del fields  # while the answer is written, its memory would not count
    pieces = generations.generate(chat)
    if not is_stream:
        return await _whole(request, chat, form, pieces)
    headers = {**_headers(chat), "cache-control": "no-cache"}
    # An error before the first piece gets a status of its own, if the protocol has one for it.
    try:
        first = await anext(pieces)
    except ServerError as error:
        if error.kind not in protocol.streamed_errors:
            raise
        failed = "".join(chain(form.begin(), form.error(error)))
        return Response(failed, media_type=protocol.stream_type, headers=headers)
    events = _events(form, first, pieces)
    return StreamingResponse(events, media_type=protocol.stream_type, headers=headers)


async def _count(
    generations: Generations, bodies: Bodies, protocol: Protocol, request: Request
) -> Response:
    """Count the tokens of a chat."""
    with generations.reported_refusals(_client(request)):
        async with bodies.read(request) as fields:
            name = fields.text("model")
            chat = _completed(protocol.read(fields), fields, request)
        del fields
        async with generations.models.used(name):
            num_tokens = await generations.count(chat)
    return JSONResponse({"input_tokens": num_tokens}, headers=_headers(chat))


def _completed(chat: ChatRequest, fields: Fields, request: Request) -> ChatRequest:
    """Add the client and the ignored fields to a request, after all of its body was read."""
    ignored = (*chat.ignored, *fields.unused)
    return replace(chat, client=_client(request), ignored=ignored)


async def _events(
    form: AnswerForm, first: Piece, pieces: AsyncGenerator[Piece]
) -> AsyncIterator[str]:
    """Yield the events of a stream. If the client goes, the answer is stopped."""
    async with aclosing(pieces):
        try:
            for event in chain(form.begin(), form.events(first)):
                yield event
            async for piece in pieces:
                for event in form.events(piece):
                    yield event
        except ServerError as error:
            for event in form.error(error):
                yield event


async def _whole(
    request: Request, chat: ChatRequest, form: AnswerForm, pieces: AsyncGenerator[Piece]
) -> Response:
    """Return a whole answer. If the client goes before, the answer is stopped."""
    answers = [WholeAnswer() for _ in range(chat.num_answers)]

    async def collect() -> None:
        async with aclosing(pieces):
            async for piece in pieces:
                answers[piece.index].add(piece)

    collecting = asyncio.ensure_future(collect())
    going = asyncio.ensure_future(request.receive())  # the next message says that the client went
    try:
        await asyncio.wait({collecting, going}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        going.cancel()
        if not collecting.done():
            collecting.cancel()
    if not collecting.done():
        raise ClientDisconnect
    await collecting
    ended = sum_of([answer.ended for answer in answers if answer.ended is not None])
    return JSONResponse(form.several(answers, ended), headers=_headers(chat, ended))


def _headers(chat: ChatRequest, ended: Ended | None = None) -> dict[str, str]:
    """Return the headers of an answer: what was ignored, and where the tokens came from."""
    headers = _ignored(chat.ignored)
    if ended is not None:
        headers["x-rejoinder-restored"] = str(ended.restored)
        headers["x-rejoinder-replayed"] = str(ended.replayed)
        headers["x-rejoinder-read"] = str(ended.read)
    return headers


def _ignored(names: Iterable[str]) -> dict[str, str]:
    """Return the header that names the ignored fields of a body."""
    text = ", ".join(names)[:500].strip()  # a header that ends with a blank is refused
    if not text:
        return {}
    return {"x-rejoinder-ignored": "".join(c if " " <= c <= "~" else "?" for c in text)}


def _refusal(request: Request, error: ServerError) -> Response:
    """Return the response to a refused request, in the protocol of its path or its headers."""
    path: str = request.scope["path"]
    protocols = {**_PROTOCOLS, _OLLAMA: ollama.CHAT}
    found = (protocol for start, protocol in protocols.items() if path.startswith(start))
    is_anthropic = anthropic_models.is_wanted(request.headers)
    default = MESSAGES if is_anthropic else CHAT_COMPLETIONS
    body = next(found, default).error_body(error)
    passes = error.kind in (ErrorKind.BUSY, ErrorKind.UNAVAILABLE)
    headers = {"retry-after": _RETRY_S} if passes else None
    return JSONResponse(body, error.status, headers)


def _client(request: Request) -> str:
    """Return the name of the program that sent a request, such as "codex"."""
    agent = request.headers.get("user-agent", "").split("/")[0].strip()
    printable = "".join(char for char in agent[:40] if char.isprintable())
    return printable or words.UNKNOWN_CLIENT


async def _on_http_error(
    bar: Callable[[Request, ServerError], Response], request: Request, error: Exception
) -> Response:
    assert isinstance(error, HTTPException)
    path: str = request.scope["path"]
    if error.status_code == 405:
        allowed = Headers(error.headers).get("allow", "")
        methods = ", ".join(sorted(allowed.split(", ")))  # Starlette has them in any order
        response = bar(request, invalid(words.wrong_method(methods)))
        response.headers["allow"] = methods
    else:
        sentence = words.OLLAMA_ROUTES if path.startswith(_OLLAMA) else words.NO_ROUTE
        response = bar(request, ServerError(ErrorKind.NOT_FOUND, sentence))
    response.status_code = error.status_code
    return response


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServerError)
    return _refusal(request, error)


async def _on_gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=_GONE_STATUS)


async def _on_bug(request: Request, _error: Exception) -> Response:
    return _refusal(request, ServerError(ErrorKind.BROKEN, words.BROKEN))
