"""Calls at the same time."""

from functools import partial

import anyio
import pytest

from tolsey.runtime.tasks import together


async def test_calls_run_beside_each_other_and_answer_in_their_order() -> None:
    first, second = anyio.Event(), anyio.Event()

    async def meet(own: anyio.Event, other: anyio.Event, answer: int) -> int:
        own.set()
        await other.wait()
        return answer

    with anyio.fail_after(60):
        calls = [partial(meet, first, second, 1), partial(meet, second, first, 2)]
        assert await together(calls) == [1, 2]


async def test_the_first_failure_ends_the_others_and_is_raised_as_it_is() -> None:
    ended = anyio.Event()

    async def never() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def fail() -> None:
        raise LookupError("gone")

    with anyio.fail_after(60), pytest.raises(LookupError, match="gone"):
        await together([never, fail])
    assert ended.is_set()
