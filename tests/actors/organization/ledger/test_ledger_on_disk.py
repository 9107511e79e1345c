"""The ledger under the real runtime, on a real database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.actors.organization.books import AT, DOLLAR, days, purchase, seen
from tolsey.actors import chain
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.ledger.messages import (
    Dispute,
    ExtendHold,
    GrantCredits,
    HoldCredits,
    ReadCredits,
    ResetAllowance,
    SettleHold,
    SpendCredits,
    Standing,
)
from tolsey.actors.organization.messages import organization
from tolsey.actors.refusals import PaymentRequired
from tolsey.runtime.errors import Duplicate, NotOwner
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.money import credits
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox

ORG = organization("org_1")


@pytest.fixture
async def books(database: Database) -> Database:
    for number in (1, 2, 3):
        await database.execute(
            "INSERT INTO organizations (id, name) VALUES ($1, 'Corner')", f"org_{number}"
        )
    return database


@asynccontextmanager
async def process(database: Database, name: str = "one") -> AsyncIterator[Runtime]:
    journal = Journal(database)
    async with Runtime(
        [OrganizationActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, name),
    ) as running:
        yield running
    await journal.close()


async def replay(database: Database, organization_id: str = "org_1") -> dict[str, int]:
    """Check the chain of a ledger, and what it comes to against what stands beside it."""
    pairs = await credits.history(database, organization_id)
    found = (await credits.load(database, [organization_id]))[organization_id]
    assert found.account is not None
    assert chain.broken_at(pairs, found.account.hash) is None
    assert [entry.seq for entry, _ in pairs] == list(range(1, found.account.seq + 1))
    accounts = chain.replayed(one for _, postings in pairs for one in postings)
    lots = {f"lot:{lot.id}": lot.free for lot in found.lots if lot.free}
    held = {f"held:{hold.id}": hold.amount for hold in found.holds}
    own = {name: n for name, n in accounts.items() if name.startswith(("lot:", "held:"))}
    assert own == lots | held
    assert -accounts.get("debt", 0) == found.account.debt
    return accounts


async def test_replaying_the_ledger_comes_to_what_is_stored(books: Database) -> None:
    async with process(books) as running:
        ask = partial(running.ask, ORG)
        await ask(purchase("pi_1", 50))
        await ask(
            ResetAllowance(
                key="a",
                plan="pro",
                period_start=AT,
                period_end=AT + days(31),
                allowance=49 * DOLLAR,
                at=AT,
                reference="pi_sub",
            )
        )
        await ask(HoldCredits(hold_id="h1", amount=5 * DOLLAR, at=AT, lease_until=AT + days(1)))
        await ask(
            ExtendHold(hold_id="h1", amount=50 * DOLLAR, at=AT, lease_until=AT + days(2), used=3)
        )
        await ask(HoldCredits(hold_id="h2", amount=5 * DOLLAR, at=AT, lease_until=AT + days(1)))
        settled = await ask(SettleHold("h1", 60 * DOLLAR, AT))
        assert (settled.charged, settled.written_off) == (55 * DOLLAR, 5 * DOLLAR)
        await ask(seen("pi_1", 5_000, 0, Dispute("dp_1", 5_000, "open")))
        with pytest.raises(PaymentRequired):
            await ask(SpendCredits(key="s", amount=100 * DOLLAR, reason="chat", at=AT))
        with pytest.raises(Duplicate):
            await ask(purchase("pi_1", 50))
        before = await ask(ReadCredits(AT))
    await replay(books)
    async with process(books, "another") as running:
        assert await running.ask(ORG, ReadCredits(AT)) == before
        won = await running.ask(ORG, seen("pi_1", 5_000, 0, Dispute("dp_1", 5_000, "won")))
        assert won.balance == (50 + 49 - 55) * DOLLAR
    accounts = await replay(books)
    assert accounts["usage"] == 60 * DOLLAR
    events = [row["event"] for row in await books.fetch("SELECT event FROM audit_log ORDER BY id")]
    assert sorted(events) == [
        "chargeback.received",
        "clawback.applied",
        "clawback.restored",
        "monthly.reset",
        "purchase.completed",
    ]


async def test_many_callers_of_many_organizations_never_spend_a_dollar_twice(
    books: Database,
) -> None:
    async with process(books) as running:
        for number in (1, 2, 3):
            await running.ask(organization(f"org_{number}"), purchase(f"pi_{number}", 20))

        async def spend(number: int, n: int) -> bool:
            to = organization(f"org_{number}")
            try:
                await running.ask(
                    to, SpendCredits(key=f"s:{n}", amount=DOLLAR, reason="chat", at=AT)
                )
            except PaymentRequired:
                return False
            return True

        spent = await asyncio.gather(*(spend(number, n) for n in range(40) for number in (1, 2, 3)))
        assert sum(spent) == 60
    for number in (1, 2, 3):
        assert (await replay(books, f"org_{number}")) == {
            "cash": -20 * DOLLAR,
            "usage": 20 * DOLLAR,
        }


async def test_a_second_writer_fences_the_first_and_nothing_is_half_there(books: Database) -> None:
    async with process(books) as old:
        await old.ask(ORG, purchase("pi_1", 20))
        async with process(books, "new") as new:
            with pytest.raises(NotOwner):
                await old.ask(ORG, SpendCredits(key="s1", amount=DOLLAR, reason="chat", at=AT))
            left = await new.ask(ORG, SpendCredits(key="s2", amount=DOLLAR, reason="chat", at=AT))
            assert left == Standing(seq=2, balance=19 * DOLLAR, available=19 * DOLLAR, held=0)
    assert (await replay(books))["usage"] == DOLLAR


async def test_a_row_changed_by_hand_breaks_the_chain(books: Database) -> None:
    async with process(books) as running:
        await running.ask(ORG, purchase("pi_1", 20))
        for n in range(3):
            await running.ask(ORG, SpendCredits(key=f"s:{n}", amount=DOLLAR, reason="chat", at=AT))
    assert chain.broken_at(await credits.history(books, "org_1")) is None
    await books.execute("UPDATE credit_postings SET amount = 1 WHERE seq = 3")
    assert chain.broken_at(await credits.history(books, "org_1")) == 3


async def test_what_begins_and_ends_within_one_commit_is_all_written(books: Database) -> None:
    """Turns that are asked at once go to disk together: only the last state of each row counts."""
    bonus = GrantCredits(key="b", kind="bonus", amount=2 * DOLLAR, at=AT, expires_at=AT + days(9))
    async with process(books) as running:
        await running.ask(ORG, ReadCredits(AT))
        ask = partial(running.ask, ORG)
        await asyncio.gather(
            ask(bonus),
            ask(HoldCredits(hold_id="h", amount=DOLLAR, at=AT, lease_until=AT + days(1))),
            ask(SettleHold("h", DOLLAR, AT)),
            ask(SpendCredits(key="s", amount=DOLLAR, reason="chat", at=AT)),
        )
    assert await replay(books) == {"promo": -2 * DOLLAR, "usage": 2 * DOLLAR}
    (lot,) = await books.fetch("SELECT remaining, spent FROM credit_lots")
    assert tuple(lot) == (0, True)
    (hold,) = await books.fetch("SELECT used, closed_at FROM credit_holds")
    assert tuple(hold) == (DOLLAR, AT)


async def test_the_hash_survives_the_way_through_the_database(books: Database) -> None:
    odd = datetime(2026, 7, 1, 12, 0, 0, 123456, tzinfo=UTC) + timedelta(microseconds=1)
    async with process(books) as running:
        await running.ask(ORG, purchase('pi_"é\u2028', 20, odd))
        await running.ask(
            ORG, SpendCredits(key="s", amount=DOLLAR, reason="naïve \\ chat\n", at=odd)
        )
    assert chain.broken_at(await credits.history(books, "org_1")) is None
