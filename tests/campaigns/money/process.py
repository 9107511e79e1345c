"""A process of the service that can die, and the processor that it asks."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio

from tests.actors.organization import processor
from tests.campaigns.money.bank import Bank
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.billing.payment_events.catalogue import read
from tolsey.actors.organization.billing.payment_events.envelopes import open_envelope
from tolsey.actors.organization.effects import EventCalls
from tolsey.actors.processor import PaymentProcessor
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageUnavailable
from tolsey.storage.records.runtime.turns import Batch, BatchOutcome, CallState, OutboxRow
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox

WAITING = "SELECT FROM outbox WHERE key LIKE 'payment_event:%' LIMIT 1"
BEFORE_THE_COMMIT, AFTER_THE_COMMIT = "before the commit", "after the commit"


class Mortal(Journal):
    """A journal of a process that can die: once it has, nothing is written any more."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.dies: str | None = None
        """Whether the process dies before or after its last commit."""
        self.left = 1
        """How many commits it makes until then."""
        self.is_dead = False

    async def write(self, batch: Batch) -> BatchOutcome:
        if self.dies is not None:
            self.left -= 1
        fate = self.dies if not self.left else None
        if self.is_dead or fate == BEFORE_THE_COMMIT:
            self.is_dead = True
            raise StorageUnavailable("this process is dead")
        outcome = await super().write(batch)
        if fate is not None:
            self.is_dead = True
            raise StorageUnavailable("this process died after its commit")
        return outcome


class Letterbox(Outbox):
    """The outbox of such a process: what waits in it is taken out only while it is open."""

    def __init__(self, database: Database, journal: Mortal) -> None:
        super().__init__(database)
        self._journal = journal
        self.is_open = False

    async def due(self, *given: Any, **more: Any) -> list[OutboxRow]:
        return await super().due(*given, **more) if self.is_open else []

    async def begin(self, keys: Sequence[str]) -> dict[str, CallState]:
        self._live()
        return await super().begin(keys)

    async def postpone(self, *given: Any) -> None:
        self._live()
        await super().postpone(*given)

    async def bury(self, *given: Any, **more: Any) -> None:
        self._live()
        await super().bury(*given, **more)

    def _live(self) -> None:
        if self._journal.is_dead:
            raise StorageUnavailable("this process is dead")


class Banks:
    """The port to the processor, answered from what is true at the banks."""

    def __init__(self, banks: Mapping[str, Bank]) -> None:
        self._banks = banks

    async def subscription(self, subscription_id: str) -> Any:
        body = self._of(subscription_id).subscription_now(subscription_id)
        return _read("customer.subscription.updated", body)

    async def invoice(self, invoice_id: str) -> Any:
        return _read("invoice.paid", self._of(invoice_id).invoice_now(invoice_id))

    async def dispute(self, dispute_id: str) -> Any:
        return _read("charge.dispute.closed", self._of(dispute_id).dispute_now(dispute_id))

    async def invoice_of_payment(self, payment_intent_id: str) -> str | None:
        return self._of(payment_intent_id).invoice_of(payment_intent_id)

    async def next_price_id(self, _: str) -> str | None:
        return None

    async def undelivered_events(self, *_: object) -> Sequence[str]:
        return ()

    def _of(self, id: str) -> Bank:
        (organization,) = re.findall(r"org_\d+", id)
        return self._banks[organization]


def _read(type_: str, body: dict[str, Any]) -> Any:
    return read(open_envelope(processor.event(type_, body)))


@dataclass
class Process:
    """A process that serves the organizations."""

    runtime: Runtime
    journal: Mortal
    letterbox: Letterbox
    down: asyncio.Event
    task: "asyncio.Task[None]"


async def start(database: Database, name: str, banks: Mapping[str, Bank]) -> Process:
    """Start a process, which takes every slot from whoever had it."""
    journal = Mortal(database)
    letterbox = Letterbox(database, journal)
    runtime = Runtime(
        [OrganizationActor(database)],
        journal,
        letterbox,
        partial(slots.versions, database),
        epochs=await slots.claim(database, name),
        handlers=EventCalls(cast("PaymentProcessor", Banks(banks))).handlers(),
        grace_seconds=0.2,
        poll_seconds=0.01,
        backoff_seconds=(0.0,) * 50,
    )
    up, down = asyncio.Event(), asyncio.Event()

    async def serve() -> None:
        try:
            async with runtime:
                up.set()
                await down.wait()
        finally:
            await journal.close()

    task = asyncio.create_task(serve())
    await up.wait()
    return Process(runtime, journal, letterbox, down, task)


async def end(process: Process) -> None:
    """End a process without letting it finish anything."""
    process.journal.is_dead = True
    process.down.set()
    await process.task


async def deliver(database: Database, process: Process, *, dies: int = 0) -> bool:
    """Let a process take what waits in the outbox; False when it died before its so-manieth commit."""
    if dies:
        process.journal.dies, process.journal.left = BEFORE_THE_COMMIT, dies
    process.letterbox.is_open = True
    with anyio.fail_after(120):
        while not process.journal.is_dead and (
            process.runtime.admin.effects_in_flight or await database.fetch(WAITING)
        ):
            await anyio.sleep(0.001)
    process.letterbox.is_open = False
    process.journal.dies = None
    return not process.journal.is_dead
