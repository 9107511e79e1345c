"""Bonuses, contracts and workflows under the real runtime, on a real database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.actors.organization.books import AT, DOLLAR, days
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.agreements.messages import ContractTerms, SetContract
from tolsey.actors.organization.ledger.messages import GrantDailyBonus, ReadCredits, SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.workflows.messages import (
    ClaimWorkflow,
    ReleaseWorkflow,
    WorkflowsRunning,
)
from tolsey.actors.refusals import PaymentRequired
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox

ORG = organization("org_1")
LEASE = AT + timedelta(minutes=15)


@pytest.fixture
async def pro(database: Database) -> Database:
    await database.execute(
        "INSERT INTO organizations (id, name, plan) VALUES ('org_1', 'Corner', 'pro')"
    )
    return database


@asynccontextmanager
async def process(database: Database, name: str) -> AsyncIterator[Runtime]:
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


def claim(number: int) -> ClaimWorkflow:
    return ClaimWorkflow(workflow_id=f"wf_{number}", kind="launch", at=AT, lease_until=LEASE)


async def test_many_that_start_at_once_never_run_more_than_the_plan_lets(pro: Database) -> None:
    async def start(running: Runtime, number: int) -> bool:
        try:
            await running.ask(ORG, claim(number))
        except PaymentRequired:
            return False
        return True

    async with process(pro, "one") as running:
        started = await asyncio.gather(*(start(running, number) for number in range(30)))
    assert sum(started) == 5
    async with process(pro, "another") as running:
        assert await start(running, 99) is False
        assert await running.ask(ORG, ReleaseWorkflow("wf_0", AT)) is True
        assert await running.ask(ORG, claim(99)) == WorkflowsRunning(5, 5)


async def test_a_place_that_is_given_up_and_taken_within_one_commit_is_taken(
    pro: Database,
) -> None:
    async with process(pro, "one") as running:
        await running.ask(ORG, claim(1))
        await asyncio.gather(
            running.ask(ORG, ReleaseWorkflow("wf_1", AT)),
            running.ask(ORG, claim(2)),
            running.ask(ORG, claim(1)),
        )
    rows = await pro.fetch("SELECT id FROM workflow_claims WHERE ended_at IS NULL ORDER BY id")
    assert [row["id"] for row in rows] == ["wf_1", "wf_2"]


async def test_spenders_and_the_job_at_once_bring_one_bonus(pro: Database) -> None:
    cost = DOLLAR // 20
    async with process(pro, "one") as running:
        spends = (
            running.ask(ORG, SpendCredits(key=f"s:{n}", amount=cost, reason="chat", at=AT))
            for n in range(20)
        )
        job = running.ask(ORG, GrantDailyBonus(AT.date(), AT))
        await asyncio.gather(*spends, job)
        assert (await running.ask(ORG, ReadCredits(AT))).standing.balance == 0
    async with process(pro, "another") as running:
        assert await running.ask(ORG, GrantDailyBonus(AT.date(), AT)) is False
        assert await running.ask(ORG, GrantDailyBonus(AT.date() + days(1), AT + days(1))) is True
    rows = await pro.fetch("SELECT amount FROM daily_bonuses")
    assert [row["amount"] for row in rows] == [DOLLAR, DOLLAR]


async def test_a_contract_is_read_back(pro: Database) -> None:
    await pro.execute("UPDATE organizations SET plan = 'free'")
    terms = ContractTerms(7, 300 * DOLLAR, 2 * DOLLAR)
    agreed = SetContract(terms=terms, reason="signed", user_id="usr_1", at=AT)
    async with process(pro, "one") as running:
        view = await running.ask(ORG, agreed)
    async with process(pro, "another") as running:
        assert await running.ask(ORG, agreed) == view
        assert await running.ask(ORG, claim(1)) == WorkflowsRunning(1, None)
        await running.ask(ORG, SpendCredits(key="s", amount=302 * DOLLAR, reason="chat", at=AT))
        ended = await running.ask(
            ORG, SetContract(terms=None, reason="left", user_id="usr_1", at=AT)
        )
        assert (ended.plan, ended.terms) == ("free", None)
    rows = await pro.fetch("SELECT plan, stores_contracted FROM organizations")
    assert [tuple(row) for row in rows] == [("free", None)]


async def test_claims_that_ended_long_ago_are_swept_and_those_that_run_stay(pro: Database) -> None:
    now = datetime.now(UTC)
    async with process(pro, "one") as running:
        old = now - timedelta(days=8)
        await running.ask(
            ORG,
            ClaimWorkflow(
                workflow_id="old", kind="launch", at=old, lease_until=old + timedelta(minutes=5)
            ),
        )
        await running.ask(
            ORG,
            ClaimWorkflow(
                workflow_id="new", kind="launch", at=now, lease_until=now + timedelta(minutes=5)
            ),
        )
        assert await retention.sweep(pro, retention.SWEPT["workflowClaims"], 100) == 1
        assert await running.ask(ORG, ReleaseWorkflow("new", now)) is True
