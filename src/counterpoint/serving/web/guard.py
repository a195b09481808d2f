"""What stands before every request and on every answer: is it meant for this server, and what may a page do."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counterpoint.serving.web.address import Address
from counterpoint.serving.web.answers import problem

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
        app = problem(403, refusal) if refusal else self._app
        await app(scope, receive, guarded)
