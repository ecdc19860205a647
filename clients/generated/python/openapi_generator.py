from collections.abc import Iterator
from contextlib import contextmanager

from openapi_client import ApiClient, ApiException, AppendedTrades, Configuration, TradeInput, TradesApi
from openapi_client import Problem as GeneratedProblem
from scenario import SERVICE, TOKEN, Appended, Listing, Problem, scenario

trades = TradesApi(ApiClient(Configuration(host=SERVICE, access_token=TOKEN)))


@contextmanager
def problems() -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        problem = error.data
        assert isinstance(problem, GeneratedProblem)
        raise Problem(problem.type, problem.status, [fault.pointer for fault in problem.errors or []]) from error


def given(qty: int, price: str) -> TradeInput:
    # A model refuses what its schema refuses. `model_construct` of Pydantic does not check, so that the service is asked.
    return TradeInput.model_construct(type="buy", ticker="MDB", qty=qty, price=price)


def told(stored: AppendedTrades) -> Appended:
    return Appended([(it.first_seq, it.last_seq) for it in stored.ranges], stored.total_items, stored.total_pages)


class Client:
    def append(self, customer: int, qty: int, price: str, key: str) -> Appended:
        with problems():
            return told(trades.append_trades(customer, given(qty, price), key))

    def append_many(self, customer: int, many: list[tuple[int, str]], key: str) -> Appended:
        with problems():
            return told(trades.append_trade_batch(customer, [given(qty, price) for qty, price in many], key))

    def page(self, customer: int, page: int) -> Listing:
        with problems():
            listing = trades.list_trades(customer, page=page)
        return Listing([(it.seq, it.qty, it.price or "") for it in listing.items], listing.links.next)

    def trade(self, customer: int, seq: int) -> int:
        with problems():
            return trades.get_trade(customer, seq).seq


scenario(Client())
