"""A process dies at every turn of its loop, one after the other, while money moves at the processor.

The next process is asked for the same, as a client repeats its request. The processor saw each step once,
and the books agree.
"""

import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.actors.organization.billed_service import MICRO, TO, BilledService, opened, process
from tests.campaigns.money.disk import read_rows
from tests.campaigns.money.rows import broken
from tests.campaigns.mortals import IN_A_ROW, MOST, STEP, mortals
from tests.http.payments.market import opened as market_opened
from tolsey.actors.organization.billing.messages import (
    ChangePlan,
    GiveBackPayment,
    ReadSubscription,
)
from tolsey.actors.organization.ledger.messages import ReadCredits
from tolsey.actors.organization.messages import organization
from tolsey.actors.processor import Buyer, Subscribed
from tolsey.runtime.messages import Message
from tolsey.storage.database import Database

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(1_200)]

AT_ONCE = 20


@asynccontextmanager
async def at_work(billed: BilledService, name: str) -> AsyncIterator[None]:
    """Let a process of the test's own apply what the processor told."""
    async with process(billed.database, billed.market, name) as billed.runtime:
        yield


async def buy(billed: BilledService, id: str) -> None:
    """Buy Max 5x on the processor's page."""
    await billed.database.execute("INSERT INTO organizations (id, name) VALUES ($1, 'o')", id)
    price, buyer = billed.market.price("max_5x"), Buyer(id)
    page = await billed.market.payments.subscription_checkout(
        buyer, price, "max_5x", "monthly", TO, key=f"buy:{id}"
    )
    await billed.market.pay(page.url)
    await billed.settle()


def bought_by(billed: BilledService, id: str) -> dict[str, Any]:
    """Find an organization's subscription at the processor."""
    made = billed.market.made("subscription")
    (found,) = (one for one in made if one["metadata"]["org_id"] == id)
    return found


def of(billed: BilledService, id: str, kind: str) -> list[dict[str, Any]]:
    """List what there is of a kind at the processor for an organization."""
    customer = bought_by(billed, id)["customer"]
    charges = {one["id"] for one in billed.market.made("charge") if one["customer"] == customer}
    return [
        one
        for one in billed.market.made(kind)
        if one.get("customer") == customer or one.get("charge") in charges
    ]


async def upgrade(billed: BilledService, id: str) -> Message[Any]:
    """Let Pro wait for the end of Max 5x, and ask for Max 20x instead."""
    await buy(billed, id)
    bought = bought_by(billed, id)
    (item,) = bought["items"]["data"]
    begins, ends = (
        datetime.fromtimestamp(item[f"current_period_{name}"], UTC) for name in ("start", "end")
    )
    held = Subscribed(
        subscription_id=bought["id"],
        item_id=item["id"],
        price_id=item["price"]["id"],
        period_start=begins,
        period_end=ends,
        schedule_id=None,
    )
    await billed.market.payments.downgrade(
        held, billed.market.price("pro"), "pro", "monthly", key=f"down:{id}"
    )
    await billed.settle()
    price_ids = dict(billed.market.prices)
    return ChangePlan(
        operation_id=f"op_{id}",
        plan="max_20x",
        cadence="monthly",
        price_ids=price_ids,
        user_id="usr_9",
        at=datetime.now(UTC),
        offers=billed.market.offers,
    )


async def upgrade_stage(billed: BilledService, id: str) -> str:
    """Tell how far an upgrade is."""
    state, calls = await on_disk(billed, id)
    if state != "running":
        return state
    bought = bought_by(billed, id)
    if bought["items"]["data"][0]["price"]["id"] == billed.market.price("max_20x"):
        return "charged"
    return "released" if bought["schedule"] is None else calls["UpgradeSubscription"]


async def judge_upgrade(billed: BilledService, id: str) -> None:
    bought = bought_by(billed, id)
    (item,) = bought["items"]["data"]
    assert (item["price"]["id"], bought["schedule"]) == (billed.market.price("max_20x"), None)
    # A second request for the same would cost next to nothing, and yet be another invoice.
    assert (len(of(billed, id, "invoice")), len(of(billed, id, "charge"))) == (2, 2)
    answered = await billed.runtime.ask(organization(id), ReadSubscription(billed.now))
    assert (answered.plan, answered.next_plan, answered.schedule_id) == ("max_20x", None, None)
    credits = await billed.runtime.ask(organization(id), ReadCredits(billed.now))
    assert credits.standing.balance == 299 * MICRO
    assert await audited(billed, id, "plan.%") == {"plan.change_requested": 1}


async def refund(billed: BilledService, id: str) -> Message[Any]:
    """Ask for a subscription's payment back."""
    await buy(billed, id)
    row = await billed.database.fetchrow(
        "SELECT reference FROM credit_lots WHERE organization_id = $1", id
    )
    assert row is not None
    now = datetime.now(UTC)
    return GiveBackPayment(
        operation_id=f"op_{id}",
        payment_ref=row["reference"],
        reason="a mistake",
        user_id="usr_9",
        at=now,
    )


async def refund_stage(billed: BilledService, id: str) -> str:
    """Tell how far a refund is."""
    state, calls = await on_disk(billed, id)
    if state != "running":
        return state
    bought = bought_by(billed, id)
    if bought["status"] == "canceled":
        return "canceled"
    if "EndSubscriptionNow" in calls:
        return f"end {calls['EndSubscriptionNow']}"
    return "refunded" if of(billed, id, "refund") else "waiting"


async def judge_refund(billed: BilledService, id: str) -> None:
    bought = bought_by(billed, id)
    assert bought["status"] == "canceled"
    (made,), (charge,) = of(billed, id, "refund"), of(billed, id, "charge")
    assert made["amount"] == charge["amount"]
    answered = await billed.runtime.ask(organization(id), ReadSubscription(billed.now))
    credits = await billed.runtime.ask(organization(id), ReadCredits(billed.now))
    assert (answered.plan, credits.standing.balance, credits.standing.held) == ("free", 0, 0)
    assert await audited(billed, id, "refund.%") == {"refund.requested": 1}


async def on_disk(billed: BilledService, id: str) -> tuple[str, Mapping[str, str]]:
    """Read how far an operation is, and its calls."""
    database = billed.database
    row = await database.fetchrow("SELECT state FROM operations WHERE organization_id = $1", id)
    calls = await database.fetch(
        "SELECT name, state FROM outbox WHERE actor_key = $1 AND lane IS NOT NULL", id
    )
    return "not asked" if row is None else row["state"], {
        one["name"].rpartition(".")[2]: one["state"] for one in calls
    }


async def audited(billed: BilledService, id: str, events: str) -> Mapping[str, int]:
    rows = await billed.database.fetch(
        "SELECT event FROM audit_log WHERE organization_id = $1 AND event LIKE $2", id, events
    )
    return Counter(row["event"] for row in rows)


@dataclass(frozen=True)
class Deed:
    """What processes die at: how it is begun, how far it is, and what has come of it in the end."""

    begin: Callable[[BilledService, str], Awaitable[Message[Any]]]
    stage: Callable[[BilledService, str], Awaitable[str]]
    judge: Callable[[BilledService, str], Awaitable[None]]
    stages: frozenset[str]
    """Each has to be died in."""


UPGRADE = Deed(
    *(upgrade, upgrade_stage, judge_upgrade),
    frozenset({"not asked", "waiting", "sent", "released", "charged", "done"}),
)
REFUND = Deed(
    *(refund, refund_stage, judge_refund),
    frozenset({"not asked", "waiting", "refunded", "end waiting", "end sent", "canceled", "done"}),
)


@pytest.mark.parametrize("deed", [UPGRADE, REFUND], ids=["upgrade", "refund"])
async def test_whatever_turn_a_process_dies_at_the_next_goes_on_and_each_step_is_made_once(
    deed: Deed, database: Database, database_url: str, tmp_path: Path, capsys: Any
) -> None:
    died: Counter[str] = Counter()
    turn = outlived = 0
    async with (
        market_opened(datetime.now(UTC)) as market,
        opened(market, database) as billed,
        mortals("organization", database_url, market.processor.url, tmp_path) as forks,
    ):
        while outlived < IN_A_ROW:
            assert turn < MOST
            async with at_work(billed, f"before {turn}"):
                asked = {id: await deed.begin(billed, id) for id in ids(turn)}
            for id, message in asked.items():
                turn += STEP
                code = await forks.ask(id, message, dies_at=turn)
                assert code in {0, -signal.SIGKILL}, forks.said.read_text()[-4_000:]
                outlived = outlived + 1 if code == 0 else 0
                died[await deed.stage(billed, id)] += code != 0
                await forks.follow(id, message)
            async with at_work(billed, f"after {turn}"):
                await billed.settle()
                books = await read_rows(database, list(asked))
                for id in asked:
                    await deed.judge(billed, id)
                    assert list(broken(books[id])) == []
        assert await database.fetch("SELECT FROM dead_letters") == []
    with capsys.disabled():
        print(f"\n{turn} turns, died when it was {dict(died)}")  # noqa: T201 - what a campaign is for
    if STEP == 1:
        assert deed.stages <= {stage for stage, times in died.items() if times}


def ids(turn: int) -> list[str]:
    return [f"org_turn_{turn + n * STEP}" for n in range(1, AT_ONCE + 1)]
