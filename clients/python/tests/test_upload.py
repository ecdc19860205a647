"""What is sent of an upload, and when it is sent again."""

from pathlib import Path

import pytest

from conftest import ClientOf
from pagebucket import Csv, NotAcknowledgedError, ProblemError
from pagebucket.types import TradeInput
from scripted import Scripted, answered, cut, problem

TRADE: TradeInput = {"type": "buy", "ticker": "MDB", "qty": 419}
LINE = b'{"type":"buy","ticker":"MDB","qty":419}\n'
SUMMARY = answered({"customerId": 7, "ranges": [], "stored": 2, "refused": 0, "problems": []})


def test_files_and_items_are_sent_as_lines_and_again_with_the_same_key(client_of: ClientOf, tmp_path: Path) -> None:
    lines, table = tmp_path / "trades.ndjson", tmp_path / "trades.csv"
    lines.write_bytes(LINE * 2)
    table.write_text('\ufefftype,ticker,qty,price\nbuy,MDB,419,\n"buy",MDB,"419",\r\n', newline="")
    for source in (lines, Csv(table, qty=int), [TRADE, TRADE]):
        with Scripted(cut, problem(503, "partly-stored", {"stored": 1}), SUMMARY) as server:
            assert client_of(server.base_url).trades(7).upload(source, key="mine")["stored"] == 2  # type: ignore[arg-type]
        assert [asked.body for asked in server.asked] == [LINE * 2] * 3
        assert {asked.line for asked in server.asked} == {"POST /v1/customers/7/trades/upload"}
        assert {(asked.headers["idempotency-key"], asked.headers["content-type"]) for asked in server.asked} == {
            ("mine", "application/x-ndjson")
        }


def test_it_gives_up_and_names_the_key(client_of: ClientOf) -> None:
    with Scripted(cut) as server:
        with pytest.raises(NotAcknowledgedError) as lost:
            client_of(server.base_url).upload("trades", [], resumes=1)
    assert (lost.value.attempts, lost.value.key) == (2, server.asked[0].headers["idempotency-key"])
    assert server.asked[0].line == "POST /v1/trades/upload"
    with Scripted(problem(422, "idempotency-key-reused")) as server:
        with pytest.raises(ProblemError) as refused:
            client_of(server.base_url).trades(7).upload([TRADE], key="mine")
    assert (refused.value.key, len(server.asked)) == ("mine", 1)


def test_a_row_with_too_many_cells_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "trades.csv"
    table.write_text("type,ticker\nbuy,MDB\nbuy,MDB,1\n")
    with pytest.raises(ValueError, match="line 3"):
        list(Csv(table))


def test_what_can_be_read_once_is_refused(client_of: ClientOf) -> None:
    with Scripted(SUMMARY) as server:
        with pytest.raises(TypeError, match="read once"):
            client_of(server.base_url).trades(7).upload(trade for trade in [TRADE])
        # What fails while it is read is no lost connection.
        with pytest.raises(FileNotFoundError):
            client_of(server.base_url).trades(7).upload(Path("/nowhere/trades.ndjson"))
    assert server.asked == []
