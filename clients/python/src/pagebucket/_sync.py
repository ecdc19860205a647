"""The client, and the history of one owner. Generated from `_async.py` by `generate.py`."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Literal, Self, Unpack, cast
from urllib.parse import quote

import httpx

from ._rules import Events, Place, checked, encoded, new_key, pause, pieces, query
from .errors import HttpError, NotAcknowledgedError, explained, failure
from .types import Appended, Item, Listing, ListParameters, NewItem, Page, Trade, TradeInput, Uploaded, UploadSummary

#: What a repeat may help against. `pause` decides.
FAILED = (HttpError, httpx.TransportError, ValueError)
#: Seconds without a byte before a read, an upload or its answer counts as lost. The service answers any request within 35 s.
PATIENCE = 40.0


class Client:
    """A pagebucket service: where it is, and how it is reached."""

    def __init__(self, base_url: str, token: str | Callable[[str | None], str] | None = None, *, http: httpx.Client | None = None) -> None:
        """`base_url` is the service's address, and the path that a proxy adds, if any.

        `token` is an access token or a key, sent with every request; or a function that returns it, called before each request. When
        the service does not accept the token (401), the function is called once more, with that token, and the request is sent again
        with the new one. `http` is used instead of a client with httpx' defaults, and is not closed.
        """
        self.base_url = base_url.rstrip("/")
        self._token = token
        self._http = http or httpx.Client()
        self._owned = http is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        if self._owned:
            self._http.close()

    def history(self, owners: str, owner: str | int, items: str) -> History[Any, Any]:
        """The history `items` of one owner, by the names of its definition: `client.history("rooms", "kitchen", "messages")`."""
        return History(self, "/v1/" + "/".join(quote(str(name), safe="") for name in (owners, owner, items)))

    def trades(self, customer_id: int) -> History[Trade, TradeInput]:
        """The trades of a customer: the history that is built in."""
        return self.history("customers", customer_id, "trades")

    def get(self, path: str, *, timeout: float = PATIENCE, **parameters: Any) -> Any:
        """The answer to any read, by its path or by a link of another answer: `client.get("/v1/customers", limit=10)`."""
        with self.request("GET", path + query(parameters), timeout) as response:
            return json.loads(response.read())

    def upload(
        self, items: str, lines: Path | Iterable[Any], *, key: str | None = None, resumes: int = 5, timeout: float = PATIENCE
    ) -> UploadSummary:
        """Uploads items of many owners, each with the owner's field: `client.upload("trades", rows)`. Otherwise as a history does."""
        return cast(UploadSummary, self.send_lines(f"/v1/{quote(items, safe='')}/upload", lines, key, resumes, timeout))

    @contextmanager
    def request(
        self,
        method: str,
        path: str,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        content: Callable[[], bytes | Iterator[bytes]] | None = None,
    ) -> Iterator[httpx.Response]:
        """The answer to a request, whose body is not read. An answer that is not a success is raised."""
        refused = None
        while True:
            token = self._token(refused) if callable(self._token) else self._token
            given = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
            body = content() if content else None
            with self._http.stream(method, self.base_url + path, headers=given, content=body, timeout=timeout) as response:
                if response.is_success:
                    yield response
                    return
                response.read()
                error = failure(response)
            if error.status != 401 or not callable(self._token) or refused is not None:
                raise error
            refused = token or ""

    def send_lines(self, path: str, lines: Path | Iterable[Any], key: str | None, resumes: int, timeout: float) -> Any:
        """The answer to an upload, which is sent again until it is acknowledged."""
        if not isinstance(lines, Path) and iter(lines) is lines:
            raise TypeError("an iterator can be read once, and an upload may have to be sent again: give a list, a Path or a Csv")

        def content() -> Iterator[bytes]:
            for piece in pieces(lines):
                yield piece

        key = checked(new_key() if key is None else key)
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        sent = 0
        while True:
            sent += 1
            try:
                with self.request("POST", path, timeout, headers, content) as response:
                    return json.loads(response.read())
            except FAILED as error:
                if isinstance(error, HttpError):
                    error.key = key
                wait = pause(error, sent - 1)
                if wait is None:
                    raise
                if sent > resumes:
                    raise NotAcknowledgedError(key, sent, error) from error
            time.sleep(wait)


class History(Generic[Item, NewItem]):
    """The history of one owner."""

    def __init__(self, client: Client, path: str) -> None:
        self.client = client
        #: Its route, such as `/v1/customers/7/trades`.
        self.path = path

    def append(
        self,
        items: NewItem | Sequence[NewItem],
        *,
        key: str | None = None,
        expected_seq: int | None = None,
        deadline: float = 30.0,
        timeout: float = 10.0,
    ) -> Appended:
        """Appends one item, or a list of 1 to 1,000. Sends them again, with the same key, until they are acknowledged: the service
        stores them once, however often they arrive.

        `key` is the request's `Idempotency-Key`; without it, a new one. With `expected_seq`, the `totalItems` that were seen, the
        first item is stored only if it gets the next `seq`; otherwise the service refuses all with 412. Until `deadline` seconds have
        passed, an attempt that is silent for `timeout` seconds is followed by another. Raises a `ProblemError` if the service refuses
        the items, and a `NotAcknowledgedError` at the deadline.
        """
        key = checked(new_key() if key is None else key)
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        path = self.path + query({"expected_seq": expected_seq})
        # Once, so that every attempt has the same items even if the caller changes them meanwhile.
        body = encoded(items)
        end = time.monotonic() + deadline
        sent = 0
        while True:
            sent += 1
            left = max(0.001, end - time.monotonic())
            try:
                with self.client.request("POST", path, min(timeout, left), headers, lambda: body) as response:
                    answer = response.read()
                    # A redirect that a client follows makes a read of it, which succeeds and stores nothing.
                    if response.status_code != 201:
                        raise failure(response)
                    return cast(Appended, json.loads(answer))
            except FAILED as error:
                if isinstance(error, HttpError):
                    error.key = key
                wait = pause(error, sent - 1)
                if wait is None:
                    raise
                if time.monotonic() + wait >= end:
                    raise NotAcknowledgedError(key, sent, error) from error
            time.sleep(wait)

    def listing(
        self, link: str | None = None, *, filters: Mapping[str, str | Sequence[str]] | None = None, **which: Unpack[ListParameters]
    ) -> Listing[Item]:
        """One page, window or span of time, or items with given values: by its parameters, or by a link of another listing."""
        timeout = PATIENCE + which.get("wait", 0)
        path = link or self.path + query({**which, **(filters or {})})
        return cast(Listing[Item], self.client.get(path, timeout=timeout))

    def newest(self, limit: int = 10) -> Listing[Item]:
        """The newest items, newest first. The link `next` leads to older ones."""
        return self.listing(order="desc", limit=limit)

    def page(self, number: int) -> Page[Item]:
        """A page as it is stored. If it is `full`, it never changes."""
        return cast(Page[Item], self.client.get(f"{self.path}/pages/{number}"))

    def item(self, seq: int) -> Item:
        """One item, with the number of its page."""
        return cast(Item, self.client.get(f"{self.path}/{seq}"))

    def pages(self, *, page: int | None = None, order: Literal["asc", "desc"] = "asc") -> Iterator[Listing[Item]]:
        """Page after page: from the first, with `order="desc"` from the last, which may be short, or from `page`."""
        for listing in self._walk(query({"page": page, "order": order})):
            yield listing

    def windows(
        self, *, filters: Mapping[str, str | Sequence[str]] | None = None, **which: Unpack[ListParameters]
    ) -> Iterator[Listing[Item]]:
        """Window after window, of 100 items unless `limit` is given, in the direction of `order`."""
        for listing in self._walk(query({"limit": 100, **which, **(filters or {})})):
            yield listing

    def _walk(self, parameters: str) -> Iterator[Listing[Item]]:
        link: str | None = self.path + parameters
        while link:
            listing = self.listing(link)
            yield listing
            link = listing["links"].get("next")

    def all(
        self, *, after: int = 0, from_: str | None = None, to: str | None = None, resumes: int = 5, timeout: float = PATIENCE
    ) -> Iterator[Item]:
        """All items, in order of `seq`, from one streamed export. When it breaks off, it is resumed after the last complete row:
        every item comes once. After `resumes` resumptions, the next break is raised."""
        in_vain = 0
        for resumed in itertools.count():
            path = f"{self.path}/export.ndjson" + query({"after": after, "from": from_, "to": to})
            try:
                with self.client.request("GET", path, timeout) as response:
                    for row in lines_of(response):
                        item = json.loads(row)
                        after, in_vain = item["seq"], 0
                        yield item
                return
            except FAILED as error:
                wait = pause(error, in_vain)
                if wait is None or resumed >= resumes:
                    raise
                in_vain += 1
            time.sleep(wait)

    def live(self, *, after: int | None = None, timeout: float = 35.0) -> Iterator[Item]:
        """The items after `after`, or from now on, in order of `seq`: those that are stored, then each one that is appended.

        A lost connection, which is one without a byte for `timeout` seconds, is resumed for as long as it takes: every item comes once.
        A `break` ends it. Raises a `GoneError` if the next items are deleted, and the error of a request that the service refuses.
        """
        place, events, in_vain = Place(after), Events(), 0
        while True:
            path = f"{self.path}/live" + query({"after": place.position})
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": str(place.position)} if place.arrived else {})}
            wait: float | None = None
            events.begin()
            try:
                with self.client.request("GET", path, timeout, headers) as response:
                    if not response.headers.get("content-type", "").startswith("text/event-stream"):
                        body = (response.read()).decode(errors="replace")
                        raise HttpError(response.status_code, response.headers, body, "no stream of events comes through")
                    for line in lines_of(response):
                        in_vain = 0
                        event = events.feed(line)
                        if event is None:
                            continue
                        name, content = event
                        if name in ("message", "position"):
                            for item in place.passed(content):
                                yield item
                        elif name == "gone":
                            raise explained(response.headers, content)
                        elif name == "end" and content["reason"] == "epoch":
                            raise RuntimeError("a backup was restored: numbers of items may mean others")
                        elif name == "end":
                            wait = events.retry
                            break
                    else:
                        raise httpx.RemoteProtocolError("the stream broke off")
            except FAILED as error:
                wait = pause(error, in_vain, events.retry)
                if wait is None:
                    raise
                in_vain += 1
            time.sleep(wait or 0.0)

    def upload(self, lines: Path | Iterable[NewItem], *, key: str | None = None, resumes: int = 5, timeout: float = PATIENCE) -> Uploaded:
        """Uploads any number of items in one request: a `Path` of JSON lines, a `Csv`, or anything else that can be read repeatedly.

        When it breaks off, the same lines are sent again with the same key, from the first one on, and the service continues where it
        ended. After `resumes` resumptions it raises a `NotAcknowledgedError`. A refused line does not affect the others: the answer
        has the `problems`.
        """
        return cast(Uploaded, self.client.send_lines(f"{self.path}/upload", lines, key, resumes, timeout))


def lines_of(response: httpx.Response) -> Iterator[bytes]:
    """The lines of an answer, as they arrive. One that is cut is an error."""
    rest = b""
    for piece in response.iter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        raise httpx.RemoteProtocolError("the answer broke off")
