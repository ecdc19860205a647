"""Checks of our own, beside those of schemathesis, and a hook: see the exceptions at the end of schemathesis.toml."""

import hashlib
import json
import re

import schemathesis
from schemathesis.engine import observations

NDJSON = "application/x-ndjson"
PAGE_VIEWS = "/v1/page-views"
KEY = "9f0c4d2e-6f3b-4d64-8a53-1d2c7be0a9f1"
LIVE = re.compile(r"GET /v1/([a-z-]+/)?live")
LISTING = re.compile(r"GET /v1/[a-z]+/\{[A-Za-z]+\}/[a-z]+")


same_origin_path = observations._same_origin_path


def same_origin_path_if_url(value, origin):
    """Schemathesis 4.32.5 takes each text that begins as a URL for one, and ends at `http://[`, which is a valid text."""
    try:
        return same_origin_path(value, origin)
    except ValueError:
        return None


observations._same_origin_path = same_origin_path_if_url


@schemathesis.serializer(NDJSON)
def one_line(ctx, value):
    """What the schema describes is a line of an upload."""
    return value if isinstance(value, bytes) else (json.dumps(value) + "\n").encode()


def at(value, pointer):
    """What a JSON Pointer names."""
    for part in pointer.split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part.replace("~1", "/").replace("~0", "~")]
    return value


@schemathesis.check
def upload_of_a_line(ctx, response, case):
    """A line that is valid by its schema is stored, but for a whole number such as 419.0, or where its
    `Idempotency-Key` came before with another line."""
    if PAGE_VIEWS in case.path or case.media_type != NDJSON or response.status_code != 200 or not case.meta.generation.mode.is_positive:
        return
    if case.path.endswith(".ndjson"):
        outcome, *end = map(json.loads, response.content.splitlines())
        assert outcome["line"] == 1, outcome
        if end:
            assert end[0]["problem"]["type"].endswith("#idempotency-key-reused"), end
            return
        problems = [outcome["problem"]] if "problem" in outcome else []
    else:
        summary = response.json()
        assert summary["stored"] + summary["refused"] == 1, summary
        problems = summary["problems"]
    for problem in problems:
        for error in problem.get("errors", [{"pointer": "", "detail": problem.get("detail")}]):
            spelling = error["pointer"] and has_no_words(at(case.body, error["pointer"]), error["detail"])
            assert spelling or "`Idempotency-Key`" in error["detail"], (error, case.body)


@schemathesis.deserializer(NDJSON)
def last_row(ctx, response):
    """The schema is that of a row: it is held against the last one. That all begin with the same member is looked at
    here; only the outcome that ends an upload early differs, and rows of chosen `fields`, which an item need not have. Of no rows at all there is nothing to judge: then it is held against the document's example."""
    rows = [json.loads(line) for line in response.content.decode().splitlines()]
    chosen = ctx.case is not None and "fields" in (ctx.case.query or {})
    assert chosen or len({next(iter(row)) for row in rows}) <= 1 or next(iter(rows[-1])) == "problem", rows
    return rows[-1] if rows else ctx.operation.definition.raw["responses"]["200"]["content"][NDJSON]["example"]


@schemathesis.deserializer("text/csv")
def table(ctx, response):
    """The schema says no more than that it is a text."""
    return response.content.decode()


def has_no_words(value, detail):
    """JSON Schema has no words for the spelling of a whole number, and for how many digits a decimal number has."""
    digits = isinstance(value, str) and sum(character.isdigit() for character in value.lstrip("-0.")) > 34
    return isinstance(value, float) or digits and detail == "must have at most 34 significant digits"


@schemathesis.check
def whole_number_spelling(ctx, response, case):
    """An item that is valid by its schema is refused for three reasons alone: a whole number such as 419.0, a decimal number
    of too many digits, or an `Idempotency-Key` that came before with another body."""
    if response.status_code != 422 or not case.meta.generation.mode.is_positive or PAGE_VIEWS in case.path:
        return
    problem = response.json()
    if problem["type"].endswith(("#idempotency-key-reused", "#summary-too-large")):
        return
    assert "errorsOmitted" not in problem, problem
    for error in problem["errors"]:
        value = at(case.body, error["pointer"])
        assert has_no_words(value, error["detail"]), (error, value)


@schemathesis.check
def company_of_parameters(ctx, response, case):
    """A listing or a summary whose parameters are valid one by one is refused for their company alone, also for the bytes of all
    filters, and for names that are no time zones. So is a list of histories: each is named once, and an `id` belongs to its list."""
    if response.status_code != 400 or case.method != "GET" or not case.meta.generation.mode.is_positive:
        return
    if PAGE_VIEWS in case.path:
        return
    for error in response.json()["errors"]:
        company = "must not be given together with", "must be given together with", "must not be before `from`"
        too_long = "must have at most 1024 bytes, together with the other filters"
        of_list = "is of a stream with another list of `watch`", "must not name a history twice", "must be the `id` of an event"
        of_summaries = "must be \"none\" without", "must not be \"previous\" with `group`", "must be the name of an IANA time zone", "must be at most 10000 spans after"
        assert error["detail"].startswith((*company, too_long, *of_list, *of_summaries)), error


@schemathesis.check
def page_view_bounds(ctx, response, case):
    """Page views that are valid by their schema are refused for bounds alone that it has no words for."""
    if response.status_code != 422 or not case.meta.generation.mode.is_positive or PAGE_VIEWS not in case.path:
        return
    for error in response.json()["errors"]:
        value = at(case.body, error["pointer"])
        if error["pointer"].endswith("/views"):
            assert isinstance(value, float), (error, value)
        elif error["pointer"].endswith("/path"):
            assert "bytes" in error["detail"] and len(value.encode()) > 512, (error, value)
        else:
            bounds = "must be at most 24 hours ahead", "must be at most 366 days ahead", "must be on a whole hour"
            assert error["detail"].startswith(bounds), (error, value)


@schemathesis.check
def page_view_spans(ctx, response, case):
    """What was counted is not shown for spans alone that the schema has no words for, and paths that are too long."""
    if response.status_code != 400 or case.method != "GET" or not case.meta.generation.mode.is_positive:
        return
    if PAGE_VIEWS not in case.path:
        return
    for error in response.json()["errors"]:
        spans = "must not be before `from`", "must not be later than now", "must not be in the last", "must be on a whole minute"
        too_long = " points, more than the limit of 10000" in error["detail"]
        long_path = "bytes" in error["detail"] and len(case.query["path"].encode()) > 512
        assert too_long or long_path or error["detail"].startswith(spans), error


def acceptable_page_views(case):
    """Moments in the past, hours that begin on the hour, spans of some minutes: most of what is drawn is none."""
    body, query = case.body, case.query
    for item in body if isinstance(body, list) else [body]:
        if isinstance(item, dict):
            if isinstance(item.get("at"), str):
                item["at"] = "2000" + item["at"][4:]
            if isinstance(item.get("hour"), str):
                item["hour"] = "2000" + item["hour"][4:13] + ":00:00Z"
    if isinstance(query, dict):
        if isinstance(query.get("timestamp"), str):
            query["timestamp"] = query["timestamp"][:16] + ":00Z"
        if isinstance(query.get("to"), str):
            query["to"] = "2000" + query["to"][4:16] + ":59.999Z"
        if isinstance(query.get("from"), str) and isinstance(query.get("to"), str):
            query["from"] = query["to"][:16] + ":00Z"
    return case


def erased_alone(case):
    """Erases owners that no other request is about: an erased one would answer them all with 410."""
    for name, value in (case.path_parameters or {}).items():
        text = str(value)
        if name == "customerId":
            if re.fullmatch("[1-9][0-9]{0,15}", text) and int(text) < 2**53:
                case.path_parameters[name] = 2**51 + int(text) % 2**50
        elif name == "accountId":
            if re.fullmatch("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", text):
                case.path_parameters[name] = "eeeeeeee" + text[8:]
        elif re.fullmatch("[A-Za-z0-9-]{1,64}", text) and not text.startswith("erased-"):
            case.path_parameters[name] = "erased-" + text[:57]
    return case


def acceptable_live(case):
    """An `id` of a stream is one that the server has given, and a list names each history once."""
    (case.headers or {}).pop("Last-Event-ID", None)
    (case.query or {}).pop("lastEventId", None)
    watch = (case.query or {}).get("watch")
    if isinstance(watch, list):
        case.query["watch"] = list({str(one).split(":")[0]: one for one in watch}.values())
    return case


def acceptable(case):
    """Most draws of a listing's parameters hold some that exclude each other. Of such valid ones most are
    made acceptable, so that windows and pages are tested, and not the same refusal again and again. For the same reason the
    shortest `Idempotency-Key`, and that of the document's example, belong to one request: schemathesis sends one key with many."""
    if case.method == "DELETE":
        return erased_alone(case)
    positive = case.meta is not None and case.meta.generation.mode.is_positive
    key = (case.headers or {}).get("Idempotency-Key")
    if positive and isinstance(key, str) and (len(key) == 1 or key == KEY):
        request = case.operation.label + json.dumps(case.body, sort_keys=True, default=repr)
        case.headers["Idempotency-Key"] = key + hashlib.sha256(request.encode()).hexdigest()
    if positive and PAGE_VIEWS in case.path:
        return acceptable_page_views(case)
    if positive and LIVE.fullmatch(case.operation.label):
        return acceptable_live(case)
    query = case.query
    # Almost no `expectedSeq` that is drawn is the total. The greatest one is left, and refused.
    if positive and isinstance(query, dict) and str(query.get("expectedSeq")) != str(2**53 - 1):
        query.pop("expectedSeq", None)
    if positive and isinstance(query, dict) and case.operation.label.endswith("/summary"):
        # No schema has the names of all time zones.
        if isinstance(query.get("tz"), str):
            query["tz"] = "Europe/Berlin"
        if not {"from", "to"} <= query.keys() or query.get("fill") == "previous" and "group" in query:
            query.pop("fill", None)
        return case
    if not isinstance(query, dict) or not LISTING.fullmatch(case.operation.label):
        return case
    # A long poll would wait for an item that does not come.
    if str(query.get("wait")) in map(str, range(1, 61)):
        del query["wait"]
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return case
    if (case.headers or {}).get("Range", "").startswith("items=") and query.keys() - {"order", "asOf"}:
        del case.headers["Range"]
    if "after" in query and "before" in query:
        query.pop("after" if "limit" in query else "before")
    if "offset" in query and {"after", "before", "from", "to"} & query.keys():
        for name in ["offset"] if "limit" in query else ["after", "before", "from", "to"]:
            query.pop(name, None)
    others = ["after", "before", "offset", "limit", "from", "to", "asOf"]
    if "page" in query and set(others) & query.keys():
        for name in ["page"] if len(query) > 3 else others:
            query.pop(name, None)
    filters = query.keys() - {"page", "order", *others}
    excluded = {"page", "offset", "asOf"} & query.keys()
    if filters and excluded:
        for name in excluded if "limit" in query else filters:
            query.pop(name, None)
    if not {"after", "before", "offset"} & query.keys() or {"from", "to"} & query.keys():
        query.pop("asOf", None)
    return case


@schemathesis.hook
def map_case(ctx, case):
    """What is drawn."""
    return acceptable(case)


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """What stands in the document as an example: `map_case` does not see it."""
    acceptable(case)
