from typing import TypeVar

from pagebucket_client import AuthenticatedClient
from pagebucket_client.api.trades import append_trade_batch, append_trades, get_trade, list_trades
from pagebucket_client.models import AppendedTrades, PlacedTrade, TradeInput, TradeInputType, TradeListing
from pagebucket_client.models import Problem as GeneratedProblem
from scenario import SERVICE, TOKEN, Appended, Listing, Problem, scenario

T = TypeVar("T")
connection = AuthenticatedClient(base_url=SERVICE, token=TOKEN)


def success(answer: object, kind: type[T]) -> T:
    if isinstance(answer, GeneratedProblem):
        raise Problem(answer.type_, answer.status, [fault.pointer or None for fault in answer.errors or []])
    assert isinstance(answer, kind)
    return answer


def given(qty: int, price: str) -> TradeInput:
    return TradeInput(type_=TradeInputType.BUY, ticker="MDB", qty=qty, price=price)


def told(answer: object) -> Appended:
    stored = success(answer, AppendedTrades)
    return Appended([(it.first_seq, it.last_seq) for it in stored.ranges], stored.total_items, stored.total_pages)


class Client:
    def append(self, customer: int, qty: int, price: str, key: str) -> Appended:
        return told(append_trades.sync(customer, client=connection, body=given(qty, price), idempotency_key=key))

    def append_many(self, customer: int, trades: list[tuple[int, str]], key: str) -> Appended:
        many = [given(qty, price) for qty, price in trades]
        return told(append_trade_batch.sync(customer, client=connection, body=many, idempotency_key=key))

    def page(self, customer: int, page: int) -> Listing:
        listing = success(list_trades.sync(customer, client=connection, page=page), TradeListing)
        return Listing([(it.seq, it.qty, it.price or "") for it in listing.items], listing.links.next_ or None)

    def trade(self, customer: int, seq: int) -> int:
        return success(get_trade.sync(customer, seq, client=connection), PlacedTrade).seq


scenario(Client())
