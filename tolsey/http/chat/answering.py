"""Where answers are made: each outlives the request that asked for it, until it is settled."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Protocol, Self

import anyio

from tolsey.http.chat.generation import AnswerGeneration, GenerationOutcome, Order
from tolsey.http.chat.terms import Terms
from tolsey.http.chat.toolbox import Toolbox
from tolsey.http.clients.model import ChatModel
from tolsey.runtime.decision import Tell
from tolsey.runtime.errors import Overloaded, Stopping
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.database import Database

MOST: Final = 2_000
"""So many answers are made in one process, or wait for a place in the lane of models."""
WAIT_SECONDS: Final = 10.0
"""How long an answer waits for its place."""
LAST_SECONDS: Final = 7.0
"""What answers have to come to their end in a process that is told to stop.

Those that are not there yet are broken off, settled and told while the server still sends: it cuts
what is open after its own grace (`tolsey.server`), which is longer.
"""
STOPPING_SECONDS: Final = 20.0


class ToolsOfPerson(Protocol):
    """Gives a person, by their id, the tools of a store; `client_id` says in audit rows by what they came."""

    def __call__(
        self, store: StoreRow, user_id: str, client_id: str = ..., /
    ) -> Awaitable[Toolbox]:
        """Give them."""
        ...


Place = Callable[[str], AbstractAsyncContextManager[None]]
"""Holds a place of an organization in the lane of models."""


class AnswerService:
    """Makes answers; those whose process died their organization ends (`ledger.answers`)."""

    def __init__(
        self,
        model: ChatModel,
        terms: Terms,
        ask: Callable[[ActorId, Message[Any]], Awaitable[Any]],
        database: Database,
        clock: Callable[[], datetime],
        *,
        post: Callable[[Sequence[Tell]], Awaitable[int]],
        place: Place,
        process: str | None = None,
    ) -> None:
        self.model = model
        self.terms = terms
        self.ask = ask
        self.post = post
        self.place = place
        self.database = database
        self.clock = clock
        self.process = process
        self.persons_tools: ToolsOfPerson | None = None
        """What people use themselves, set once the tools are made: they are made of the service that has this."""
        self.tools: ToolsOfPerson | None = None
        """The same where models are offered them."""
        self._live: set[AnswerGeneration] = set()
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
            one.break_off(GenerationOutcome.STOPPING)

    async def stop(self) -> None:
        """Break off every answer, begin none, and wait until all are settled, for a while."""
        self._stopping = True
        self._break_off()
        with anyio.move_on_after(STOPPING_SECONDS, shield=True):
            while self._live:
                await next(iter(self._live)).ended.wait()

    async def toolbox(self, store: StoreRow, user_id: str) -> Toolbox | None:
        """Give a person the tools of a store; None where models are offered none."""
        return await self.tools(store, user_id) if self.tools else None

    async def tools_of_person(self, store: StoreRow, user_id: str, client_id: str) -> Toolbox:
        """Give a person the tools of a store to use them without a model; audit rows name `client_id`."""
        if self.persons_tools is None:
            raise Stopping
        return await self.persons_tools(store, user_id, client_id)

    def require_model(self) -> None:
        """Refuse with 503 and the variable when no model is set."""
        _ = self.model.name

    def begin(
        self,
        order: Order,
        messages: Sequence[Mapping[str, Any]],
        toolbox: Toolbox | None = None,
    ) -> AnswerGeneration:
        """Begin an answer, made with these tools; `AnswerGeneration.begun` says whether it is made."""
        if self._stopping:
            raise Stopping
        if len(self._live) >= MOST:
            raise Overloaded("chat")
        generation = AnswerGeneration(self, order, messages, toolbox)
        self._live.add(generation)
        self._tasks.start_soon(self._bring_to_end, generation)
        return generation

    async def _bring_to_end(self, generation: AnswerGeneration) -> None:
        try:
            async with AsyncExitStack() as stack:
                try:
                    with anyio.fail_after(WAIT_SECONDS):
                        await stack.enter_async_context(
                            self.place(generation.order.organization_id)
                        )
                except TimeoutError:
                    generation.refuse(Overloaded("chat", retry_after=WAIT_SECONDS))
                    return
                if self._stopping:
                    generation.refuse(Stopping())
                    return
                await generation.run()
        finally:
            self._live.discard(generation)
            generation.ended.set()
