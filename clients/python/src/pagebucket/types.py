"""What the service says and takes. Generated from openapi/openapi.json by generate.py."""

from __future__ import annotations

from typing import Generic, Literal, NotRequired, TypeAlias, TypedDict, TypeVar

#: A stored item of a history, and an item to append.
Item = TypeVar("Item")
NewItem = TypeVar("NewItem")


class IndexRange(TypedDict):
    """
    Consecutive items of an array, counted from 0, both ends included.
    """

    first: int
    last: int


class LineFault(TypedDict):
    """
    One fault of a line.
    """

    pointer: str
    """
    JSON Pointer (RFC 6901) into the line; empty for the whole line.
    """
    detail: str
    """
    What is wrong.
    """


class LineProblem(TypedDict):
    """
    Faults of one line.
    """

    line: int
    """
    Line number, counted from 1, blank lines included.
    """
    errors: list[LineFault]
    errorsOmitted: NotRequired[int]
    """
    Number of further faults.
    """


class LineRange(TypedDict):
    """
    Consecutive lines, counted from 1, both ends included.
    """

    first: int
    last: NotRequired[int]
    """
    Absent if the range has no end.
    """


class Links(TypedDict):
    """
    Links, as absolute paths. A link other than `self` is absent if it would lead to nothing. For a span of
    time and for values, a link may lead to a window without items.
    """

    self: str
    """
    This listing, as it was requested.
    """
    first: NotRequired[str]
    """
    The beginning of the order.
    """
    prev: NotRequired[str]
    """
    The previous page or window in the order.
    """
    next: NotRequired[str]
    """
    The next page or window in the order. Except for a span of time and for values, it is never empty.
    """
    last: NotRequired[str]
    """
    The end of the order.
    """
    newer: NotRequired[str]
    """
    Only for a window at a cursor: items that are newer than all in it, now or later. Request it again to
    learn of new items.
    """


NotCountedItem: TypeAlias = int


class Fault(TypedDict):
    """
    One thing that is wrong with a request.
    """

    parameter: NotRequired[str]
    """
    Name of a parameter of the path or the query, or of a header.
    """
    pointer: NotRequired[str]
    """
    JSON Pointer (RFC 6901) into the body.
    """
    line: NotRequired[int]
    """
    In a body of lines, the line that `pointer` refers to, counted from 1.
    """
    detail: str
    """
    What is wrong.
    """


class SeqRange(TypedDict):
    """
    Consecutive sequence numbers, both ends included.
    """

    firstSeq: int
    """
    The first one.
    """
    lastSeq: int
    """
    The last one.
    """


class Trade(TypedDict):
    """
    A stored trade.
    """

    seq: int
    """
    Sequence number: the permanent address of the trade in its history.
    """
    type: Literal["buy", "sell"]
    """
    Whether the customer bought or sold.
    """
    ticker: str
    """
    The symbol of the security.
    """
    qty: int
    """
    The number of units.
    """
    date: str
    """
    RFC 3339 in UTC, with exactly three fraction digits.
    """
    price: NotRequired[str]
    """
    The price of one unit: a string, so that no digit is lost. A decimal number in plain notation, with at most 34 significant digits, greater than 0.
    """


class TradeInput(TypedDict):
    """
    A trade to append. At most 256 bytes when it is stored.
    """

    type: Literal["buy", "sell"]
    """
    Whether the customer bought or sold.
    """
    ticker: str
    """
    The symbol of the security.
    """
    qty: int
    """
    The number of units.
    """
    date: NotRequired[str]
    """
    RFC 3339 with at most three fraction digits, in the years 0000 to 9999 of UTC. Default: the time at which the request was received.
    """
    price: NotRequired[str]
    """
    The price of one unit: a string, so that no digit is lost. A decimal number in plain notation, with at most 34 significant digits, greater than 0.
    """


class Listing(TypedDict, Generic[Item]):
    """
    A page of a history, or a window, with the totals of the same moment and links to other pages or windows.
    """

    order: Literal["asc", "desc"]
    page: NotRequired[int]
    """
    Only for a page: its permanent number, the same in either order.
    """
    full: NotRequired[bool]
    """
    Only for a page: whether it is full. A full page never changes.
    """
    totalItems: NotRequired[int]
    """
    Number of trades in the history; with `asOf`, at that moment. Absent for a span of time and for
    filters.
    """
    totalPages: NotRequired[int]
    """
    Number of pages of the history. Absent if `totalItems` is absent.
    """
    firstSeq: NotRequired[int]
    """
    Only if earlier trades are retired: the first sequence number that is there.
    """
    items: list[Item]
    """
    In `order`: up to 10 trades of a page, up to `limit` of a window.
    """
    links: Links


class Page(TypedDict, Generic[Item]):
    """
    A page as it is stored: a bucket.
    """

    page: int
    full: bool
    """
    Whether the page is full. A full page never changes.
    """
    firstSeq: int
    """
    Sequence number of the first trade.
    """
    count: int
    """
    Number of trades on the page.
    """
    items: list[Item]
    """
    In order of arrival.
    """


class UploadSummary(TypedDict):
    """
    Summary of an upload to many histories, in which every line is stored or refused.
    """

    stored: int
    """
    Number of stored lines.
    """
    refused: int
    """
    Number of lines that are refused, each for a fault of its own.
    """
    problems: list[LineProblem]
    """
    Faults of the first refused lines, at most 100 lines.
    """
    problemsOmitted: NotRequired[int]
    """
    Number of further refused lines.
    """
    owners: int
    """
    Number of owners with at least one stored item.
    """
    moreOwners: NotRequired[bool]
    """
    Whether there are more owners, which were not counted.
    """


class Uploaded(TypedDict):
    """
    Summary of an upload to one history, in which every line is stored or refused.
    """

    stored: int
    """
    Number of stored lines.
    """
    refused: int
    """
    Number of lines that are refused, each for a fault of its own.
    """
    problems: list[LineProblem]
    """
    Faults of the first refused lines, at most 100 lines.
    """
    problemsOmitted: NotRequired[int]
    """
    Number of further refused lines.
    """
    ranges: list[SeqRange]
    """
    Sequence numbers of the stored trades, in order of the lines: one range, unless others appended
    meanwhile. At most 1,000 ranges.
    """
    rangesOmitted: NotRequired[int]
    """
    Number of further ranges.
    """


class ListParameters(TypedDict):
    """
    The parameters of listings.
    """

    page: NotRequired[int]
    """
    Permanent number of the page, the same in either order. Default: the first page that is there, or with `order=desc` the last page. Only `order` may be combined with it. Example: `1`.
    """
    after: NotRequired[int]
    """
    The nearest trades after this sequence number; 0 is the beginning: the first trade that is there. After the last trade the answer has no items, which is not an error. Example: `0`.
    """
    before: NotRequired[int]
    """
    The nearest trades before this sequence number. Not together with `after`. Example: `1`.
    """
    offset: NotRequired[int]
    """
    How many trades to skip in `order`. At or beyond the end the answer has no items, which is not an error. Not together with `after`, `before`, `from` or `to`. Example: `0`.
    """
    limit: NotRequired[int]
    """
    Maximum number of trades in the window. Without a cursor or an `offset`, the window is at the beginning of `order`: the oldest trades, or the newest. Default for windows: 10. Example: `1`.
    """
    from_: NotRequired[str]
    """
    Only trades dated at this moment or later: RFC 3339 with an offset. The trades are still in order of `seq`, and the answer has no totals. Example: `2004-01-09T00:00:00.000Z`.
    """
    as_of: NotRequired[int]
    """
    Reads the history as it was when this was its last sequence number, and so its `totalItems`; the links `next` and `prev` of a window set it. Such an answer never changes. If the history has no such trade yet, `asOf` is ignored. Only together with `after`, `before`, `offset` or the header `Range`, not with `from` or `to`. Example: `1`.
    """
    to: NotRequired[str]
    """
    Only trades dated before this moment, which must not be before `from`. Example: `2004-01-09T00:00:00.000Z`.
    """
    order: NotRequired[Literal["asc", "desc"]]
    """
    `asc`: oldest first. `desc`: newest first. It applies to the items and to the links.
    """
    wait: NotRequired[int]
    """
    Waits up to this number of seconds until the window has a trade, and is then answered at once, without one if none came: a long poll. Only together with `after`; `limit` and `order` may be combined with it. Not in a HEAD request. Example: `1`.
    """


class Appended(TypedDict):
    """
    Where the trades of a request are stored.
    """

    ranges: list[SeqRange]
    """
    Sequence numbers of the trades, in the order of the request: one range, unless another writer
    appended between two of its pages.
    """
    totalItems: int
    """
    Number of trades in the history right after the append.
    """
    totalPages: int
    """
    Number of pages of the history right after the append.
    """
    date: str
    """
    RFC 3339 in UTC, with exactly three fraction digits.
    """


class Problem(TypedDict):
    """
    An error (RFC 9457).
    """

    type: str
    """
    The kind of problem, as the address of its description.
    """
    title: str
    """
    The name of the kind, the same for every problem of one `type`.
    """
    status: int
    detail: str
    """
    What went wrong this time: of several faults the first.
    """
    instance: str
    """
    The path of the request.
    """
    requestId: str
    """
    The request's id, as in the header `x-request-id`.
    """
    errors: NotRequired[list[Fault]]
    """
    What is wrong with the request: at most 100 faults.
    """
    errorsOmitted: NotRequired[int]
    """
    Number of further faults.
    """
    ranges: NotRequired[list[SeqRange]]
    """
    Sequence numbers of the stored items.
    """
    firstPage: NotRequired[int]
    """
    The first page that the history still has.
    """
    firstSeq: NotRequired[int]
    """
    The first item on that page.
    """
    erasedAt: NotRequired[str]
    """
    When the owner was erased: RFC 3339 in UTC, with exactly three fraction digits.
    """
    totalItems: NotRequired[int]
    """
    Number of items in the history.
    """
    unknownItems: NotRequired[IndexRange]
    """
    Items of the request's array that may or may not be stored.
    """
    notStoredItems: NotRequired[IndexRange]
    """
    Items of the request's array that are not stored.
    """
    stored: NotRequired[int]
    """
    Lines of an upload that are stored.
    """
    refused: NotRequired[int]
    """
    Lines of an upload that are refused, each for a fault of its own.
    """
    owners: NotRequired[int]
    """
    Owners with at least one stored line.
    """
    moreOwners: NotRequired[bool]
    """
    Whether there are more owners, which were not counted.
    """
    problems: NotRequired[list[LineProblem]]
    """
    Faults of the first refused lines.
    """
    unknownLines: NotRequired[list[LineRange]]
    """
    Lines of an upload, counted from 1, that may or may not be stored.
    """
    notStoredLines: NotRequired[list[LineRange]]
    """
    Lines of an upload, counted from 1, that are not stored. The last range has no `last`: it has no end.
    """
    counted: NotRequired[int]
    """
    Page views that are counted.
    """
    unknown: NotRequired[int]
    """
    Page views that may or may not be counted.
    """
    notCountedItems: NotRequired[list[NotCountedItem]]
    """
    Items of the request's array, or of its lines without the blank ones, counted from 0, that are not counted.
    """
