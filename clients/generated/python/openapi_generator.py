from collections.abc import Iterator
from contextlib import contextmanager

from openapi_client import ApiClient, ApiException, Configuration, NewTrade, NewTrades, TradesApi
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


class Client:
    def append(self, customer: int, qty: int, price: str, key: str) -> Appended:
        # A model refuses what its schema refuses. `model_construct` of Pydantic does not check, so that the service is asked.
        trade = NewTrade.model_construct(type="buy", ticker="MDB", qty=qty, price=price)
        with problems():
            stored = trades.append_trades(customer, NewTrades(trade), key)
        return Appended([(it.first_seq, it.last_seq) for it in stored.ranges], stored.total_items, stored.total_pages)

    def page(self, customer: int, page: int) -> Listing:
        with problems():
            listing = trades.list_trades(customer, page=page)
        return Listing([(it.seq, it.qty, it.price or "") for it in listing.items], listing.links.next)

    def trade(self, customer: int, seq: int) -> int:
        with problems():
            return trades.get_trade(customer, seq).seq


scenario(Client())
