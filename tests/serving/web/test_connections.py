"""Clients that hold a connection and do not go on: 256 of them would otherwise keep everybody else out."""

import socket
import time
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from counterpoint.runs.folder import Run
from counterpoint.serving.predict import Predictor
from counterpoint.serving.web import connections
from counterpoint.serving.web.address import Address
from tests.serving.web.conftest import ask, serving

_LIMIT = 0.6
_REQUEST = b"GET /about HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"


@pytest.fixture
def address(whole_predictor: Predictor, whole_run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Address]:
    monkeypatch.setattr(connections, "MOST_SECONDS_CONNECTED", _LIMIT)
    with serving(whole_predictor, whole_run) as found:
        yield found


def seconds_to_end(client: socket.socket) -> float:
    """After how long the server ends the connection; what it says before is read."""
    started = time.monotonic()
    client.settimeout(10)
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - started


def test_a_client_that_says_nothing_is_let_go(address: Address) -> None:
    with socket.create_connection(("127.0.0.1", address.port)) as client:
        assert seconds_to_end(client) < 4
    assert ask(address, "/about").status == 200


def send_slowly(client: socket.socket, content: bytes) -> None:
    for byte in content:
        client.sendall(bytes([byte]))
        time.sleep(_LIMIT / 4)


def test_a_request_must_arrive_whole(address: Address) -> None:
    """A byte now and then makes no difference."""
    with socket.create_connection(("127.0.0.1", address.port)) as client:
        started = time.monotonic()
        with pytest.raises(ConnectionError):
            send_slowly(client, _REQUEST % address.port)
        assert time.monotonic() - started < 4


def test_a_second_request_must_arrive_whole_too(address: Address) -> None:
    with socket.create_connection(("127.0.0.1", address.port)) as client:
        client.sendall(_REQUEST % address.port)
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        client.sendall(b"GET /ab")
        assert seconds_to_end(client) < 4


def test_answers_must_be_read(address: Address) -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        client.connect(("127.0.0.1", address.port))
        client.sendall((_REQUEST % address.port).replace(b"/about", b"/page.css") * 1000)
        time.sleep(3 * _LIMIT)
        assert seconds_to_end(client) < 4  # after what was on its way


def test_each_request_has_the_whole_time(address: Address) -> None:
    """A connection may be used for as long as its requests come and are answered."""
    client = HTTPConnection("127.0.0.1", address.port, timeout=10)
    started = time.monotonic()
    client.connect()
    while time.monotonic() - started < 3 * _LIMIT:
        client.request("GET", "/about")
        answer = client.getresponse()
        assert (answer.status, len(answer.read()) > 0) == (200, True)
        assert client.sock is not None  # still the first one
        time.sleep(_LIMIT / 4)
    client.close()
