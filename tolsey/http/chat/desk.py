"""Where answers are made: each outlives the request that asked for it, until it is settled."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

import anyio
import structlog

from tolsey.actors.organization.messages import ExpireCredits, SettleHold, organization
from tolsey.actors.refusals import Conflict
from tolsey.http.chat.generation import Generation, Order, Outcome
from tolsey.http.chat.terms import Terms
from tolsey.http.clients.model import ChatModel
from tolsey.runtime.errors import Overloaded, RuntimeFault, Stopping
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage.chat import generations
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.records.chat import Abandoned, Ending

MOST_AT_ONCE: Final = 1_000
"""So many answers are made in one process at a time."""
LAST_SECONDS: Final = 7.0
"""What answers have to come to their end in a process that is told to stop.

Those that are not there yet are broken off, settled and told while the server still sends: it cuts
what is open after its own grace (`tolsey.server`), which is longer.
"""
STOPPING_SECONDS: Final = 20.0
SWEEP_SECONDS: Final = 10.0
SILENT_SECONDS: Final = 20.0
"""A process that beats no more, and has not written an answer's cost down for so long, is gone."""

log = structlog.get_logger()


class Desk:
    """Makes answers, and settles those whose process died."""

    def __init__(
        self,
        model: ChatModel,
        terms: Terms,
        ask: Callable[[ActorId, Message[Any]], Awaitable[Any]],
        database: Database,
        clock: Callable[[], datetime],
        *,
        process: str | None = None,
    ) -> None:
        self.model = model
        self.terms = terms
        self.ask = ask
        self.database = database
        self.clock = clock
        self.process = process
        self._live: set[Generation] = set()
        self._stopping = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open."""
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.stop()
        self._tasks.cancel_scope.cancel()
        await self._stack.aclose()

    def retire(self) -> None:
        """Begin no answer any more, and break off those that do not end soon."""
        self._stopping = True
        self._tasks.start_soon(self._break_off_soon)

    async def _break_off_soon(self) -> None:
        await anyio.sleep(LAST_SECONDS)
        self._break_off()

    def _break_off(self) -> None:
        for one in list(self._live):
            one.break_off(Outcome.STOPPING)

    async def stop(self) -> None:
        """Break off every answer, begin none, and wait until all are settled, for a while."""
        self._stopping = True
        self._break_off()
        with anyio.move_on_after(STOPPING_SECONDS, shield=True):
            while self._live:
                await next(iter(self._live)).ended.wait()

    def require_model(self) -> None:
        """Refuse with 503 and the variable when no model is set."""
        _ = self.model.name

    def begin(self, order: Order, messages: Sequence[Mapping[str, str]]) -> Generation:
        """Begin an answer; `Generation.begun` says whether it is made."""
        if self._stopping:
            raise Stopping
        if len(self._live) >= MOST_AT_ONCE:
            raise Overloaded("chat")
        generation = Generation(self, order, messages)
        self._live.add(generation)
        self._tasks.start_soon(self._bring_to_end, generation)
        return generation

    async def _bring_to_end(self, generation: Generation) -> None:
        try:
            await generation.run()
        finally:
            self._live.discard(generation)
            generation.ended.set()

    def watch(self) -> None:
        """Sweep from now on, as long as the desk is open."""
        self._tasks.start_soon(self._watch)

    async def _watch(self) -> None:
        while True:
            try:
                await self.sweep()
            except (RuntimeFault, StorageError) as error:
                log.warning("chat.sweep_failed", fault=type(error).__name__)
            await anyio.sleep(min(SWEEP_SECONDS, self.terms.lease.total_seconds()))

    async def sweep(self) -> int:
        """End answers that were left alone at the cost they last reported; tell how many."""
        at, swept = self.clock(), 0
        silent_since = at - timedelta(seconds=SILENT_SECONDS)
        for one in await generations.orphaned(self.database, silent_since + self.terms.lease):
            settled = SettleHold(generations.hold_id(one.id), one.used, at)
            with suppress(Conflict):  # it has ended just now
                await self.ask(organization(one.organization_id), settled)
                swept += await generations.end(self.database, one.id, _crashed(one), at)
        left = await generations.abandoned(self.database, at)
        for organization_id in {one.organization_id for one in left if not one.closed}:
            # The organization ends a hold whose lease is over, and no other.
            await self.ask(organization(organization_id), ExpireCredits(at))
        for one in left:
            hold = await generations.hold_of(self.database, one)
            if hold.closed:
                swept += await generations.end(self.database, one.id, _crashed(hold), at)
        return swept


def _crashed(one: Abandoned) -> Ending:
    """Say how an answer ended whose process is gone: at the cost that it last wrote down."""
    return Ending(
        *(Outcome.CRASHED, None, None),
        estimated=True,
        cost=one.used,
        charged=min(one.used, one.covered),
    )
