"""The payment processor's events as rows."""

import asyncio
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.actors.organization import processor
from tests.actors.organization.processor import event
from tests.http.webhooks.payments.sender import inbox
from tests.seeds import seeds
from tests.waiting_events import waiting_events
from tolsey.actors.organization.billing.payment_events.catalogue import keep, read
from tolsey.actors.organization.billing.payment_events.envelopes import open_envelope
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention
from tolsey.storage.money import payment_events
from tolsey.storage.money.payment_events import Taken
from tolsey.storage.records.money.payment_event import EventState, PaymentEvent

AT = datetime(2026, 7, 1, tzinfo=UTC)
FACTS = keep(read(open_envelope(event("invoice.paid", processor.invoice()))))


def row(event_id: str = "evt_1", **fields: Any) -> PaymentEvent:
    given = {"state": EventState.NEW, "facts": FACTS, "needs_organization": True, **fields}
    return PaymentEvent(
        event_id=event_id,
        type="invoice.paid",
        object_id="in_1",
        account=None,
        api_version=None,
        livemode=False,
        created_at=AT,
        **given,
    )


@pytest.fixture
async def known(database: Database) -> Database:
    await database.execute("INSERT INTO organizations (id, name) VALUES ('org_1', 'o')")
    return database


async def test_an_event_is_kept_once(known: Database) -> None:
    answered = row(claimed_by="org_1", links=("cus_1", "in_1"))

    assert await payment_events.take(known, answered) == Taken(EventState.NEW, "org_1", 0)
    assert await payment_events.take(known, answered) is None


async def test_a_link_finds_the_organization_of_the_next_event(known: Database) -> None:
    await payment_events.take(known, row(claimed_by="org_1", links=("cus_1",)))
    taken = await payment_events.take(known, row("evt_2", links=("cus_1", "in_2")))

    assert taken == Taken(EventState.NEW, "org_1", 0)


async def test_a_long_chain_of_parked_events_is_found_from_its_end(known: Database) -> None:
    for n in range(30):
        parked = await payment_events.take(known, row(f"evt_{n}", links=(f"r{n}", f"r{n + 1}")))
        assert parked == Taken(EventState.PARKED, None, 0)
    await payment_events.take(known, row("evt_last", claimed_by="org_1", links=("r30",)))

    assert await inbox(known).adopt(["r30"]) == 30
    assert len(await waiting_events(known)) == 31
    assert await inbox(known).adopt() == 0


@pytest.mark.parametrize("seed", seeds(8))
async def test_events_that_arrive_at_once_in_any_order_find_each_other(
    known: Database, seed: int
) -> None:
    """A chain of ten, of which any one may be the one that says whose they are."""
    chance = random.Random(seed)  # noqa: S311 - a shuffle
    speaker = chance.randrange(10)
    rows = [
        row(f"evt_{n}", links=(f"r{n}", f"r{n + 1}"), claimed_by="org_1" if n == speaker else None)
        for n in range(10)
    ]
    chance.shuffle(rows)

    async def arrive(answered: PaymentEvent) -> None:
        await inbox(known).take(answered)
        await inbox(known).adopt(answered.links)

    await asyncio.gather(*map(arrive, rows))

    found = await waiting_events(known)
    assert {one.event_id for one in found} == {one.event_id for one in rows}
    assert {one.organization_id for one in found} == {"org_1"}


async def test_what_became_of_an_event_is_said_once(known: Database) -> None:
    await payment_events.take(known, row(claimed_by="org_1"))

    async with known.transaction() as tx:
        assert await payment_events.settle(tx, "evt_1", EventState.APPLIED)
        assert not await payment_events.settle(tx, "evt_1", EventState.FAILED, "late")
    assert await waiting_events(known) == []
    assert await payment_events.take(known, row(claimed_by="org_1")) is None


async def test_an_event_that_could_not_be_applied_may_be_sent_again(known: Database) -> None:
    await payment_events.take(known, row(claimed_by="org_1"))
    async with known.transaction() as tx:
        await payment_events.settle(tx, "evt_1", EventState.FAILED, "no such plan")
    taken = await payment_events.take(known, row(claimed_by="org_1"))

    assert taken is not None
    assert taken.state == EventState.NEW
    assert [one.event_id for one in await waiting_events(known)] == ["evt_1"]


async def test_only_settled_events_are_let_go_and_after_400_days(known: Database) -> None:
    for state in ("new", "applied", "ignored", "parked", "failed"):
        for days in (399, 401):
            await known.execute(
                "INSERT INTO payment_events (event_id, type, livemode, created_at, state,"
                " received_at) VALUES ($1, 't', true, $2, $3, now() - make_interval(days => $4))",
                f"{state} {days}",
                AT,
                state,
                days,
            )
    deleted = await retention.sweep(known, retention.SWEPT["paymentEvents"], 100)

    assert deleted == 2
    left = {one["event_id"] for one in await known.fetch("SELECT event_id FROM payment_events")}
    assert {"applied 401", "ignored 401"} & left == set()
    assert {"new 401", "parked 401", "failed 401", "applied 399", "ignored 399"} <= left
