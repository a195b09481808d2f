import hashlib
import io
import re
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from counterpoint.data.cifar import CIFAR10, CIFAR100
from counterpoint.data.fetch import ARCHIVES, Archive, fetch, status
from counterpoint.errors import InputError


def tar_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


FILES = {"images/a.bin": bytes(range(256)) * 40, "images/b.bin": b"b" * 3_000}
TAR = tar_of(FILES)
CORRUPTIONS = """gaussian_noise shot_noise impulse_noise defocus_blur glass_blur motion_blur zoom_blur snow frost fog
brightness contrast elastic_transform pixelate jpeg_compression speckle_noise gaussian_blur spatter saturate""".split()


class Handler(BaseHTTPRequestHandler):
    server: "Server"

    def do_GET(self) -> None:
        server, asked = self.server, self.headers["Range"]
        server.asked.append(asked)
        if server.refusals:
            return self.answer(server.refusals.pop(0))
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and server.knows_range else 0
        if start >= len(server.body):
            return self.answer(416)
        content = server.body[start:]
        self.answer(206 if start else 200, {"Content-Length": str(len(content))})
        sent = server.sent_before_drop.pop(0) if server.sent_before_drop else len(content)
        self.wfile.write(content[:sent])
        return None

    def answer(self, code: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


class Server(ThreadingHTTPServer):
    """Serves one file; the lists say how it misbehaves, one entry a request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = TAR
        self.knows_range = True
        self.sent_before_drop: list[int] = []
        self.refusals: list[int] = []
        self.asked: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}/images.tar"

    def archives(self, md5: str = hashlib.md5(TAR).hexdigest()) -> dict[str, Archive]:
        return {"tiny": Archive(self.url, md5, "images")}

    def fetch(self, root: Path) -> Path:
        return fetch("tiny", root, archives=self.archives(), back_off_s=0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def assert_complete(root: Path) -> None:
    """The folder holds what the archive did, and nothing else is left behind."""
    assert {f"images/{file.name}": file.read_bytes() for file in (root / "images").iterdir()} == FILES
    assert [entry.name for entry in root.iterdir()] == ["images"]


def test_a_download_is_unpacked_and_reported(server: Server, tmp_path: Path) -> None:
    reports: list[tuple[int, int | None]] = []
    root = tmp_path / "new" / "folder"
    folder = fetch("tiny", root, lambda done, total: reports.append((done, total)), archives=server.archives())
    assert folder == root / "images"
    assert_complete(root)
    assert reports == sorted(reports)
    assert reports[-1] == (len(TAR), len(TAR))


def test_what_is_there_is_not_downloaded_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    assert server.fetch(tmp_path) == tmp_path / "images"
    assert server.asked == []


def test_an_interrupted_download_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    (tmp_path / "images.tar.part").write_bytes(TAR[:4_000])
    reports: list[tuple[int, int | None]] = []
    fetch("tiny", tmp_path, lambda done, total: reports.append((done, total)), archives=server.archives())
    assert server.asked == ["bytes=4000-"]
    assert reports[-1] == (len(TAR), len(TAR))
    assert_complete(tmp_path)


def test_a_dropped_connection_is_resumed_as_often_as_it_helps(server: Server, tmp_path: Path) -> None:
    server.sent_before_drop = [2_000] * 6
    server.fetch(tmp_path)
    assert server.asked == [None, *(f"bytes={2_000 * n}-" for n in range(1, 7))]
    assert_complete(tmp_path)


def test_a_server_without_ranges_starts_over(server: Server, tmp_path: Path) -> None:
    server.knows_range = False
    server.sent_before_drop = [5_000]
    server.fetch(tmp_path)
    assert server.asked == [None, "bytes=5000-"]
    assert_complete(tmp_path)


def test_a_server_without_ranges_that_drops_is_given_up(server: Server, tmp_path: Path) -> None:
    server.knows_range = False
    server.sent_before_drop = [5_000, 2_000] * 10
    with pytest.raises(InputError, match=f"the connection closed after 2,000 of {len(TAR):,} bytes"):
        server.fetch(tmp_path)
    assert server.asked == [None, "bytes=5000-", "bytes=2000-", "bytes=5000-"]


def test_a_connection_that_adds_nothing_is_given_up(server: Server, tmp_path: Path) -> None:
    server.sent_before_drop = [3_000] + [0] * 10
    with pytest.raises(InputError, match="the connection closed after 3,000"):
        server.fetch(tmp_path)
    assert server.asked == [None] + ["bytes=3000-"] * 3
    assert (tmp_path / "images.tar.part").read_bytes() == TAR[:3_000]
    assert not (tmp_path / "images").exists()


def test_a_part_that_is_whole_is_only_unpacked(server: Server, tmp_path: Path) -> None:
    (tmp_path / "images.tar.part").write_bytes(TAR)
    server.fetch(tmp_path)
    assert server.asked == [f"bytes={len(TAR)}-"]
    assert_complete(tmp_path)


@pytest.mark.parametrize("part", [b"", b"other bytes", TAR + b"too long"], ids=["fresh", "stale", "too long"])
def test_altered_bytes_are_refused_and_removed(server: Server, tmp_path: Path, part: bytes) -> None:
    if part:
        (tmp_path / "images.tar.part").write_bytes(part)
    else:
        server.body = TAR[:-1] + b"!"
    with pytest.raises(InputError, match=rf"{re.escape(server.url)} has the md5 \w+, but it must have .* removed"):
        server.fetch(tmp_path)
    assert list(tmp_path.iterdir()) == []
    server.body = TAR
    server.fetch(tmp_path)
    assert_complete(tmp_path)


def test_a_busy_server_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.refusals = [503, 429]
    server.fetch(tmp_path)
    assert len(server.asked) == 3
    assert_complete(tmp_path)


def test_a_file_that_is_gone_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    server.refusals = [404] * 10
    with pytest.raises(InputError, match=f"tiny could not be fetched from {re.escape(server.url)} .*404.*by hand"):
        server.fetch(tmp_path)
    assert len(server.asked) == 1


def test_no_connection_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    closed = Server()
    closed.server_close()
    with pytest.raises(InputError, match=rf"{re.escape(closed.url)} \(.*refused\).*by hand so that .*images is there"):
        closed.fetch(tmp_path)


def test_an_archive_that_reaches_outside_its_folder_is_refused(server: Server, tmp_path: Path) -> None:
    server.body = tar_of(FILES | {"../outside.bin": b"x"})
    archives = server.archives(hashlib.md5(server.body).hexdigest())
    with pytest.raises(InputError, match="outside the destination"):
        fetch("tiny", tmp_path / "root", archives=archives)
    assert [entry.name for entry in tmp_path.rglob("*.bin")] == []
    assert not (tmp_path / "root" / "images").exists()


def test_an_archive_without_its_folder_is_refused(server: Server, tmp_path: Path) -> None:
    server.body = tar_of({"pictures/a.bin": b"x"})
    with pytest.raises(InputError, match="No such file or directory"):
        fetch("tiny", tmp_path, archives=server.archives(hashlib.md5(server.body).hexdigest()))
    assert [entry.name for entry in tmp_path.iterdir()] == ["images.tar.part"]


def test_an_archive_that_ends_early_leaves_no_folder(server: Server, tmp_path: Path) -> None:
    server.body = TAR[:12_000]  # all of a.bin and a piece of b.bin
    with pytest.raises(InputError, match="unexpected end of data"):
        fetch("tiny", tmp_path, archives=server.archives(hashlib.md5(server.body).hexdigest()))
    assert [entry.name for entry in tmp_path.iterdir()] == ["images.tar.part"]


def test_an_unknown_download_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown download 'cifar10c'; did you mean 'cifar10-c'"):
        fetch("cifar10c", tmp_path)


@pytest.mark.parametrize("usual", [True, False])
def test_status_of_an_empty_folder_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual: bool
) -> None:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path if usual else tmp_path / "other"))
    place = "" if usual else f" --data {tmp_path}"
    rows = {row.name: row for row in status(tmp_path)}
    assert list(rows) == [*ARCHIVES, "digits"]
    assert rows["digits"].problem is None
    for name in ARCHIVES:
        assert (rows[name].where, rows[name].size) == ("not found", 0)
        assert rows[name].problem == f"not there; `counterpoint data {name}{place}` downloads it"


def test_status_names_a_broken_file(tmp_path: Path) -> None:
    folder = tmp_path / CIFAR100.python_folder
    folder.mkdir()
    (folder / "train").write_bytes(b"123")
    row = next(row for row in status(tmp_path) if row.name == "cifar100")
    assert (row.where, row.size) == (str(folder), 3)
    assert f"{folder / 'train'} is truncated" in str(row.problem)


def test_status_of_the_corrupted_sets(tmp_path: Path) -> None:
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    for name in CORRUPTIONS:
        np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.uint8, (50_000, 32, 32, 3))

    def problem() -> str | None:
        return next(row.problem for row in status(tmp_path) if row.name == "cifar10-c")

    assert f"{folder / 'labels.npy'} cannot be read" in str(problem())
    np.save(folder / "labels.npy", np.zeros(50_000, np.uint8))
    assert problem() is None
    np.save(folder / "fog.npy", np.zeros((7, 32, 32, 3), np.uint8))
    assert "fog.npy has shape (7, 32, 32, 3) and must have (50000, 32, 32, 3)" in str(problem())
    (folder / "fog.npy").write_bytes((folder / "snow.npy").read_bytes()[:1_000])
    assert "fog.npy cannot be read" in str(problem())


def test_status_of_the_real_data(real_data: Path) -> None:
    rows = {row.name: row for row in status(real_data)}
    for cifar, size in ((CIFAR10, 184_380_000), (CIFAR100, 184_440_000)):
        if (real_data / cifar.binary_folder).is_dir():
            assert rows[cifar.name].problem is None
            assert rows[cifar.name].where == str(real_data / cifar.binary_folder)
            assert rows[cifar.name].size >= size
