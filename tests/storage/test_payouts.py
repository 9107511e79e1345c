"""Payout accounts as rows: what events tell of them, in any order and any number of times."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.payees import account, verified
from tolsey.actors.organization.billing.payment_events.payouts import PayoutFacts
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.money import payment_events, payouts
from tolsey.storage.records.money.payment_event import EventState, PaymentEvent
from tolsey.storage.records.money.payouts import PayoutState

AT = datetime(2026, 7, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
RESTRICTED = verified(can_be_paid_out=False, disabled_reason="rejected.fraud")


@pytest.fixture
async def known(database: Database) -> Database:
    """Ann, who has an account, and Bob, who has none; and the events that came."""
    for name in ("ann", "bob"):
        await database.execute(
            "INSERT INTO users (id, email, password_hash) VALUES ($1, $2, '')",
            *(f"usr_{name}", f"{name}@example.com"),
        )
    await payouts.opened(database, "usr_ann", account(), AT)
    for n in range(4):
        event = PaymentEvent(
            event_id=f"evt_{n}",
            type="account.updated",
            object_id="acct_1",
            account="acct_1",
            api_version=None,
            livemode=False,
            created_at=AT,
            state=EventState.NEW,
            facts="{}",
        )
        await payment_events.take(database, event)
    return database


async def observed(database: Database, event_id: str, said: Any, at: datetime) -> bool:
    async with database.transaction() as tx:
        return await payouts.account_observed(tx, event_id, said, at)


async def state(database: Database) -> PayoutState:
    found = await payouts.find(database, "usr_ann")
    assert found is not None
    return found.state


async def settled(database: Database) -> list[tuple[str, str | None]]:
    rows = await database.fetch("SELECT state, why FROM payment_events ORDER BY event_id")
    return [tuple(row) for row in rows]


async def audited(database: Database) -> list[str]:
    rows = await database.fetch("SELECT event FROM audit_log ORDER BY id")
    return [row["event"] for row in rows]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (account(), PayoutState.ONBOARDING),
        (verified(), PayoutState.VERIFIED),
        (verified(eventually_due=("individual.verification.document",)), PayoutState.VERIFIED),
        (verified(currently_due=("individual.address",)), PayoutState.VERIFIED),
        (verified(past_due=("individual.address",)), PayoutState.RESTRICTED),
        (RESTRICTED, PayoutState.RESTRICTED),
        (verified(can_be_paid_out=False), PayoutState.ONBOARDING),
        (
            verified(
                can_be_paid_out=False,
                disabled_reason="requirements.pending_verification",
                pending_verification=("individual.id_number",),
            ),
            PayoutState.ONBOARDING,
        ),
        (verified(has_submitted_details=False), PayoutState.ONBOARDING),
    ],
)
async def test_an_account_is_as_far_as_the_processor_says(
    known: Database, said: Any, expected: PayoutState
) -> None:
    assert await observed(known, "evt_0", said, AT)
    assert await state(known) is expected
    assert (await settled(known))[0] == ("applied", None)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
async def test_the_newest_event_stands_in_whatever_order_they_come(
    known: Database, order: tuple[int, ...]
) -> None:
    said = (account(), verified(), RESTRICTED)
    for n in order:
        assert await observed(known, f"evt_{n}", said[n], AT + n * SECOND)
    assert await state(known) is PayoutState.RESTRICTED
    assert {one for one, _ in (await settled(known))[:3]} <= {"applied", "ignored"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_of_two_events_of_one_second_the_one_that_verifies_nothing_stands(
    known: Database, order: tuple[int, int]
) -> None:
    said = (verified(), RESTRICTED)
    for n in order:
        await observed(known, f"evt_{n}", said[n], AT)
    assert await state(known) is PayoutState.RESTRICTED


async def test_an_event_is_applied_once_however_many_processes_try(known: Database) -> None:
    tries = [observed(known, "evt_0", verified(), AT) for _ in range(5)]
    assert sorted(await asyncio.gather(*tries)) == [False] * 4 + [True]
    assert not await observed(known, "evt_0", RESTRICTED, AT + SECOND)
    assert await state(known) is PayoutState.VERIFIED
    assert await audited(known) == ["payout_account.opened", "payout_account.verified"]


async def test_an_event_that_cannot_be_applied_stays_to_be_applied(known: Database) -> None:
    with pytest.raises(StorageError):
        await observed(known, "evt_0", verified(currently_due=(1,)), AT)
    assert await state(known) is PayoutState.ONBOARDING
    assert (await settled(known))[0] == ("new", None)


async def test_an_account_that_is_nobodys_is_not_made_by_an_event(known: Database) -> None:
    said = verified("acct_other", user_id="usr_bob")
    assert await observed(known, "evt_0", said, AT)
    assert await payouts.find(known, "usr_bob") is None
    assert (await settled(known))[0] == ("ignored", "unknown_account")


async def test_an_event_never_gives_an_account_to_another_person(known: Database) -> None:
    await observed(known, "evt_0", verified(user_id="usr_bob"), AT)
    assert await payouts.find(known, "usr_bob") is None
    assert await state(known) is PayoutState.VERIFIED


async def test_what_the_processor_answers_does_not_make_newer_events_old(known: Database) -> None:
    assert await payouts.refreshed(known, verified()) is not None
    assert await state(known) is PayoutState.VERIFIED
    assert await observed(known, "evt_0", RESTRICTED, AT - SECOND)
    assert await state(known) is PayoutState.RESTRICTED
    assert await payouts.refreshed(known, verified("acct_other")) is None


async def test_a_person_has_one_account_and_an_account_one_person(known: Database) -> None:
    again = await payouts.opened(known, "usr_ann", account("acct_2"), AT)
    assert again.account_id == "acct_1"
    with pytest.raises(LookupError):
        await payouts.opened(known, "usr_bob", account("acct_1"), AT)
    assert await payouts.find(known, "usr_bob") is None


@pytest.mark.parametrize("account_id", ["acct_1", "acct_unknown", None])
async def test_a_payout_that_came_back_is_kept_once(
    known: Database, account_id: str | None
) -> None:
    failed = PayoutFacts(
        payout_id="po_1",
        account_id=account_id,
        withdrawal_id=None,
        currency="usd",
        amount_cents=1_500,
        status="failed",
        failure_code="account_closed",
        failure_message="The bank account has been closed.",
    )
    async with known.transaction() as tx:
        news = [
            await payouts.payout_failed(tx, event_id, failed, AT)
            for event_id in ("evt_0", "evt_0", "evt_1")  # again, then by a second event
        ]
    assert news == [True, False, False]
    rows = await known.fetch("SELECT account_id, amount_cents, failure_code FROM payout_failures")
    assert [tuple(row) for row in rows] == [(account_id, 1_500, "account_closed")]
    assert (await audited(known)).count("payout") == 1
    assert (await settled(known))[:2] == [("applied", None)] * 2
    shown = await payouts.failures(known, "acct_1")
    assert [one.payout_id for one in shown] == (["po_1"] if account_id == "acct_1" else [])


@pytest.mark.parametrize(
    ("role", "said", "may"),
    [
        ("owner", verified(), True),
        ("admin", verified(), True),
        ("member", verified(), False),
        ("owner", RESTRICTED, False),
    ],
)
async def test_an_organization_may_sell_when_who_runs_it_can_be_paid(
    known: Database, role: str, said: Any, may: bool
) -> None:
    for id in ("org_1", "org_2"):
        await known.execute("INSERT INTO organizations (id, name) VALUES ($1, 'o')", id)
    await known.execute(
        "INSERT INTO members (organization_id, user_id, role) VALUES ('org_1', 'usr_ann', $1)",
        role,
    )
    assert not await payouts.may_sell(known, "org_1")
    await observed(known, "evt_0", said, AT)
    assert await payouts.may_sell(known, "org_1") is may
    assert not await payouts.may_sell(known, "org_2")
