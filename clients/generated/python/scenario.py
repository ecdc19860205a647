"""What every generated client for Python must do against a running service. A client is an adapter of a few lines."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

SERVICE = os.environ["PAGEBUCKET_URL"]
TOKEN = os.environ["TOKEN"]


@dataclass
class Appended:
    ranges: list[tuple[int, int]]
    total_items: int
    total_pages: int


@dataclass
class Listing:
    items: list[tuple[int, int, str]]  # seq, qty, price
    next: str | None


class Problem(Exception):
    def __init__(self, kind: str, status: int, pointers: list[str | None]) -> None:
        super().__init__(kind, status, pointers)
        self.kind, self.status, self.pointers = kind, status, pointers


class Client(Protocol):
    """Its methods raise `Problem`."""

    def append(self, customer: int, qty: int, price: str, key: str) -> Appended: ...
    def append_many(self, customer: int, trades: list[tuple[int, str]], key: str) -> Appended: ...  # qty, price
    def page(self, customer: int, page: int) -> Listing: ...
    def trade(self, customer: int, seq: int) -> int: ...


def scenario(client: Client) -> None:
    """Goes through the steps and prints a line for each: its name, or its name and what failed."""
    customer = int(os.environ["CUSTOMER"])

    def append(n: int) -> Appended:
        return client.append(customer, n, f"{n}.50", f"trade-{n}")

    def appends() -> None:
        assert append(1) == Appended([(1, 1)], 1, 1)
        assert client.page(customer, 1).items == [(1, 1, "1.50")]

    def repeats() -> None:
        assert append(1) == Appended([(1, 1)], 1, 1)
        assert client.page(customer, 1).items == [(1, 1, "1.50")]

    def batches() -> None:
        trades = [(n, f"{n}.50") for n in range(2, 25)]
        for _ in range(2):
            assert client.append_many(customer, trades, "many") == Appended([(2, 24)], 24, 3)

    def walks() -> None:
        append(25)
        pages = [client.page(customer, 1)]
        while pages[-1].next:
            pages.append(client.page(customer, len(pages) + 1))
        assert len(pages) == 3
        assert [item for page in pages for item in page.items] == [(n, n, f"{n}.50") for n in range(1, 26)]

    def problems() -> None:
        missing = problem(lambda: client.trade(customer, 99))
        assert (missing.kind, missing.status) == ("/problems#item-not-found", 404), missing
        refused = problem(lambda: client.append(customer, 2**53, "1.50", "refused"))
        assert (refused.kind, refused.status, refused.pointers) == ("/problems#invalid-item", 422, ["/qty"]), refused

    for step in (appends, repeats, batches, walks, problems):
        try:
            step()
            print(step.__name__)
        except Exception as error:
            print(step.__name__, json.dumps(repr(error)))


def problem(call: Callable[[], object]) -> Problem:
    try:
        answer = call()
    except Problem as error:
        return error
    raise AssertionError(f"the answer is no problem: {answer}")
