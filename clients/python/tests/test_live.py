"""How streams are read on when their connections are lost."""

import json
from typing import Any

import pytest

from conftest import ClientOf
from pagebucket import GoneError, HttpError, ProblemError
from scripted import Answer, Scripted, answered, cut, plain, problem, stream

HEAD = "retry: 1\n\n"
END = 'retry: 2\nevent: end\ndata: {"reason":"max-age"}\n\n'


def items(first: int, last: int) -> list[dict[str, Any]]:
    # A line separator of Unicode ends no line here.
    return [{"seq": seq, "text": f"Grüße \u2028{seq} 🎈"} for seq in range(first, last + 1)]


def event(first: int, last: int) -> str:
    return f"id: {last}\ndata: {json.dumps({'items': items(first, last)}, ensure_ascii=False)}\n\n"


def read(client_of: ClientOf, last: int, *answers: Answer, after: int | None = 0) -> Scripted:
    """Reads up to item `last`: every item comes once, in order."""
    with Scripted(*answers) as server:
        live = client_of(server.base_url).history("rooms", "the/kitchen", "messages").live(after=after)
        found = []
        for item in live:
            found.append(item)
            if item["seq"] == last:
                break
        live.close()  # type: ignore[attr-defined]
    assert found == items(last - len(found) + 1, last)
    return server


def test_items_come_as_they_are_streamed_wherever_the_pieces_end(client_of: ClientOf) -> None:
    text = f"{HEAD}:\r\n\r\n{event(3, 5)}:\n\n{event(6, 6)}event: of-later-versions\ndata: {{}}\n\n{event(7, 9)}"
    server = read(client_of, 9, stream(text), after=2)
    (asked,) = server.asked
    assert (asked.line, asked.headers["accept"]) == ("GET /v1/rooms/the%2Fkitchen/messages/live?after=2", "text/event-stream")
    assert "last-event-id" not in asked.headers


def test_a_stream_that_breaks_off_or_ends_is_resumed_after_the_last_item(client_of: ClientOf) -> None:
    # The end of the last event is missing: it is none.
    inside = event(4, 9)[:-1]
    answers = [
        stream(HEAD + event(1, 3) + inside, broken=True),
        cut,
        problem(503, "overloaded", retry_after="0"),
        stream(HEAD + event(2, 4), broken=True),
        stream(HEAD + event(5, 6) + END),
        stream(HEAD + event(7, 8)),
    ]
    server = read(client_of, 8, *answers)
    assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, "3", "3", "3", "4", "6"]


def test_without_a_position_it_begins_at_the_end_and_stays_there(client_of: ClientOf) -> None:
    at_end = f'{HEAD}event: position\nid: 0\ndata: {{"totalItems":0}}\n\n'
    server = read(client_of, 2, stream(at_end, broken=True), stream(HEAD + event(1, 2)), after=None)
    assert [asked.line.rpartition("/")[2] for asked in server.asked] == ["live", "live?after=0"]
    assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, "0"]


def test_it_ends_when_the_next_items_are_deleted_or_numbers_mean_others(client_of: ClientOf) -> None:
    gone = {"type": "/problems#retired", "title": "Retired", "status": 410, "detail": "Gone.", "firstSeq": 21, "firstPage": 3}
    with pytest.raises(GoneError, match="Retired: Gone") as deleted:
        read(client_of, 9, stream(f"{HEAD}{event(1, 2)}event: gone\ndata: {json.dumps(gone)}\n\n"))
    assert (deleted.value.first_seq, deleted.value.first_page, deleted.value.erased_at) == (21, 3, None)
    with pytest.raises(RuntimeError, match="backup"):
        read(client_of, 9, stream(HEAD + 'event: end\ndata: {"reason":"epoch"}\n\n'))
    with pytest.raises(RuntimeError, match="item 4 came after item 2"):
        read(client_of, 9, stream(HEAD + event(1, 2) + event(4, 5)))
    with pytest.raises(ProblemError):
        read(client_of, 9, problem(403, "forbidden"))
    with pytest.raises(HttpError, match="no stream of events"):
        read(client_of, 9, plain(200, "<html>", content_type="text/html"))


def test_an_export_is_resumed_after_the_last_whole_row_and_gives_up(client_of: ClientOf) -> None:
    def rows(first: int, last: int) -> str:
        return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items(first, last))

    export = "application/x-ndjson"
    answers = [stream(rows(3, 5) + rows(6, 6)[:-9], 200, export, broken=True), cut, problem(503, "overloaded"), plain(200, rows(6, 8))]
    with Scripted(*answers) as server:
        room = client_of(server.base_url).history("rooms", "kitchen", "messages")
        assert list(room.all(after=2, to="2026-01-01T00:00:00Z")) == items(3, 8)
    assert [asked.line.split("?")[1] for asked in server.asked] == [f"after={after}&to=2026-01-01T00%3A00%3A00Z" for after in (2, 5, 5, 5)]
    with Scripted(cut) as server:
        with pytest.raises(Exception, match="disconnected"):
            list(client_of(server.base_url).history("rooms", "kitchen", "messages").all(resumes=1))
    assert len(server.asked) == 2
    # A proxy may end an answer in order whose row is cut.
    with Scripted(plain(200, rows(1, 2)[:-5]), plain(200, rows(2, 2))) as server:
        assert list(client_of(server.base_url).history("rooms", "kitchen", "messages").all()) == items(1, 2)


def test_a_walk_follows_links_and_a_read_is_sent_once(client_of: ClientOf) -> None:
    def listing(next_: str | None) -> Answer:
        return answered({"order": "asc", "items": [], "links": {"self": "/", **({"next": next_} if next_ else {})}})

    with Scripted(listing("/v1/a?x=%2B"), listing(None), problem(503, "overloaded")) as server:
        room = client_of(f"{server.base_url}/prefix").history("rooms", "kitchen", "messages")
        assert len(list(room.windows(from_="2026-01-01T00:00:00Z", order="desc", filters={"author": ["ann", "bob"]}))) == 2
        with pytest.raises(ProblemError):
            room.page(3)
    assert [asked.line for asked in server.asked] == [
        "GET /prefix/v1/rooms/kitchen/messages?limit=100&from=2026-01-01T00%3A00%3A00Z&order=desc&author=ann&author=bob",
        "GET /prefix/v1/a?x=%2B",
        "GET /prefix/v1/rooms/kitchen/messages/pages/3",
    ]
