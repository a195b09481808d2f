"""The endpoints: a page, what is served, and predictions of pictures that are sent.

A request names no file: pictures are the bodies of requests, and the page's files are held in memory.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counterpoint.errors import InputError
from counterpoint.serving.formats import as_json
from counterpoint.serving.predict import Predictor, Unread
from counterpoint.serving.web.address import Address
from counterpoint.serving.web.asking import Asked, parse, predicted, shown
from counterpoint.serving.web.connections import TimedConnection
from counterpoint.serving.web.facts import Facts, facts_as_json
from counterpoint.serving.web.limits import Uploads, Worker
from counterpoint.serving.web.page import render, script, style

MOST_SECONDS = 60.0
"""From the end of a request's headers to its answer."""
MOST_CONNECTIONS = 256
_SECONDS_TO_END = 3
_NOT_FOUND = "there is nothing here; the page is /, and pictures are sent to /predict"
_OURS = "the server failed at this request; its terminal says why"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

Endpoint = Callable[[Request], Any]
Answering = Callable[[Predictor, bytes, Asked], dict[str, Any]]


class Service:
    """A predictor behind limits of bytes, of waiting requests and of time."""

    def __init__(
        self,
        predictor: Predictor,
        *,
        uploads: Uploads | None = None,
        worker: Worker | None = None,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        self._predictor, self._most_seconds = predictor, most_seconds
        self._uploads, self._worker = uploads or Uploads(), worker or Worker()

    def endpoint(self, answering: Answering) -> Endpoint:
        """Answers requests that have a picture as their body."""

        async def respond(request: Request) -> Response:
            try:
                asked = parse(request.query_params)
            except InputError as error:
                return _problem(400, str(error))
            try:
                async with asyncio.timeout(self._most_seconds), self._uploads.body(request) as content:
                    return _answer(await self._worker.do(lambda: answering(self._predictor, content, asked)))
            except InputError as error:
                return _answer(as_json(Unread(asked.name, str(error)), self._predictor.correction.name), 400)
            except TimeoutError:
                words = f"there was no answer within {self._most_seconds:g} seconds; try again"
                raise HTTPException(503, words, {"Connection": "close", "Retry-After": "10"}) from None

        return respond

    def close(self) -> None:
        self._worker.close()


def build_app(service: Service, facts: Facts, address: Address) -> ASGIApp:
    """All endpoints behind the guard."""
    routes = [
        Route("/", _fixed(render(facts), "text/html")),
        Route("/page.css", _fixed(style(), "text/css")),
        Route("/page.js", _fixed(script(), "text/javascript")),
        Route("/about", _fixed(json.dumps(facts_as_json(facts), ensure_ascii=False), "application/json")),
        Route("/predict", service.endpoint(predicted), methods=["POST"]),
        Route("/look", service.endpoint(shown), methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refused, Exception: _failed})
    app.router.redirect_slashes = False  # a redirect would repeat the Host header
    return Guard(app, address)


def make_server(app: ASGIApp) -> uvicorn.Server:
    """To be run with the sockets that it listens at. Ctrl-C ends it after the requests that are being answered.

    It has nothing that is not needed: no proxies' headers, no websockets, no log of requests.
    """
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=TimedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=_SECONDS_TO_END,
    )
    return uvicorn.Server(config)


class Guard:
    """Answers 403 to requests with a foreign Host or Origin. It is outermost, so that errors carry the headers too."""

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self._app, self._address = app, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._address.refusal(headers.getlist("host"), headers.getlist("origin"))
        app = _problem(403, refusal) if refusal else self._app
        await app(scope, receive, guarded)


def _fixed(text: str, media_type: str) -> Endpoint:
    async def respond(_: Request) -> Response:
        return Response(text, media_type=media_type)

    return respond


def _answer(values: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    text = json.dumps(values, ensure_ascii=False, allow_nan=False)
    return Response(text, status, headers, media_type="application/json")


def _problem(status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    return _answer({"error": error}, status, headers)


async def _refused(request: Request, exception: Exception) -> Response:
    """An HTTPException as JSON. Starlette raises those for unknown paths and wrong methods."""
    assert isinstance(exception, HTTPException)
    headers = exception.headers or {}
    words = exception.detail
    if exception.status_code == 404:
        words = _NOT_FOUND
    elif exception.status_code == 405:
        allowed = ", ".join(sorted(headers.get("Allow", "").split(", ")))
        words = f"{request.method} is not for this; use {allowed}"
    return _problem(exception.status_code, words, headers)


async def _failed(_request: Request, _exception: Exception) -> Response:
    """The client learns no more than that; the exception is raised again, and uvicorn logs it."""
    return _problem(500, _OURS)
