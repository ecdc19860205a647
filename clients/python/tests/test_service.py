"""Both clients with the real service, through connections that break."""

import ast
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, ClientOf, Proxy
from pagebucket import Client, Csv, NotAcknowledgedError, ProblemError
from pagebucket.types import TradeInput

INFINITY = float("inf")


def days(count: int, first: int = 1) -> list[TradeInput]:
    """Trades of consecutive days; the quantity says which one it is."""
    date = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        {"type": "buy", "ticker": "MDB", "qty": day, "price": "15.50", "date": f"{date + timedelta(day):%FT%TZ}"}
        for day in range(first, first + count)
    ]


def seqs(listings: Iterable[Any]) -> list[list[int]]:
    return [[item["seq"] for item in listing["items"]] for listing in listings]


def test_what_is_appended_is_listed_in_pages_and_windows(client_of: ClientOf, service: str, customer: int) -> None:
    mine = client_of(service).trades(customer)
    first = mine.append(days(1)[0])
    assert (first["ranges"], first["totalItems"]) == ([{"firstSeq": 1, "lastSeq": 1}], 1)
    assert mine.append(days(24, 2), expected_seq=1)["totalPages"] == 3
    with pytest.raises(ProblemError) as refused:
        mine.append(days(1), expected_seq=1)
    assert (refused.value.type, refused.value.problem["totalItems"]) == ("/problems#unexpected-seq", 25)
    upwards = [*range(1, 26)]
    assert seqs(mine.pages()) == [upwards[:10], upwards[10:20], upwards[20:]]
    assert seqs(mine.pages(order="desc")) == [upwards[:19:-1], upwards[19:9:-1], upwards[9::-1]]
    assert seqs(mine.pages(page=2)) == [upwards[10:20], upwards[20:]]
    assert seqs(mine.windows(limit=20)) == [upwards[:20], upwards[20:]]
    span = mine.windows(from_="2026-01-05T00:00:00Z", to="2026-01-20T00:00:00Z", limit=10)
    assert [item["qty"] for listing in span for item in listing["items"]] == [*range(4, 19)]
    page, item = mine.page(2), mine.item(21)
    assert (page["full"], page["firstSeq"], page["items"][0]["qty"], item["seq"], item["price"]) == (True, 11, 11, 21, "15.50")
    newest = mine.newest(2)
    assert (seqs([newest, mine.listing(newest["links"]["next"])]), newest["totalItems"]) == ([[25, 24], [23, 22]], 25)
    mine.append({"type": "sell", "ticker": "AMD", "qty": 26})
    assert seqs(mine.windows(filters={"ticker": ["AMD", "XYZ"], "type": "sell"})) == [[26]]
    assert seqs([mine.listing(offset=20, limit=3, as_of=25)]) == [[21, 22, 23]]
    assert mine.listing(after=26, wait=1)["items"] == []


def test_a_history_of_another_definition_and_what_is_refused(client_of: ClientOf, service: str, customer: int) -> None:
    client = client_of(service)
    room = client.history("rooms", f"kitchen-{customer}", "messages")
    room.append([{"author": "ann", "text": f"Nummer {number} – 🎈"} for number in range(60)])
    assert next(iter(room.all(after=59)))["text"] == "Nummer 59 – 🎈"
    with pytest.raises(ProblemError) as refused:
        client.trades(customer).append([{"type": "buy", "ticker": "MDB", "qty": 1.5}, {"type": "buy", "qty": 1}])  # type: ignore[typeddict-item]
    error = refused.value
    assert (error.type, error.status, error.field) == ("/problems#invalid-item", 422, "/0/qty")
    assert [fault["pointer"] for fault in error.errors] == ["/0/qty", "/1/ticker"]
    assert error.request_id == error.problem["requestId"]
    with pytest.raises(ProblemError) as refused:
        client.trades(customer).listing(page=0)
    assert refused.value.field == "page"
    assert client.get("/v1/customers", limit=1)["items"]


def test_items_whose_answers_are_lost_are_stored_once(
    client_of: ClientOf, service: str, customer: int, proxy: Callable[..., Proxy]
) -> None:
    lossy = proxy(lambda n: [0, 0, 40][n] if n < 3 else INFINITY)
    answer = client_of(lossy.base_url).trades(customer).append(days(12), expected_seq=0)
    assert (answer["ranges"], lossy.connections) == ([{"firstSeq": 1, "lastSeq": 12}], 4)
    direct = client_of(service).trades(customer)
    assert direct.listing()["totalItems"] == 12
    with pytest.raises(NotAcknowledgedError) as lost:
        client_of(proxy(lambda _: 0).base_url).trades(customer).append(days(3), deadline=1)
    # As after a crash: only the key and the items are left.
    assert direct.append(days(3), key=lost.value.key)["ranges"] == [{"firstSeq": 13, "lastSeq": 15}]
    assert direct.listing()["totalItems"] == 15


def test_a_whole_history_comes_once_whatever_is_cut(client_of: ClientOf, service: str, customer: int, proxy: Callable[..., Proxy]) -> None:
    direct = client_of(service).trades(customer)
    for first in range(1, 3001, 1000):
        direct.append(days(1000, first))
    # The bytes are those of a compressed answer.
    lossy = proxy(lambda n: [100, 4000, 0, 4001][n] if n < 4 else INFINITY)
    found = list(client_of(lossy.base_url).trades(customer).all())
    assert [(item["seq"], item["qty"]) for item in found] == [(n, n) for n in range(1, 3001)]
    assert lossy.connections > 1


def test_a_live_history_comes_once_and_in_order_whatever_is_cut(
    client_of: ClientOf, service: str, customer: int, proxy: Callable[..., Proxy]
) -> None:
    lossy = proxy(lambda n: [2000, 3000][n] if n < 2 else INFINITY)
    count = 200

    def append() -> None:
        with Client(service) as client:
            for first in range(1, count, 4):
                client.trades(customer).append(days(4, first))

    writer = threading.Thread(target=append)
    writer.start()
    live = client_of(lossy.base_url).trades(customer).live(after=0)
    found = list(itertools.islice(live, count))
    live.close()  # type: ignore[attr-defined]
    writer.join()
    assert [(item["seq"], item["qty"]) for item in found] == [(n, n) for n in range(1, count + 1)]
    assert lossy.connections == 3


def test_an_upload_that_is_cut_continues(
    client_of: ClientOf, service: str, customer: int, proxy: Callable[..., Proxy], tmp_path: Path
) -> None:
    trades = days(5000)
    file = tmp_path / "trades.ndjson"
    file.write_text("".join(json.dumps(trade) + "\n" for trade in trades))
    # Once in the middle of the lines, and once when only the answer is missing.
    lossy = proxy(lambda n: 0 if n == 1 else INFINITY, lambda n: 150_000 if n == 0 else INFINITY)
    answer = client_of(lossy.base_url).trades(customer).upload(file)
    assert (answer["ranges"], answer["stored"], lossy.connections) == ([{"firstSeq": 1, "lastSeq": 5000}], 5000, 3)
    mine = client_of(service).trades(customer)
    assert [item["qty"] for item in mine.all()] == [*range(1, 5001)]


def test_lines_of_many_owners_and_refused_lines(client_of: ClientOf, service: str, customer: int, tmp_path: Path) -> None:
    client = client_of(service)
    table = tmp_path / "trades.csv"
    rows = ((ROOT / "examples/trades.csv").read_text()).splitlines()
    table.write_text("\n".join([rows[0], *rows[1:3]]))
    answer = client.upload("trades", [{**row, "customerId": 1_000_000 + customer} for row in Csv(table, qty=int)])
    assert (answer["stored"], answer["owners"]) == (2, 1)
    refused = client.trades(customer).upload([*days(1), {"type": "buy"}, *days(1)])  # type: ignore[typeddict-item]
    assert (refused["stored"], refused["refused"], refused["problems"][0]["line"]) == (2, 1, 2)


def test_the_first_example_of_the_readme(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    readme = Path(__file__).resolve().parents[1].joinpath("README.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    printed: dict[str, Any] = {}
    exec(examples[0].replace("http://127.0.0.1:8080", service).replace("trades(7)", "trades(2_000_007)"), printed)
    assert capsys.readouterr().out == ("stored as number 1\n1 trades, the newest is of AMD\npage 1 has 1\n1 448 15.54\n")
    for example in examples[1:]:
        compile(example, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
