"""A service with listings and their deals."""

from collections.abc import AsyncIterator
from functools import partial

import pytest

from tests.http.people import Clock
from tolsey.actors.listing.actor import ListingActor
from tolsey.actors.mail import TellPeople
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox


@pytest.fixture
def told() -> list[TellPeople]:
    """What people are written about."""
    return []


@pytest.fixture
async def runtime(
    database: Database, clock: Clock, told: list[TellPeople]
) -> AsyncIterator[Runtime]:
    async def tell_people(call: TellPeople) -> None:
        told.append(call)

    journal = Journal(database)
    async with Runtime(
        [OrganizationActor(database), ListingActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, "test"),
        handlers={TellPeople: tell_people},
        clock=clock,
        poll_seconds=0.05,
    ) as running:
        yield running
    await journal.close()
