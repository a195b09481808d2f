"""A real server, asked over real connections."""

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from counterpoint import __version__
from counterpoint.serving.formats import json_lines
from counterpoint.serving.predict import Prediction, Predictor
from counterpoint.serving.web.address import Address
from counterpoint.serving.web.app import Service
from counterpoint.serving.web.limits import Uploads, Worker
from tests.images.pictures import bomb
from tests.serving.web.conftest import Answer, ask, picture

Serve = Callable[[Service], Address]


def send(address: Address, content: bytes, head: str = "POST /predict HTTP/1.1") -> bytes:
    """All that comes back for bytes that no well-behaved client would send."""
    with socket.create_connection(("127.0.0.1", address.port), timeout=20) as connection:
        connection.sendall(f"{head}\r\nHost: 127.0.0.1:{address.port}\r\n".encode() + content)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received


def test_answers_are_those_of_predict_bit_for_bit(
    whole_server: Address, whole_predictor: Predictor, pictures: list[Path], tmp_path: Path
) -> None:
    others = [tmp_path / "large.jpg", tmp_path / "clear.webp"]
    others[0].write_bytes(picture(300, format_="JPEG"))
    others[1].write_bytes(picture(50, mode="RGBA", format_="WEBP"))
    for path in [*pictures, *others]:
        (line,) = json_lines(whole_predictor.predict([path]), whole_predictor.correction.name)
        answer = ask(whole_server, f"/predict?name={path}", path.read_bytes())
        assert (answer.status, answer.content.decode()) == (200, line)
        assert set(answer.json) == {"path", "class", "confidence", "members", "agree", "sure", "recalibration"}
    assert ask(whole_server, "/predict", pictures[0].read_bytes()).json["path"] is None


def test_a_corruption_changes_the_picture_first(whole_server: Address, digit: bytes) -> None:
    plain, none, foggy, again = (
        ask(whole_server, f"/predict{query}", digit).json
        for query in ("", "?corruption=fog&severity=0", "?corruption=fog&severity=5", "?corruption=fog&severity=5")
    )
    assert plain == none
    assert foggy == again
    assert plain["confidence"] != foggy["confidence"]
    shown = ask(whole_server, "/look?corruption=fog&severity=5", digit).json
    assert shown["prediction"] == foggy
    assert shown["picture"].startswith("data:image/png;base64,")


def test_about_says_what_is_served(whole_server: Address) -> None:
    about = ask(whole_server, "/about").json
    assert (about["counterpoint"], about["members"], about["size"]) == (__version__, 4, 32)
    assert about["severities"] == [0, 1, 2, 3, 4, 5]
    assert len(about["corruptions"]) == 19
    assert {"low", "high", "count", "confidence", "accuracy", "draws"} == set(about["reliability"]["bins"][0])


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript"), ("/about", "application/json")],
)
def test_the_pages_files_carry_what_protects_them(whole_server: Address, path: str, kind: str) -> None:
    answer = ask(whole_server, path)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith(kind)
    assert_guarded(answer)
    assert ask(whole_server, path, method="HEAD").content == b""


def assert_guarded(answer: Answer) -> None:
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "server" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/predict", 405, "GET is not for this; use POST"),
        ("PUT", "/", 405, "PUT is not for this; use GET, HEAD"),
        ("GET", "/run.json", 404, "there is nothing here"),
        ("GET", "/predict/", 404, "there is nothing here"),
        ("GET", "/../../etc/passwd", 404, "there is nothing here"),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404, "there is nothing here"),
        ("GET", "//evil.example/", 404, "there is nothing here"),
        ("POST", "/predict", 400, "there is no picture; send a picture file's bytes as the body of the request"),
        ("POST", "/predict?path=/etc/passwd", 400, "unknown parameter 'path'"),
        ("POST", "/predict?severity=9", 400, "severity is '9'"),
        ("POST", "/look?corruption=fogg&severity=1", 400, "unknown corruption 'fogg'; did you mean 'fog'?"),
    ],
)
def test_wrong_requests_get_a_reason(whole_server: Address, method: str, path: str, status: int, words: str) -> None:
    answer = ask(whole_server, path, method=method)
    assert answer.status == status
    assert words in answer.json["error"]
    assert_guarded(answer)


@pytest.mark.parametrize("endpoint", ["/predict", "/look"])
@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"no picture", "is no picture of a known format"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "is no picture of a known format"),
        (picture()[:200], "is damaged or cut short"),
        (bomb(), "claims "),
        (bomb(8_193, 8_193), "claims 8,193 × 8,193 pixels; at most 67,108,864 are decoded"),
    ],
    ids=["text", "program", "cut short", "bomb", "too many pixels"],
)
def test_what_is_no_picture_gets_the_line_of_predict(
    whole_server: Address, endpoint: str, content: bytes, error: str
) -> None:
    answer = ask(whole_server, f"{endpoint}?name=x.png", content)
    assert answer.status == 400
    assert answer.json["path"] == "x.png"
    assert error in answer.json["error"]


def test_a_form_is_refused_as_a_form(whole_server: Address, digit: bytes) -> None:
    """`curl -F file=@photo.png` sends one."""
    form = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + digit + b"\r\n--x--\r\n"
    answer = ask(whole_server, "/predict", form, headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert answer.status == 400
    assert answer.json["error"] == "the body is a form; send the picture file's bytes alone as the body"


@pytest.mark.parametrize("path", ["/", "/about", "/predict", "/nowhere"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_foreign_hosts_and_origins_are_refused(
    whole_server: Address, path: str, headers: dict[str, str], digit: bytes
) -> None:
    given = {name: value.format(port=whole_server.port) for name, value in headers.items()}
    answer = ask(whole_server, path, digit if path == "/predict" else None, headers=given)
    assert answer.status == 403
    assert next(iter(given.values())) in answer.json["error"]
    assert_guarded(answer)


def test_our_own_origin_is_welcome(whole_server: Address, digit: bytes) -> None:
    for name in ("127.0.0.1", "localhost", "[::1]"):
        ours = f"{name}:{whole_server.port}"
        assert ask(whole_server, "/predict", digit, headers={"Host": ours, "Origin": f"http://{ours}"}).status == 200


def test_a_length_that_is_too_large_is_refused_before_anything_is_read(whole_server: Address) -> None:
    received = send(whole_server, b"Content-Length: 40000000\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 413 ")
    assert b"larger than 32 MiB" in received
    assert b"connection: close" in received.lower()


def test_a_stream_that_grows_too_large_is_refused_on_the_way(serve: Serve, whole_predictor: Predictor) -> None:
    uploads = Uploads(most_bytes=1 << 20)
    address = serve(Service(whole_predictor, uploads=uploads))
    with socket.create_connection(("127.0.0.1", address.port), timeout=20) as connection:
        head = f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        piece, sent = b"10000\r\n" + bytes(1 << 16) + b"\r\n", 0
        try:
            while sent < 1 << 30:
                connection.sendall(piece)
                sent += 1 << 16
        except OSError:
            pass  # it was closed
        assert sent < 1 << 28, "it took everything"
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")
    assert uploads.held == 0


def test_damaged_requests_do_no_harm(whole_server: Address, digit: bytes) -> None:
    for content in (b"Content-Length: x\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"\0\0\0\r\n\r\n", b"Host: a\r\n\r\n"):
        assert send(whole_server, content).startswith(b"HTTP/1.1 400 ")
    with socket.create_connection(("127.0.0.1", whole_server.port)) as connection:
        head = f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1:{whole_server.port}\r\nContent-Length: 1000\r\n\r\nabc"
        connection.sendall(head.encode())  # and no more
    assert ask(whole_server, "/predict", digit).status == 200


def test_a_failure_of_ours_is_told_without_its_details_and_the_server_lives_on(
    whole_server: Address, whole_predictor: Predictor, digit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Prediction:
        raise RuntimeError("a secret")

    with monkeypatch.context() as patch:
        patch.setattr(whole_predictor, "answer", fail)
        answer = ask(whole_server, "/predict", digit)
    assert answer.status == 500
    assert answer.json == {"error": "the server failed at this request; its terminal says why"}
    assert_guarded(answer)
    assert ask(whole_server, "/predict", digit).status == 200


def test_a_request_has_a_time_limit(
    serve: Serve, whole_predictor: Predictor, digit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = serve(Service(whole_predictor, most_seconds=0.3))
    real = whole_predictor.answer

    def slow(*arguments: object) -> Prediction:
        time.sleep(1)
        return real(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(whole_predictor, "answer", slow)
        answer = ask(address, "/predict", digit)
    assert answer.status == 503
    assert answer.json == {"error": "there was no answer within 0.3 seconds; try again"}
    assert "retry-after" in answer.headers
    unfinished = send(address, b"Content-Length: 1000\r\n\r\nabc")
    assert unfinished.startswith(b"HTTP/1.1 503 "), "a body that never comes is not waited for"
    time.sleep(1)
    assert ask(address, "/predict", digit).status == 200


def test_more_than_may_wait_are_told_to_come_back(
    serve: Serve, whole_predictor: Predictor, digit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = serve(Service(whole_predictor, worker=Worker(most_waiting=2)))
    expected = ask(address, "/predict", digit).json
    go, real, answers = threading.Event(), whole_predictor.answer, []

    def wait(*arguments: object) -> Prediction:
        go.wait(20)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(whole_predictor, "answer", wait)
    threads = [threading.Thread(target=lambda: answers.append(ask(address, "/predict", digit))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        if len(answers) == 2:
            break
        time.sleep(0.05)
    assert [answer.status for answer in answers] == [503, 503]
    assert {answer.headers["retry-after"] for answer in answers} == {"2"}
    assert ask(address, "/about").status == 200, "the page is there meanwhile"
    go.set()
    for thread in threads:
        thread.join()
    assert [json.loads(answer.content) for answer in answers[2:]] == [expected] * 3
