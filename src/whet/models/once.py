"""The same thing asked for twice at the same time is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    def __init__(self) -> None:
        self._doing: dict[bytes, asyncio.Future[T]] = {}

    async def do(self, key: bytes, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work`, or share in what is under way under this key, its failure included.

        Where whoever began is cancelled, one of those who share in it does the work instead.
        """
        while (doing := self._doing.get(key)) is not None:
            try:
                return await asyncio.shield(doing)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not doing.cancelled() or (task is not None and task.cancelling()):
                    raise
        self._doing[key] = outcome = asyncio.get_running_loop().create_future()
        try:
            value = await work()
        except asyncio.CancelledError:
            outcome.cancel()
            raise
        except BaseException as error:
            outcome.set_exception(error)
            outcome.exception()  # often nobody else waits for it
            raise
        else:
            outcome.set_result(value)
            return value
        finally:
            del self._doing[key]
