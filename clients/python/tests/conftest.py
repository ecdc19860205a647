"""The service, both clients, and what breaks connections between them."""

import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blocking import blocking
from pagebucket import Client

ROOT = Path(__file__).resolve().parents[3]
# Longer than anything takes on a slow machine. Only a failure waits for it.
PATIENCE = 300

CERTIFICATES = ssl.create_default_context()
ClientOf = Callable[..., Client]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagebucket._rules.FIRST_PAUSE", 0.02)
    # To read all certificates takes longer than a test: once is enough.
    monkeypatch.setattr("httpx._transports.default.create_ssl_context", lambda **_: CERTIFICATES)


@pytest.fixture(params=["sync", "async"])
def client_of(request: pytest.FixtureRequest) -> Iterator[ClientOf]:
    """Makes a client of an address, of either kind."""
    with contextlib.ExitStack() as stack:
        kind = Client if request.param == "sync" else blocking

        yield lambda *arguments, **options: stack.enter_context(kind(*arguments, **options))


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """The address of a real service, with a mongod of its own, the trades and the histories of the examples."""
    program = os.environ.get("PAGEBUCKET")
    if not program:
        assert not os.environ.get("CI"), "PAGEBUCKET names no program"
        pytest.skip("PAGEBUCKET names no program")
    with tempfile.TemporaryDirectory(prefix="pagebucket-client-") as directory:
        histories = Path(directory, "histories")
        shutil.copytree(ROOT / "examples/histories", histories)
        shown = subprocess.run([program, "histories", "show", "trades"], stdout=subprocess.PIPE, check=True)
        (histories / "trades.json").write_bytes(shown.stdout)
        flags = ["--listen", "127.0.0.1:0", "--data-dir", f"{directory}/data", "--histories", str(histories)]
        env = {name: value for name, value in os.environ.items() if name != "MONGODB_URI"}
        with (
            open(f"{directory}/log", "w") as log,
            subprocess.Popen([program, "serve", *flags], env=env, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        ):
            assert process.stdout
            try:
                addresses = (re.search(r"listens on (http:\S+)", line) for line in process.stdout)
                address = next((found[1] for found in addresses if found), None)
                assert address, Path(directory, "log").read_text()
                yield address
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(PATIENCE)


@pytest.fixture
def customer(request: pytest.FixtureRequest) -> int:
    """A customer of this test alone."""
    return 1 + request.session.items.index(request.node)


class Proxy:
    """Passes connections on to a service, and cuts connection `n` when `down(n)` bytes of answers, or `up(n)` of requests, have passed."""

    def __init__(self, service: str, down: Callable[[int], float], up: Callable[[int], float] = lambda _: float("inf")) -> None:
        self.target = ("127.0.0.1", int(service.rpartition(":")[2]))
        self.down, self.up = down, up
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                n, self.connections = self.connections, self.connections + 1
                threading.Thread(target=self.serve, args=(near, n), daemon=True).start()

    def serve(self, near: socket.socket, n: int) -> None:
        with near, socket.create_connection(self.target) as far:
            back = threading.Thread(target=self.copy, args=(far, near, self.down(n)), daemon=True)
            back.start()
            self.copy(near, far, self.up(n))
            back.join()

    @staticmethod
    def copy(source: socket.socket, sink: socket.socket, limit: float) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65_536):
                sink.sendall(piece[: int(min(limit, len(piece)))])
                limit -= len(piece)
                if limit <= 0:
                    break
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def proxy(service: str) -> Iterator[Callable[..., Proxy]]:
    """Makes a proxy before the service."""
    with contextlib.ExitStack() as stack:

        def make(*limits: Callable[[int], float]) -> Proxy:
            return stack.enter_context(contextlib.closing(Proxy(service, *limits)))

        yield make
