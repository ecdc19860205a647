"""A server whose answers a test writes in advance, and which notes what it was asked."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Asked:
    """One request."""

    at: float
    line: str
    headers: dict[str, str]
    body: bytes


class Scripted:
    """Gives each answer once, in their order, and the last one to all further requests."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[Asked] = []
        asked = self.asked
        self.ended = ended = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.close_connection = True
                if self.headers.get("transfer-encoding") == "chunked":
                    body = b""
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    body = self.rfile.read(int(self.headers.get("content-length", 0)))
                answer = answers[min(len(asked), len(answers) - 1)]
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked.append(Asked(time.time(), f"{self.command} {self.path}", headers, body))
                self.silence = ended.wait
                answer(self)

            do_POST = do_GET  # noqa: N815

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client may go at any time."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> "Scripted":
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()


def plain(status: int, text: str = "", **headers: str) -> Answer:
    """A whole answer."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = text.encode()
        handler.send_response(status)
        for name, value in {"content_length": str(len(body)), "connection": "close", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def answered(body: Any, status: int = 200, **headers: str) -> Answer:
    """An answer in JSON."""
    return plain(status, json.dumps(body), **{"content_type": "application/json", **headers})


def problem(status: int, slug: str, members: dict[str, Any] | None = None, **headers: str) -> Answer:
    """A problem of the service."""
    body = {"type": f"/problems#{slug}", "title": "A title", "status": status, "detail": "A detail.", "instance": "/", "requestId": "r1"}
    return answered(body | (members or {}), status, content_type="application/problem+json", x_request_id="r1", **headers)


def cut(handler: BaseHTTPRequestHandler) -> None:
    """Closes the connection without an answer."""
    handler.close_connection = True


def cut_after(text: str, status: int = 200, **headers: str) -> Answer:
    """Begins an answer, and closes the connection before its end."""
    return plain(status, text, content_length="1000", **headers)


def silent(handler: BaseHTTPRequestHandler) -> None:
    """Never answers."""
    handler.silence()  # type: ignore[attr-defined]


def stream(text: str, status: int = 200, content_type: str = "text/event-stream", *, broken: bool = False) -> Answer:
    """A stream with this text, which then breaks off or says no more."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("content-type", content_type)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for at in range(0, len(body := text.encode()), 7):
            piece = body[at : at + 7]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        handler.wfile.flush()
        if not broken:
            silent(handler)

    return answer
