"""What both clients share: when a request is repeated, and how what is sent and received is read."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from .errors import HttpError

#: The first pause before a repeat, at most, and the longest. In seconds.
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 8.0
#: The service cannot answer now. 502 and 504 are a proxy's words for a lost connection.
WORTH_A_REPEAT = {429, 502, 503, 504}
#: A lost connection. An answer that is no JSON is cut.
CUT = (httpx.TransportError, json.JSONDecodeError, UnicodeDecodeError)
#: What is none of it: a request that cannot be written.
UNSENDABLE = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
#: What is sent of an upload at once, in bytes, and after how many seconds less is sent.
PIECE = 65_536
PATIENCE = 1.0
#: Parameters that are no names of Python.
SPELLED = {"from_": "from", "as_of": "asOf", "expected_seq": "expectedSeq"}


def pause(error: Exception, n: int, first: float | None = None) -> float | None:
    """Seconds before repeat `n`, counted from 0, of what failed with `error`; None if a repeat cannot help.

    The pause is `first` (0.25) at most, and doubles each time. Half of it is random, so that clients that failed together come back apart.
    """
    at_least = 0.0
    if isinstance(error, HttpError):
        if error.status not in WORTH_A_REPEAT:
            return None
        at_least = error.retry_after or 0.0
    elif isinstance(error, UNSENDABLE) or not isinstance(error, CUT):
        return None
    first = FIRST_PAUSE if first is None else first
    longest = max(first, min(first * (1 << min(n, 10)), LONGEST_PAUSE))
    return at_least + longest * (1 + random.random()) / 2


def new_key() -> str:
    """A new key for a new request. Keep it with the items, to send them again after a crash."""
    return str(uuid.uuid4())


def checked(key: str) -> str:
    """A key that a header can hold."""
    if not re.fullmatch("[!-~]{1,255}", key):
        raise ValueError("a key is 1 to 255 visible ASCII characters")
    return key


def query(parameters: Mapping[str, Any]) -> str:
    """Parameters as a query, without those that are None. One with several values is repeated."""
    given = {SPELLED.get(name, name): value for name, value in parameters.items() if value is not None}
    return "?" + urlencode(given, doseq=True) if given else ""


def encoded(value: Any) -> bytes:
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


class Csv:
    """The rows of a CSV file as items. An empty cell is an absent property.

    `convert` makes values of cells, by the names of the columns: `Csv("trades.csv", qty=int)`. All other cells are texts.
    """

    def __init__(self, path: str | os.PathLike[str], **convert: Callable[[str], Any]) -> None:
        self.path = path
        self.convert = convert

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with open(self.path, newline="", encoding="utf-8-sig") as file:
            for row in (rows := csv.DictReader(file, strict=True)):
                if None in row:
                    raise ValueError(f"line {rows.line_num} has more cells than there are columns")
                yield {name: self.convert.get(name, str)(cell) for name, cell in row.items() if cell}


def pieces(lines: Path | Iterable[Any]) -> Iterator[bytes]:
    """The bytes of an upload: those of a file of JSON lines, or of items, each as a line."""
    if isinstance(lines, Path):
        with lines.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece
        return
    held = bytearray()
    sent = time.monotonic()
    for item in lines:
        held += encoded(item) + b"\n"
        # The service gives up an upload from which nothing comes for long.
        if len(held) >= PIECE or time.monotonic() - sent > PATIENCE:
            yield bytes(held)
            held.clear()
            sent = time.monotonic()
    if held:
        yield bytes(held)


class Events:
    """The events of a stream (Server-Sent Events), made of its lines."""

    def __init__(self) -> None:
        #: Seconds before a lost connection is made again.
        self.retry = 2.0
        self.begin()

    def begin(self) -> None:
        """An event that was cut off with its connection is none."""
        self._event, self._data = "message", list[str]()

    def feed(self, line: bytes) -> tuple[str, Any] | None:
        """The name and the content of the event that ends with this line."""
        if not line:
            event, data = self._event, self._data
            self.begin()
            return (event, json.loads("\n".join(data))) if data else None
        name, _, value = line.decode().partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "retry" and value.isdigit():
            self.retry = int(value) / 1000
        return None


class Place:
    """Where a history is read."""

    def __init__(self, position: int | None) -> None:
        self.position = position
        # Whether the service has said something of it. Until then 0 is the first item that is there; then it is before item 1.
        self.arrived = False

    def passed(self, content: Mapping[str, Any]) -> Iterator[Any]:
        """The items that come next."""
        for item in content.get("items", []):
            seq: int = item["seq"]
            if seq <= (self.position or 0):
                continue
            if (self.arrived or self.position) and seq != (self.position or 0) + 1:
                raise RuntimeError(f"item {seq} came after item {self.position}")
            self.position, self.arrived = seq, True
            yield item
        if "totalItems" in content:
            self.arrived = True
            if self.position is None:
                self.position = content["totalItems"]
