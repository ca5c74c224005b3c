"""Several asynchronous iterators as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

T = TypeVar("T")


async def merged(parts: Sequence[AsyncGenerator[T]]) -> AsyncGenerator[tuple[int, T]]:
    """Yield the values of iterators that run at the same time, each with its iterator's index.

    The first error ends all iterators and is raised. Closing the merged iterator closes them all.
    """
    values: asyncio.Queue[tuple[int, T] | asyncio.Task[None]] = asyncio.Queue()

    async def collect(index: int) -> None:
        async with aclosing(parts[index]) as part:
            async for value in part:
                values.put_nowait((index, value))

    tasks = [asyncio.create_task(collect(index)) for index in range(len(parts))]
    for task in tasks:
        task.add_done_callback(values.put_nowait)
    num_running = len(tasks)
    try:
        while num_running:
            value = await values.get()
            if isinstance(value, asyncio.Task):
                value.result()  # raises the error of its iterator
                num_running -= 1
            else:
                yield value
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
