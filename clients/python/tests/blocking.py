"""Both clients under one face: what the asynchronous one promises is waited for."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, Self, cast

from pagebucket import AsyncClient, AsyncHistory, Client


class Blocking:
    """An asynchronous client, or a history of it, whose methods wait."""

    def __init__(self, runner: asyncio.Runner, wrapped: AsyncClient | AsyncHistory[Any, Any]) -> None:
        self.runner = runner
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.wrapped, name)
        if not callable(attribute):
            return attribute

        def call(*arguments: Any, **options: Any) -> Any:
            result = attribute(*arguments, **options)
            if inspect.iscoroutine(result):
                return self.runner.run(result)
            if isinstance(result, AsyncIterator):
                return self.iterate(result)
            return Blocking(self.runner, result) if isinstance(result, AsyncHistory) else result

        return call

    def iterate(self, items: Any) -> Iterator[Any]:
        """The items of an asynchronous iterator, as they come."""

        async def following() -> Any:
            return await anext(items, self)

        try:
            while (item := self.runner.run(following())) is not self:
                yield item
        finally:
            self.runner.run(items.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.runner.run(cast(AsyncClient, self.wrapped).aclose())
        self.runner.close()


def blocking(base_url: str, token: Callable[[str | None], str] | str | None = None, **options: Any) -> Client:
    """An asynchronous client that looks like the other one."""

    async def promised(refused: str | None) -> str:
        assert callable(token)
        return token(refused)

    return cast(Client, Blocking(asyncio.Runner(), AsyncClient(base_url, promised if callable(token) else token, **options)))
