"""A client for pagebucket: append-only histories, read as pages."""

from ._async import AsyncClient, AsyncHistory
from ._rules import Csv, new_key
from ._sync import Client, History
from .errors import GoneError, HttpError, NotAcknowledgedError, ProblemError

__all__ = [
    "AsyncClient",
    "AsyncHistory",
    "Client",
    "Csv",
    "GoneError",
    "History",
    "HttpError",
    "NotAcknowledgedError",
    "ProblemError",
    "new_key",
]
