"""Bugs planted in how calls are made, each with the test that catches it."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest

from tests.runtime import test_calls, test_lanes, test_unread
from tolsey.runtime.outbox.dispatcher import Dispatcher
from tolsey.runtime.outbox.lanes import Lane
from tolsey.storage.database import Database
from tolsey.storage.runtime import commit_statement
from tolsey.storage.runtime.outbox import Outbox

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Plant:
    name: str
    plant: Callable[[], Any]
    caught_by: Callable[..., Awaitable[None]]
    is_on_disk: bool = True


@contextmanager
def sent_again_after_a_crash() -> Iterator[None]:
    """Whatever the row says, it is sent."""

    async def blind(self: Dispatcher, call: Any, state: Any) -> Any:
        del state
        return await self._handlers[type(call)].send(call)  # type: ignore[union-attr]  # of a call that is looked up

    with patch.object(Dispatcher, "_try", blind):
        yield


@contextmanager
def result_taken_twice() -> Iterator[None]:
    """A turn is taken whether the row that it consumes is there or not."""
    with patch.object(commit_statement, "REPEATED", f"{commit_statement.REPEATED} AND false"):
        yield


@contextmanager
def lane_that_starves() -> Iterator[None]:
    """A tenant that was let in keeps its turn."""
    let_in = Lane._let_in

    def greedy(self: Lane) -> bool:
        order = list(self._waiting)
        is_in = let_in(self)
        for tenant in reversed(order):
            if tenant in self._waiting:
                self._waiting.move_to_end(tenant, last=False)
        return is_in

    with patch.object(Lane, "_let_in", greedy):
        yield


@contextmanager
def cut_call_costs_an_attempt() -> Iterator[None]:
    """What a stop cuts off is counted as a try that failed."""

    async def counted(self: Outbox, keys: Any) -> None:
        await self._database.execute(
            "UPDATE outbox SET attempts = attempts + 1, interruptions = interruptions - 1"
            " WHERE key = ANY($1::text[])",
            list(keys),
        )

    with patch.object(Outbox, "give_back", counted):
        yield


@contextmanager
def unknown_row_is_dropped() -> Iterator[None]:
    """A process deletes what it does not know."""
    due = Outbox.due

    async def tidy(self: Outbox, limit: int, but: Any, known: Any, *slots: Any) -> Any:
        await self._database.execute(
            "DELETE FROM outbox WHERE NOT name = ANY($1::text[])", list(known.names)
        )
        return await due(self, limit, but, known, *slots)

    with patch.object(Outbox, "due", tidy):
        yield


PLANTS = (
    Plant(
        "sent_again_after_a_crash",
        sent_again_after_a_crash,
        test_calls.test_what_was_sent_before_a_crash_is_looked_up_and_not_sent_again,
    ),
    Plant(
        "result_taken_twice",
        result_taken_twice,
        test_calls.test_a_result_that_comes_back_twice_takes_effect_once,
    ),
    Plant(
        "lane_that_starves",
        lane_that_starves,
        test_lanes.test_a_lane_lets_tenants_in_by_turns,
        is_on_disk=False,
    ),
    Plant(
        "cut_call_costs_an_attempt",
        cut_call_costs_an_attempt,
        test_calls.test_a_stop_that_cuts_a_call_uses_no_attempt_and_the_next_process_looks_first,
    ),
    Plant(
        "unknown_row_is_dropped",
        unknown_row_is_dropped,
        test_unread.test_a_poll_leaves_a_row_of_an_unknown_class_where_it_is,
    ),
)


@pytest.mark.parametrize("planted", PLANTS, ids=lambda planted: planted.name)
async def test_its_test_catches_it(counters: Database, planted: Plant) -> None:
    given = (counters,) if planted.is_on_disk else ()
    with planted.plant(), pytest.raises((AssertionError, ValueError, ExceptionGroup)) as caught:
        await planted.caught_by(*given)
    assert {type(one) for one in leaves(caught.value)} <= {AssertionError, ValueError}


def leaves(error: BaseException) -> list[BaseException]:
    """List what a group of errors is of."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [one for part in error.exceptions for one in leaves(part)]
