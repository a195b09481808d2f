"""Answers as JSON, also those to requests that cannot be served."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_NOT_FOUND = "there is nothing here; the page is /, and pictures are sent to /predict"
_OURS = "the server failed at this request; its terminal says why"


def answer(values: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    text = json.dumps(values, ensure_ascii=False, allow_nan=False)
    return Response(text, status, headers, media_type="application/json")


def problem(status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    return answer({"error": error}, status, headers)


async def refused(request: Request, exception: Exception) -> Response:
    """An HTTPException as JSON. Starlette raises those for unknown paths and wrong methods."""
    assert isinstance(exception, HTTPException)
    headers = exception.headers or {}
    words = exception.detail
    if exception.status_code == 404:
        words = _NOT_FOUND
    elif exception.status_code == 405:
        allowed = ", ".join(sorted(headers.get("Allow", "").split(", ")))
        words = f"{request.method} is not for this; use {allowed}"
    return problem(exception.status_code, words, headers)


async def failed(_request: Request, _exception: Exception) -> Response:
    """The client learns no more than that; the exception is raised again, and uvicorn logs it."""
    return problem(500, _OURS)
