"""What changes of a plan ask of the processor, which stands in over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.actors.organization.billed_service import NOW, TO
from tests.http.payments.market import Market, opened
from tolsey.actors.organization.billing.calls import (
    NextChange,
    PlanChangeMade,
    PlanChangeRefused,
    RestoreChange,
    UpgradeSubscription,
)
from tolsey.actors.organization.billing.processor_calls import ProcessorCalls
from tolsey.actors.processor import Buyer, Subscribed
from tolsey.runtime.messages import LookFirst

pytestmark = pytest.mark.anyio

WHOSE = {"organization_id": "org_1", "operation_id": "op_1"}


@dataclass
class Subscriber:
    """Somebody who pays for Max 5x."""

    market: Market
    held: Subscribed

    @property
    def upgrade(self) -> UpgradeSubscription:
        price, until = self.market.price("max_20x"), NOW + timedelta(minutes=15)
        return UpgradeSubscription(
            **WHOSE,
            subscription_id=self.held.subscription_id,
            held=self.held,
            price_id=price,
            key="upgrade:1",
            until=until,
        )

    def restoring(self, plan: str = "pro") -> RestoreChange:
        price = "" if plan == "free" else self.market.price(plan)
        return RestoreChange(
            **WHOSE,
            subscription_id=self.held.subscription_id,
            held_price_id=self.held.price_id,
            price_id=price,
            plan=plan,
            cadence="monthly",
        )

    def calls(self, at: datetime = NOW) -> dict[type[Any], Any]:
        return ProcessorCalls(self.market.payments, lambda: at).handlers()

    @property
    def charged(self) -> int:
        return sum(one["paid"] for one in self.market.made("charge"))


@asynccontextmanager
async def subscribed() -> AsyncIterator[Subscriber]:
    async with opened(NOW) as market:
        price, buyer = market.price("max_5x"), Buyer("org_1")
        page = await market.payments.subscription_checkout(
            buyer, price, "max_5x", "monthly", TO, key="buy"
        )
        await market.pay(page.url)
        (bought,) = market.made("subscription")
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
        yield Subscriber(market, held)


@pytest.fixture
async def subscriber() -> AsyncIterator[Subscriber]:
    async with subscribed() as found:
        yield found


async def test_an_upgrade_that_was_made_is_found_by_whoever_does_not_know_of_it(
    subscriber: Subscriber,
) -> None:
    handler = subscriber.calls()[UpgradeSubscription]
    assert isinstance(handler, LookFirst)
    assert await handler.look(subscriber.upgrade) is None
    await handler.send(subscriber.upgrade)
    subscriber.market.processor.platform.stored.clear()  # a key is forgotten after a day
    assert await handler.look(subscriber.upgrade) == PlanChangeMade(operation_id="op_1", at=NOW)
    assert subscriber.charged == 2


async def test_an_upgrade_is_not_charged_when_what_was_shown_is_long_ago(
    subscriber: Subscriber,
) -> None:
    late = subscriber.calls(NOW + timedelta(minutes=15, seconds=1))[UpgradeSubscription]
    refused = await late.send(subscriber.upgrade)
    assert isinstance(refused, PlanChangeRefused)
    assert (refused.status, refused.processor_code) == (502, None)
    assert subscriber.charged == 1


async def test_what_waited_is_put_back_once(subscriber: Subscriber) -> None:
    restore, call = subscriber.calls()[RestoreChange], subscriber.restoring()
    back = await restore(call)
    (schedule,) = subscriber.market.made("subscription_schedule")
    assert back == PlanChangeMade(
        operation_id="op_1", at=NOW, next=NextChange(schedule["id"], "pro", "monthly")
    )
    assert await restore(call) == PlanChangeMade(operation_id="op_1", at=NOW, is_done=False)


async def test_an_end_is_put_back_instead_of_a_schedule_that_was_only_half_made(
    subscriber: Subscriber,
) -> None:
    half = {"from_subscription": subscriber.held.subscription_id}
    await subscriber.market.client.v1.subscription_schedules.create_async(half)  # type: ignore[arg-type]  # its one field
    restore, call = subscriber.calls()[RestoreChange], subscriber.restoring("free")
    assert await restore(call) == PlanChangeMade(operation_id="op_1", at=NOW)
    (subscription,) = subscriber.market.made("subscription")
    assert (subscription["cancel_at_period_end"], subscription["schedule"]) == (True, None)


async def test_nothing_is_put_back_where_an_upgrade_came_after_all(subscriber: Subscriber) -> None:
    calls = subscriber.calls()
    await calls[UpgradeSubscription].send(subscriber.upgrade)
    for plan in ("pro", "free"):
        back = await calls[RestoreChange](subscriber.restoring(plan))
        assert back == PlanChangeMade(operation_id="op_1", at=NOW, is_done=False)
    (subscription,) = subscriber.market.made("subscription")
    assert (subscription["cancel_at_period_end"], subscription["schedule"]) == (False, None)
