"""The endpoints: a page, what is served, and predictions of pictures that are sent.

A request names no file: pictures are the bodies of requests, and the page's files are held in memory.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from counterpoint.errors import InputError
from counterpoint.serving.formats import as_json
from counterpoint.serving.predict import Predictor, Unread
from counterpoint.serving.web.address import Address
from counterpoint.serving.web.answers import answer, failed, problem, refused
from counterpoint.serving.web.asking import Asked, parse, predicted, shown
from counterpoint.serving.web.facts import Facts, facts_as_json
from counterpoint.serving.web.guard import Guard
from counterpoint.serving.web.page import render, script, style
from counterpoint.serving.web.uploads import Uploads
from counterpoint.serving.web.worker import Worker

MOST_SECONDS = 60.0
"""From a request's first byte to its answer."""

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
                return problem(400, str(error))
            try:
                async with asyncio.timeout(self._most_seconds), self._uploads.body(request) as content:
                    return answer(await self._worker.do(lambda: answering(self._predictor, content, asked)))
            except InputError as error:
                return answer(as_json(Unread(asked.name, str(error)), self._predictor.correction.name), 400)
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
    app = Starlette(routes=routes, exception_handlers={HTTPException: refused, Exception: failed})
    app.router.redirect_slashes = False  # a redirect would repeat the Host header
    return Guard(app, address)


def _fixed(text: str, media_type: str) -> Endpoint:
    async def respond(_: Request) -> Response:
        return Response(text, media_type=media_type)

    return respond
