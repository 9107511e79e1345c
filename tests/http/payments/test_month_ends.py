"""Plans bought on the last days of a month: what begins later may end earlier."""

from datetime import UTC, datetime

import pytest

from tests.http.payments.shop import Shop
from tests.http.payments.test_refunds import reference, refund
from tests.http.people import Clock, Person

DOLLAR = 1_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2027, 3, 30, 12, tzinfo=UTC))


async def test_an_upgrade_on_the_31st_is_there_and_paid_for_once(shop: Shop, ann: Person) -> None:
    await shop.buy(ann)
    await shop.advance(hours=21)
    changed = await shop.change(ann, "max_5x")
    assert changed.status_code == 200, changed.text
    await shop.settled()
    assert ((await shop.plan(ann))["plan"], (await shop.plan(ann))["periodEnd"]) == (
        "max_5x",
        "2027-04-30T09:00:00.000Z",
    )
    assert (await shop.credits(ann))["available"] == 149 * DOLLAR
    assert len(await shop.audited("subscription.upgraded")) == 1
    assert len(shop.charged()) == 2


async def test_what_is_bought_after_a_refund_brings_its_credits(
    shop: Shop, ann: Person, operator: Person
) -> None:
    await shop.buy(ann)
    await shop.advance(hours=20)
    assert (await refund(operator, ann, await reference(shop, ann))).status_code == 201
    await shop.settled()
    assert ((await shop.plan(ann))["plan"], (await shop.credits(ann))["available"]) == ("free", 0)
    await shop.advance(hours=1)
    await shop.buy(ann, "max_5x")
    assert (await shop.credits(ann))["available"] == 149 * DOLLAR
