import socket

import pytest

from counterpoint.errors import InputError
from counterpoint.serving.web.address import Address, is_local, listen

HERE = Address("127.0.0.1", 8000)
EVERYWHERE = Address("0.0.0.0", 8000)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"])
def test_this_machine_is_meant_by_its_own_names(host: str) -> None:
    assert HERE.refusal([host], []) == ""
    assert HERE.refusal([host], [f"http://{host}"]) == ""


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8000",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:8001",
        "127.0.0.1:8000.evil.example",
        "localhost.evil.example:8000",
        "localhost.:8000",
        "user@localhost:8000",
        "evil.example:8000@127.0.0.1:8000",
        "192.168.1.5:8000",
        "[::2]:8000",
        "[::1:8000",
        "127.0.0.1:8000 ",
        "127.0.0.1:٨٠٠٠",
        "",
    ],
)
def test_other_hosts_are_refused_also_as_origins(host: str) -> None:
    assert HERE.refusal([host], []).startswith(f"the Host header is {host!r}; this server is http://127.0.0.1:8000")
    assert HERE.refusal(["127.0.0.1:8000"], [f"http://{host}"]).startswith("the request comes from")


def test_exactly_one_host_is_needed() -> None:
    assert "missing" in HERE.refusal([], [])
    assert HERE.refusal(["127.0.0.1:8000", "127.0.0.1:8000"], [])


@pytest.mark.parametrize("origin", ["null", "https://127.0.0.1:8000", "file://", "http://127.0.0.1:8000/", ""])
def test_other_origins_are_refused(origin: str) -> None:
    assert HERE.refusal(["127.0.0.1:8000"], [origin])
    assert HERE.refusal(["127.0.0.1:8000"], ["http://127.0.0.1:8000", origin])


def test_the_usual_port_may_be_left_out() -> None:
    assert Address("127.0.0.1", 80).refusal(["localhost"], ["http://localhost"]) == ""


def test_whoever_listens_everywhere_is_called_by_addresses_but_not_by_names() -> None:
    assert EVERYWHERE.refusal(["192.168.1.5:8000"], ["http://192.168.1.5:8000"]) == ""
    assert Address("::", 8000).refusal(["[fe80::1]:8000"], []) == ""
    assert EVERYWHERE.refusal(["evil.example:8000"], [])
    assert EVERYWHERE.url == "http://127.0.0.1:8000"
    assert Address("::", 8000).url == "http://[::1]:8000"


def test_a_host_that_was_named_is_ours() -> None:
    named = Address("Desk.local", 8000)
    assert named.refusal(["desk.local:8000"], []) == ""
    assert named.refusal(["other.local:8000"], [])
    assert Address("::1", 8000).url == "http://[::1]:8000"


def test_a_port_in_use_is_named() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert is_local(taken)
        with pytest.raises(InputError, match=rf"port {port} of 127.0.0.1 is in use; give another port, or --port 0"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["203.0.113.7", "no such host", "x" * 80, "a..b"])
def test_addresses_of_others_are_refused(host: str) -> None:
    with pytest.raises(InputError, match=r"--host '.*' is not an address of this machine.*; leave --host out"):
        listen(host, 0)


def test_listening_everywhere_is_not_local() -> None:
    with listen("0.0.0.0", 0) as listening:
        assert not is_local(listening)


def test_a_port_that_is_not_ours_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(InputError, match=r"port 80 of 127\.0\.0\.1 needs special rights"):
        listen("127.0.0.1", 80)
