"""When an append is sent again, and when it is not."""

import json
import time
from email.utils import formatdate
from typing import Any

import httpx
import pytest
import trio

from conftest import ClientOf
from pagebucket import AsyncClient, HttpError, NotAcknowledgedError, ProblemError
from pagebucket._rules import pause
from pagebucket.types import TradeInput
from scripted import Answer, Scripted, answered, cut, cut_after, plain, problem, silent

TRADE: TradeInput = {"type": "buy", "ticker": "MDB", "qty": 419}
STORED: dict[str, Any] = {"customerId": 7, "ranges": [{"firstSeq": 1, "lastSeq": 1}], "totalItems": 1, "totalPages": 1}
CREATED = answered(STORED, 201)


def test_an_item_is_sent_once_with_a_key_of_its_own(client_of: ClientOf) -> None:
    with Scripted(CREATED) as server:
        mine = client_of(server.base_url + "/").trades(7)
        assert mine.append(TRADE) == STORED
        mine.append([TRADE, TRADE])
    one, many = server.asked
    assert one.line == "POST /v1/customers/7/trades"
    assert one.headers["content-type"] == "application/json"
    assert [json.loads(one.body), json.loads(many.body)] == [TRADE, [TRADE, TRADE]]
    assert len({asked.headers["idempotency-key"] for asked in server.asked}) == 2


OPEN: dict[str, Answer] = {
    "503 with Retry-After": problem(503, "overloaded", retry_after="0"),
    "503 without": problem(503, "outcome-unknown"),
    "a proxy's 503": plain(503, "<html>"),
    "429": plain(429),
    "a gateway's problem": plain(503, '{"title":"Busy"}', content_type="application/problem+json"),
    "a proxy's 502": plain(502),
    "a proxy's 504": plain(504),
    "a lost connection": cut,
    "half an acknowledgement": cut_after('{"customerId":7,', 201),
    "half a refusal": cut_after("{", 422),
    "half an acknowledgement that looks complete": plain(201, '{"customerId":7,'),
    "half a problem that looks complete": plain(422, "{", content_type="application/problem+json"),
    "silence": silent,
}


@pytest.mark.parametrize("answer", OPEN.values(), ids=OPEN.keys())
def test_whatever_leaves_the_outcome_open_is_repeated_with_the_same_key_and_body(client_of: ClientOf, answer: Answer) -> None:
    with Scripted(answer, CREATED) as server:
        assert client_of(server.base_url).trades(7).append([TRADE], key="mine", expected_seq=0, timeout=0.5) == STORED
    assert [asked.headers["idempotency-key"] for asked in server.asked] == ["mine", "mine"]
    assert [asked.line for asked in server.asked] == ["POST /v1/customers/7/trades?expectedSeq=0"] * 2
    assert server.asked[0].body == server.asked[1].body == json.dumps([TRADE], separators=(",", ":")).encode()


@pytest.mark.parametrize("status", [400, 401, 403, 408, 409, 412, 413, 422, 500])
def test_a_refusal_is_final(client_of: ClientOf, status: int) -> None:
    errors = [{"pointer": "/0/qty", "detail": "must be a whole number"}, {"pointer": "/1/ticker", "detail": "is required"}]
    with Scripted(problem(status, "some", {"errors": errors, "totalItems": 12}), CREATED) as server:
        with pytest.raises(ProblemError, match="A title: /0/qty must be a whole number") as refused:
            client_of(server.base_url).trades(7).append([TRADE, TRADE], key="mine")
    error = refused.value
    assert (error.status, error.key, error.type, error.title, error.request_id) == (status, "mine", "/problems#some", "A title", "r1")
    assert (error.field, error.errors, error.problem["totalItems"]) == ("/0/qty", errors, 12)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [200, 301, 401])
def test_other_answers_are_no_acknowledgement_and_not_repeated(client_of: ClientOf, status: int) -> None:
    with Scripted(plain(status, "who?", location="/elsewhere"), CREATED) as server:
        with pytest.raises(HttpError) as refused:
            client_of(server.base_url).trades(7).append(TRADE)
    assert (type(refused.value), refused.value.status, refused.value.body) == (HttpError, status, "who?")
    assert len(server.asked) == 1


def test_what_cannot_be_sent_is_not_repeated(client_of: ClientOf) -> None:
    with Scripted(CREATED) as server:
        mine = client_of(server.base_url).trades(7)
        for key in ("", "two\nlines", "ä", "k" * 256):
            with pytest.raises(ValueError, match="visible ASCII"):
                mine.append(TRADE, key=key)
        with pytest.raises(ValueError, match="not JSON compliant"):
            mine.append({"type": "buy", "ticker": "MDB", "qty": float("nan")})  # type: ignore[arg-type]
        with pytest.raises(httpx.UnsupportedProtocol):
            client_of("htp://nowhere.example").trades(7).append(TRADE)
    assert server.asked == []


@pytest.mark.parametrize("error", [httpx.ReadTimeout("late"), json.JSONDecodeError("cut", "", 0), HttpError(503, httpx.Headers(), "")])
def test_pauses_double_and_are_random(error: Exception) -> None:
    for n, longest in [(0, 0.25), (1, 0.5), (4, 4), (5, 8), (9, 8), (5000, 8)]:
        found = [pause(error, n, 0.25) or 0 for _ in range(50)]
        assert longest / 2 <= min(found) < max(found) <= longest
    assert pause(HttpError(500, httpx.Headers(), ""), 0) is None
    assert (pause(HttpError(429, httpx.Headers({"retry-after": "7"}), ""), 0) or 0) > 7


def test_retry_after_may_be_a_date(client_of: ClientOf) -> None:
    soon = int(time.time()) + 2
    with Scripted(problem(503, "overloaded", retry_after=formatdate(soon, usegmt=True)), CREATED) as server:
        client_of(server.base_url).trades(7).append(TRADE)
    assert server.asked[1].at >= soon


def test_the_deadline_ends_the_attempts(client_of: ClientOf) -> None:
    with Scripted(cut) as server:
        with pytest.raises(NotAcknowledgedError) as lost:
            client_of(server.base_url).trades(7).append(TRADE, key="mine", deadline=1)
    assert (lost.value.key, lost.value.attempts) == ("mine", len(server.asked))
    assert lost.value.attempts > 1
    assert isinstance(lost.value.__cause__, httpx.TransportError)


def test_trio_runs_it_too() -> None:
    async def append() -> object:
        async with AsyncClient(server.base_url) as client:
            return await client.trades(7).append(TRADE)

    with Scripted(cut, CREATED) as server:
        assert trio.run(append) == STORED


def test_a_token_is_sent_and_renewed_once(client_of: ClientOf) -> None:
    tokens: list[str | None] = []

    def token(refused: str | None) -> str:
        tokens.append(refused)
        return f"t{len(tokens)}"

    with Scripted(problem(401, "unauthorized"), CREATED, problem(401, "unauthorized")) as server:
        assert client_of(server.base_url, token).trades(7).append(TRADE, key="mine") == STORED
        assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer t1", "Bearer t2"]
        assert {asked.headers["idempotency-key"] for asked in server.asked} == {"mine"}
        assert tokens == [None, "t1"]
        for given, asked in ((token, 2), ("fixed", 1)):
            before = len(server.asked)
            with pytest.raises(ProblemError):
                client_of(server.base_url, given).trades(7).append(TRADE)
            assert len(server.asked) == before + asked
