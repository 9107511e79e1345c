"""Several calls at the same time, that fail as one call does."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

Found = TypeVar("Found")


async def together(calls: Sequence[Callable[[], Awaitable[Found]]]) -> list[Found]:
    """Make calls at the same time and give what each answers; the first failure ends them all."""
    found: dict[int, Found] = {}

    async def one(number: int, call: Callable[[], Awaitable[Found]]) -> None:
        found[number] = await call()

    try:
        async with anyio.create_task_group() as tasks:
            for number, call in enumerate(calls):
                tasks.start_soon(one, number, call)
    except ExceptionGroup as failed:
        # Whoever calls knows refusals by their type, one at a time.
        raise failed.exceptions[0] from failed
    return [found[number] for number in range(len(calls))]
