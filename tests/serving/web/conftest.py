"""A run with everything that a page can show, and real servers on free ports."""

import io
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from counterpoint.data.sets import DataSet
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.evaluation.threshold import threshold_run
from counterpoint.records.files import THRESHOLD, write_record
from counterpoint.runs.folder import Run, load_run
from counterpoint.serving.correction import find_promised
from counterpoint.serving.predict import Predictor
from counterpoint.serving.web.address import Address, listen
from counterpoint.serving.web.app import Service, build_app, make_server
from counterpoint.serving.web.facts import find_facts


@dataclass(frozen=True)
class Answer:
    status: int
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        return json.loads(self.content)


def ask(
    address: Address,
    path: str = "/",
    body: bytes | None = None,
    *,
    method: str | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """One request over a connection of its own."""
    connection = HTTPConnection("127.0.0.1", address.port, timeout=60)
    try:
        connection.request(method or ("GET" if body is None else "POST"), path, body, headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.read(), {k.lower(): v for k, v in response.getheaders()})
    finally:
        connection.close()


def picture(side: int = 40, *, mode: str = "RGB", format_: str = "PNG", seed: int = 0) -> bytes:
    """A picture file of smooth noise."""
    small = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    content = io.BytesIO()
    Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC).convert(mode).save(content, format_)
    return content.getvalue()


@contextmanager
def serving(predictor: Predictor, run: Run, service: Service | None = None) -> Iterator[Address]:
    """A real server in a thread."""
    service = service or Service(predictor)
    with listen("127.0.0.1", 0) as listening:
        address = Address("127.0.0.1", listening.getsockname()[1])
        server = make_server(build_app(service, find_facts(run, predictor), address))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            _wait(address.port)
            yield address
        finally:
            server.should_exit = True
            thread.join(timeout=20)
            service.close()
        assert not thread.is_alive()


def _wait(port: int) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    pytest.fail("the server does not start")


@pytest.fixture(scope="session")
def whole_run(bare_run: Run, digits: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Evaluated, recalibrated, and with a threshold."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    shutil.copytree(bare_run.folder, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("counterpoint.training.run_images.load", lambda *_: digits)
        evaluate_run(load_run(folder), folder, suites=(), device="cpu")
    recalibrate_run(load_run(folder))
    found = threshold_run(load_run(folder), 0.5)
    # Moved to where pictures lie on both sides of it, which so few images could not prove.
    chosen = replace(found.promise.chosen, threshold=0.9)
    write_record(folder / THRESHOLD, replace(found, promise=replace(found.promise, chosen=chosen)))
    return load_run(folder)


@pytest.fixture(scope="session")
def whole_predictor(whole_run: Run) -> Predictor:
    return Predictor(whole_run, find_promised(whole_run.folder), device="cpu")


@pytest.fixture(scope="session")
def whole_server(whole_predictor: Predictor, whole_run: Run) -> Iterator[Address]:
    with serving(whole_predictor, whole_run) as address:
        yield address


@pytest.fixture
def serve(whole_predictor: Predictor, whole_run: Run) -> Iterator[Callable[[Service], Address]]:
    """Starts servers with other limits."""
    with ExitStack() as servers:
        yield lambda service: servers.enter_context(serving(whole_predictor, whole_run, service))


@pytest.fixture(scope="session")
def digit(pictures: list[Path]) -> bytes:
    return pictures[0].read_bytes()
