"""The jobs that look after credits, on a real database under the real runtime."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
import structlog

from tests.timing import RestingTime
from tolsey.actors.job.effects import ASKED_AT_ONCE, WHOLE_EVERY, CreditKeeping
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.agreements.messages import ContractTerms, SetContract
from tolsey.actors.organization.ledger.messages import (
    GrantCredits,
    HoldCredits,
    ReadCredits,
    ResetAllowance,
    SpendCredits,
)
from tolsey.actors.organization.messages import organization
from tolsey.runtime.errors import ShardUnavailable
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.runtime.throttle import FIRST, SMALLEST, Throttle
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox

AT = datetime(2026, 7, 1, 0, 5, tzinfo=UTC)
DAY = timedelta(days=1)
DOLLAR = 1_000_000


class Night:
    """Organizations, the jobs of their nights, and the clock."""

    def __init__(self, database: Database, runtime: Runtime) -> None:
        self.database = database
        self.runtime = runtime
        self.now = AT
        self.silent: set[str] = set()
        self.asked = self.most_asked = 0
        self.time = RestingTime()
        self.keeping = CreditKeeping(
            database,
            self.reach,
            clock=lambda: self.now,
            throttle=Throttle(partial(retention.commit, database), self.time),
        )

    async def reach(self, to: ActorId, message: Message[Any]) -> Any:
        if to.key in self.silent:
            raise ShardUnavailable("the process is stopping")
        self.asked += 1
        self.most_asked = max(self.most_asked, self.asked)
        try:
            return await self.runtime.ask(to, message)
        finally:
            self.asked -= 1

    async def open(self, name: str, plan: str = "free") -> None:
        await self.database.execute(
            "INSERT INTO organizations (id, name, plan) VALUES ($1, $1, $2)", name, plan
        )

    async def ask(self, name: str, message: Message[Any]) -> Any:
        return await self.runtime.ask(organization(name), message)

    async def run(self, job: str) -> Mapping[str, Any]:
        return await self.keeping.work()[job](self.now, lambda _: None)

    async def available(self, name: str) -> int:
        view = await self.ask(name, ReadCredits(self.now))
        return int(view.standing.available)


@pytest.fixture
async def night(database: Database) -> AsyncIterator[Night]:
    journal = Journal(database)
    async with Runtime(
        [OrganizationActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, "test"),
    ) as running:
        yield Night(database, running)
    await journal.close()


def bonus(key: str, dollars: int, life: timedelta) -> GrantCredits:
    return GrantCredits(key=key, kind="bonus", amount=dollars * DOLLAR, at=AT, expires_at=AT + life)


async def test_everyone_who_pays_is_given_the_days_bonus_once(night: Night) -> None:
    plans = ("free", "pro", "max_5x", "max_20x", "pro")
    for n, plan in enumerate(plans):
        await night.open(f"org_{n}", plan)
    await night.ask(
        "org_4", SpendCredits(key="s", amount=DOLLAR, reason="chat", at=AT)
    )  # brought it already
    outcome = await night.run("daily-bonus")
    assert outcome == {"organizations": 3, "granted": 3, "failed": 0}
    again = await night.run("daily-bonus")
    assert again == {"organizations": 0, "granted": 0, "failed": 0}
    given = [await night.available(f"org_{n}") // DOLLAR for n in range(5)]
    assert given == [0, 1, 3, 5, 0]
    rows = await night.database.fetch("SELECT plan, amount FROM daily_bonuses ORDER BY amount")
    assert len(rows) == 4
    night.now += DAY
    assert (await night.run("daily-bonus"))["granted"] == 4


async def test_two_runs_at_once_give_one_bonus(night: Night) -> None:
    for n in range(9):
        await night.open(f"org_{n}", "pro")
    outcomes = await asyncio.gather(*(night.run("daily-bonus") for _ in range(3)))
    assert sum(outcome["granted"] for outcome in outcomes) == 9
    assert [await night.available(f"org_{n}") for n in range(9)] == [DOLLAR] * 9


async def test_one_that_cannot_answer_does_not_stop_the_others(night: Night) -> None:
    for n in range(3):
        await night.open(f"org_{n}", "pro")
    night.silent = {"org_1"}
    outcome = await night.run("daily-bonus")
    assert outcome == {"organizations": 3, "granted": 2, "failed": 1}
    night.silent = set()
    assert await night.run("daily-bonus") == {"organizations": 1, "granted": 1, "failed": 0}


async def test_a_year_that_is_paid_is_granted_month_by_month(night: Night) -> None:
    for name in ("org_year", "org_month", "org_late"):
        await night.open(name, "pro")
        await night.database.execute(
            """
            INSERT INTO subscriptions (organization_id, subscription_id, status, plan, cadence,
                paid_plan, paid_cadence, paid_from, paid_until, paid_invoice_id)
            VALUES ($1, 'sub_' || $1, 'active', 'pro', $2, 'pro', $2, $3, $4, 'in_' || $1)
            """,
            name,
            "monthly" if name == "org_month" else "yearly",
            AT,
            AT + (31 * DAY if name == "org_late" else 365 * DAY),
        )
        ends = datetime(2026, 8, 1, 0, 5, tzinfo=UTC)
        first = ResetAllowance(
            key="first",
            plan="pro",
            period_start=AT,
            period_end=ends,
            allowance=49 * DOLLAR,
            at=AT,
            reference=f"in_{name}",
        )
        await night.ask(name, first)
    assert (await night.run("monthly-credits-reset"))["organizations"] == 0
    await night.ask("org_year", SpendCredits(key="s", amount=30 * DOLLAR, reason="chat", at=AT))
    night.now = datetime(2026, 8, 1, 0, 10, tzinfo=UTC)
    outcome = await night.run("monthly-credits-reset")
    assert outcome == {"organizations": 1, "granted": 1, "failed": 0}
    assert await night.run("monthly-credits-reset") == dict.fromkeys(outcome, 0)
    view = await night.ask("org_year", ReadCredits(night.now))
    (grant,) = [one for one in view.grants if one.kind == "allowance"]
    assert (grant.remaining, grant.reference) == (49 * DOLLAR, "in_org_year")
    rows = await night.database.fetch(
        "SELECT period_end FROM monthly_resets WHERE organization_id = 'org_year' ORDER BY 1"
    )
    assert [row["period_end"].month for row in rows] == [8, 9]


async def test_a_contract_is_granted_month_by_month(night: Night) -> None:
    await night.open("org_1")
    terms = ContractTerms(None, 500 * DOLLAR, 0)
    await night.ask("org_1", SetContract(terms=terms, reason="signed", user_id="usr_1", at=AT))
    assert (await night.run("monthly-credits-reset"))["organizations"] == 0
    night.now = datetime(2026, 8, 1, 0, 10, tzinfo=UTC)
    outcome = await night.run("monthly-credits-reset")
    assert outcome == {"organizations": 1, "granted": 1, "failed": 0}
    assert await night.available("org_1") == 500 * DOLLAR


async def test_what_is_due_expires_and_what_is_pinned_waits(night: Night) -> None:
    for n in range(3):
        await night.open(f"org_{n}")
    await night.ask("org_0", bonus("b", 3, DAY))
    await night.ask("org_1", bonus("b", 3, DAY))
    await night.ask(
        "org_1", HoldCredits(hold_id="h", amount=3 * DOLLAR, at=AT, lease_until=AT + 3 * DAY)
    )
    await night.ask("org_2", bonus("b", 3, 9 * DAY))
    await night.ask("org_2", HoldCredits(hold_id="h", amount=DOLLAR, at=AT, lease_until=AT + DAY))
    night.now += 2 * DAY
    outcome = await night.run("expire-credits")
    assert outcome == {
        "organizations": 2,
        "expired": 2,
        "failed": 0,
        "ledgersChecked": 3,
        "entriesReplayed": 7,
        "ledgersBroken": 0,
    }
    again = await night.run("expire-credits")
    assert again == dict.fromkeys(outcome, 0)
    rows = await night.database.fetch(
        "SELECT organization_id, sum(amount) AS amount FROM credit_postings"
        " WHERE debit = 'expired' GROUP BY 1"
    )
    assert {row["organization_id"]: row["amount"] for row in rows} == {"org_0": 3 * DOLLAR}
    assert await night.available("org_2") == 3 * DOLLAR


@pytest.mark.parametrize(
    ("meddled", "found"),
    [
        ("UPDATE credit_postings SET amount = 1 WHERE seq = 2", ("chain", 2)),
        ("UPDATE credit_entries SET at = at + interval '1 second' WHERE seq = 2", ("chain", 2)),
        ("DELETE FROM credit_entries WHERE seq = 3", ("chain", 3)),
        ("UPDATE credit_accounts SET hash = repeat('1', 64)", ("chain", 4)),
        ("UPDATE credit_lots SET remaining = remaining + 1", ("accounts", 4)),
        ("UPDATE credit_holds SET amount = amount + 1", ("accounts", 4)),
        ("UPDATE credit_accounts SET debt = 7", ("accounts", 4)),
    ],
)
async def test_a_ledger_that_was_meddled_with_is_counted_and_named_every_night(
    night: Night, meddled: str, found: tuple[str, int]
) -> None:
    for name in ("org_1", "org_2"):
        await night.open(name)
        await night.ask(name, bonus("b", 9, 9 * DAY))
        await night.ask(name, SpendCredits(key="s:1", amount=DOLLAR, reason="chat", at=AT))
        await night.ask(name, SpendCredits(key="s:2", amount=DOLLAR, reason="chat", at=AT))
        await night.ask(
            name, HoldCredits(hold_id="h", amount=DOLLAR, at=AT, lease_until=AT + 9 * DAY)
        )
    where = "AND" if "WHERE" in meddled else "WHERE"
    await night.database.execute(f"{meddled} {where} organization_id = 'org_1'")
    for checked in (2, 1):  # the right one is not looked at again until it changes
        with structlog.testing.capture_logs() as written:
            outcome = await night.run("expire-credits")
        assert (outcome["ledgersChecked"], outcome["ledgersBroken"]) == (checked, 1)
        (answered,) = [one for one in written if one["event"] == "ledger.broken"]
        assert (answered["log_level"], answered["organization_id"]) == ("error", "org_1")
        assert (answered["why"], answered["seq"]) == found


async def test_an_account_that_is_gone_is_missed(night: Night) -> None:
    await night.open("org_1")
    await night.ask("org_1", bonus("b", 9, 9 * DAY))
    await night.run("expire-credits")
    await night.database.execute("DELETE FROM credit_accounts")
    assert (await night.run("expire-credits"))["ledgersBroken"] == 1


async def test_few_organizations_are_woken_at_once_and_all_are_asked(night: Night) -> None:
    for number in range(18):
        await night.open(f"org_{number:02}", "pro")
    outcome = await night.run("daily-bonus")
    assert (outcome["organizations"], outcome["granted"]) == (18, 18)
    assert night.most_asked == ASKED_AT_ONCE <= 4


async def test_a_long_ledger_is_replayed_with_rests_between_its_pages(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.actors.job.effects.LEDGER_PAGE", 1)
    await night.open("org_1")
    await night.ask("org_1", bonus("b", 9, 300 * DAY))
    for number in range(3 * FIRST // SMALLEST):
        await night.ask(
            "org_1", SpendCredits(key=f"s:{number}", amount=1, reason="chat", at=night.now)
        )
    night.time.rests.clear()
    outcome = await night.run("expire-credits")
    assert (outcome["ledgersChecked"], outcome["ledgersBroken"]) == (1, 0)
    assert len(night.time.rests) > 2


async def test_a_long_ledger_goes_on_from_where_it_was_right_until_it_is_replayed_whole(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.actors.job.effects.LEDGER_PAGE", 3)
    await night.open("org_1")
    await night.ask("org_1", bonus("b", 9, 300 * DAY))

    async def spend(first: int, last: int) -> Mapping[str, Any]:
        for n in range(first, last):
            await night.ask(
                "org_1", SpendCredits(key=f"s:{n}", amount=1, reason="chat", at=night.now)
            )
        return await night.run("expire-credits")

    replayed = [await spend(0, 7)]
    night.now += DAY
    replayed.append(await spend(7, 11))
    night.now += WHOLE_EVERY
    replayed.append(await spend(11, 12))
    assert [one["entriesReplayed"] for one in replayed] == [8, 4, 13]
    assert sum(one["ledgersBroken"] for one in replayed) == 0
