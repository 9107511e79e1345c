"""The platform says that a shop has another owner: the deal that hands it over closes its item, and no other deal does."""

from datetime import timedelta

import httpx
import orjson
import pytest

from tests.http.deals.handovers import being_sold, handed_over
from tests.mcp.tools.conftest import clock, given, platform, two_stores
from tests.mcp.tools.two_stores import BASE, SECRET, SHOPS, TwoStores, connect
from tests.timing import until
from tolsey.http.webhooks.signatures import sign
from tolsey.http.webhooks.table import EVENTS_PATH
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.webhooks.bodies import shop_body

__all__ = ["clock", "given", "platform", "two_stores"]

SHOP = SHOPS["ann"]


@pytest.fixture
async def selling(two_stores: TwoStores, platform: Platform) -> TwoStores:
    """Connect both stores; Ann hands hers over to Bob, and Bob is only about to hand his over to Ann."""
    for owner in (two_stores.ann, two_stores.bob):
        shop = platform.shop(SHOPS[owner.name])
        await connect(two_stores.service, owner, shop.issue_token(platform.now()).text, shop.scopes)
    await being_sold(two_stores, "sold", two_stores.ann, two_stores.bob)
    await being_sold(two_stores, "early", two_stores.bob, two_stores.ann, "ESCROW_FUNDED")
    return two_stores


async def told(selling: TwoStores, platform: Platform, id: str, **body: str) -> None:
    """Deliver `shop/update` to the service, and wait until what follows from it was done."""
    shop = platform.shop(SHOP)
    # What is older than what is known of a shop is passed over, and a body has no parts of a second.
    shop.updated_at = selling.service.clock() + timedelta(seconds=1)
    raw = orjson.dumps({**shop_body(shop), **body})
    headers = {
        "x-shopify-topic": "shop/update",
        "x-shopify-hmac-sha256": sign(raw, SECRET),
        "x-shopify-shop-domain": SHOP,
        "x-shopify-webhook-id": id,
    }
    transport = httpx.ASGITransport(selling.app)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        answer = await client.post(EVENTS_PATH, content=raw, headers=headers)
    assert answer.status_code == 200, answer.text

    async def is_done() -> bool:
        return not await selling.database.fetch(
            "SELECT 1 FROM outbox WHERE name LIKE '%LookForOwner' OR name LIKE '%ShopUpdated'"
        )

    await until(is_done)


async def test_a_shop_of_the_buyers_closes_the_item_of_its_deal_once(
    selling: TwoStores, platform: Platform
) -> None:
    # A stranger's shop, and one of somebody who sells it too, is nobody's who bought it.
    for number, email in enumerate(("eve@example.com", "ann@example.com")):
        platform.hand_over(SHOP, email)
        await told(selling, platform, f"other-{number}")
        assert await handed_over(selling, "sold") == []
    # Who holds the app's secret can sign what the platform does not say.
    await told(selling, platform, "forged", email="bob@example.com")
    assert await handed_over(selling, "sold") == []

    platform.hand_over(SHOP, "Bob@example.com")
    for id in ("said", "said", "said-again"):
        await told(selling, platform, id)
    assert await handed_over(selling, "sold") == ["The store"]
    assert await handed_over(selling, "early") == []
    (line,) = await selling.database.fetch("SELECT body FROM deal_events")
    assert "@" not in line["body"]


async def test_a_buyer_who_works_for_the_seller_owns_nothing_by_that(
    selling: TwoStores, platform: Platform
) -> None:
    await selling.database.execute(
        "INSERT INTO members (organization_id, user_id, role) VALUES ($1, $2, 'member')",
        selling.ann.organization_id,
        selling.bob.user_id,
    )
    platform.hand_over(SHOP, "bob@example.com")
    await told(selling, platform, "said")
    assert await handed_over(selling, "sold") == []


async def test_a_shop_that_lets_us_in_no_more_leaves_the_item_to_its_seller(
    selling: TwoStores, platform: Platform
) -> None:
    platform.hand_over(SHOP, "bob@example.com")
    shop = platform.shop(SHOP)
    shop.tokens.clear()
    shop.permitted = False
    await told(selling, platform, "said")
    assert await handed_over(selling, "sold") == []
    assert not await selling.database.fetch("SELECT 1 FROM dead_letters")
