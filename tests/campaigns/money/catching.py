"""What a planted bug is, and how it is listed with the test that catches it."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    contextmanager,
)
from dataclasses import dataclass
from inspect import getmodule, isawaitable
from typing import Any
from unittest.mock import patch

from tests.actors.organization import processor
from tests.actors.organization.books import Ledger
from tests.actors.organization.processor import event
from tests.actors.organization.test_plan_calls import Subscriber, subscribed
from tests.campaigns.money.disk import SLOTS_TAKEN, Disk
from tests.campaigns.money.histories import live
from tests.campaigns.money.process import deliver, end, start
from tests.http.webhooks.payments.sender import NOW, Processor, receiver
from tolsey.actors.organization.ledger.messages import ReadCredits
from tolsey.actors.organization.messages import organization
from tolsey.storage.database import Database

Plant = Callable[[], Iterator[None]]
Catch = Callable[[Database | None], Awaitable[None] | None]
SEEDS = 60


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted bug: what is wrong, and the test that catches it."""

    number: int
    plant: Plant
    test: str
    catch: Catch
    needs_database: bool
    on_paper: bool
    """Whether the campaign finds it without a database too."""

    @property
    def name(self) -> str:
        return self.plant.__name__

    @property
    def wrong(self) -> str:
        return (self.plant.__doc__ or "").strip()

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Have the bug."""
        with contextmanager(self.plant)():
            yield

    async def run(self, database: Database) -> None:
        """Run what catches it."""
        found = self.catch(database)
        if isawaitable(found):
            await found


BUGS: list[Planted] = []


def caught_by(
    test: Callable[..., Any],
    fixture: Callable[..., Any] | None = None,
    *given: Any,
    disk: bool = False,
    on_paper: bool = True,
) -> Callable[[Plant], Plant]:
    """List a bug with the test that catches it, and how the test's fixture is made."""

    def catch(database: Database | None) -> Awaitable[None] | None:
        if disk:
            assert database is not None
            return _on_disk(test, fixture, database)
        made: Awaitable[None] | None = test(*((fixture(),) if fixture else ()), *given)
        return made

    def add(plant: Plant) -> Plant:
        module = getmodule(test)
        assert module is not None
        path = module.__name__.replace(".", "/") + ".py"
        case = f"[{given[0]}]" if given else ""
        name = f"{path}::{test.__name__}{case}"
        BUGS.append(Planted(len(BUGS) + 1, plant, name, catch, disk, on_paper))
        return plant

    return add


async def _on_disk(test: Any, fixture: Any, database: Database) -> None:
    for id in ("org_1", "org_2", "org_3"):
        await database.execute("INSERT INTO organizations (id, name) VALUES ($1, 'o')", id)
    async with AsyncExitStack() as stack:
        given = fixture(database)
        if isinstance(given, AbstractAsyncContextManager):
            given = await stack.enter_async_context(given)
        await test(given)


def same(database: Database) -> Database:
    return database


def sender(database: Database) -> Processor:
    return Processor(receiver(database), database)


def a_subscriber(_: Database) -> AbstractAsyncContextManager[Subscriber]:
    return subscribed()


def of_pro() -> Ledger:
    return Ledger("pro")


def histories_on_paper() -> None:
    """Live histories until one is not right."""
    for seed in range(1, SEEDS + 1):
        assert not live(seed).found


async def lives_whose_process_loses_its_slots(database: Database) -> None:
    """Live some lives on the real service, whose processes are replaced while they think they own."""
    disk = Disk(7, database, lives=8, steps=8, crashes=0.8, fates=(SLOTS_TAKEN,))
    report = await disk.live()
    assert report.seen["fenced"]
    assert not report.found, report.found


async def a_process_that_dies_before_its_turn(sender: Processor) -> None:
    """Let a process die when it has taken an event: the next one applies it."""
    await sender.send(event("payment_intent.succeeded", processor.payment()))
    for name, dies in (("one", 1), ("two", 0)):
        running = await start(sender.database, name, {})
        try:
            await deliver(sender.database, running, dies=dies)
            if not dies:
                credits = await running.runtime.ask(organization("org_1"), ReadCredits(NOW))
        finally:
            await end(running)
    assert credits.standing.available == 50_000_000


def swapped(owner: Any, name: str, new: Any) -> AbstractContextManager[Any]:
    return patch.object(owner, name, new)
