"""uvicorn, with nothing that is not needed: no proxies' headers, no websockets, no log of requests."""

import uvicorn
from starlette.types import ASGIApp

MOST_CONNECTIONS = 256
_SECONDS_TO_END = 3


def make_server(app: ASGIApp) -> uvicorn.Server:
    """To be run with the sockets that it listens at. Ctrl-C ends it after the requests that are being answered."""
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
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
