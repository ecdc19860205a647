"""What an answer that is not a success is raised as."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime

import httpx

from .types import Fault, Problem


class HttpError(Exception):
    """An answer that is not a success: a `ProblemError` if the service explains it, otherwise probably from a proxy."""

    def __init__(self, status: int, headers: httpx.Headers, body: str, message: str | None = None) -> None:
        super().__init__(message or f"HTTP status {status}")
        self.status = status
        #: The answer's text.
        self.body = body
        #: The request's id, which the service's log has too.
        self.request_id = headers.get("x-request-id")
        #: Seconds to wait before a repeat, if the answer says so.
        self.retry_after = seconds(headers.get("retry-after"))
        #: Of an append or an upload: its key. The same items may be sent again with it.
        self.key: str | None = None


class ProblemError(HttpError):
    """A problem (RFC 9457) that the service answers with."""

    def __init__(self, headers: httpx.Headers, problem: Problem) -> None:
        #: All that the service says, such as the `ranges` that are stored.
        self.problem = problem
        #: The kind of problem, as the address of its description, such as `/problems#invalid-item`.
        self.type = problem["type"]
        #: The kind in words.
        self.title = problem["title"]
        #: What went wrong this time.
        self.detail = problem["detail"]
        #: What is wrong with the request, at most 100 faults.
        self.errors: list[Fault] = problem.get("errors", [])
        first = f"{self.field or ''} {self.errors[0]['detail']}".strip() if self.errors else self.detail
        super().__init__(problem["status"], headers, json.dumps(problem), f"{self.title}: {first}")

    @property
    def field(self) -> str | None:
        """Where the first fault is: a JSON pointer into the body, such as `/0/qty`, or the name of a parameter."""
        return next((fault.get("pointer") or fault.get("parameter") for fault in self.errors), None)


class GoneError(ProblemError):
    """410: what the request asks for was there, and is deleted."""

    @property
    def first_page(self) -> int | None:
        """The first page that is still there. None if the owner is erased: then nothing is."""
        return self.problem.get("firstPage")

    @property
    def first_seq(self) -> int | None:
        """The `seq` of the first item of that page."""
        return self.problem.get("firstSeq")

    @property
    def erased_at(self) -> str | None:
        """When the owner was erased, if it is."""
        return self.problem.get("erasedAt")


class NotAcknowledgedError(Exception):
    """An append or an upload was not acknowledged in time. It may be stored. The same items may be sent again with the same key."""

    def __init__(self, key: str, attempts: int, cause: Exception) -> None:
        super().__init__(f"not acknowledged in {attempts} attempts, the last: {cause!r}")
        self.key = key
        self.attempts = attempts


def failure(response: httpx.Response) -> HttpError:
    """The error of an answer whose body was read."""
    if response.headers.get("content-type", "").startswith("application/problem+json"):
        problem = json.loads(response.content)
        # Every problem of the service has both; that of a proxy need not.
        if problem.get("status") == response.status_code and problem.get("title"):
            return explained(response.headers, problem)
    return HttpError(response.status_code, response.headers, response.text)


def explained(headers: httpx.Headers, problem: Problem) -> ProblemError:
    """The error of a problem: an answer, or an event of a stream."""
    return (GoneError if problem["status"] == 410 else ProblemError)(headers, problem)


def seconds(value: str | None) -> float | None:
    """`Retry-After` is a number of seconds, or (of some proxies) a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value) if value.replace(".", "", 1).isdigit() else parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
