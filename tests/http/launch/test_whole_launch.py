"""A store goes from an empty shop to its first look as an open one, with everything that people do done in its admin."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import anyio
import pytest

from tests.http.launch.merchant import SPEC, Merchant
from tests.http.people import Clock, settings_of
from tests.mcp.tools.two_stores import TwoStores, settle
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.storefronts import Storefront, Storefronts
from tolsey.service import running

HOST = "loom.example"
PASSWORD = "until we open"
FORM: dict[str, Any] = {
    "contactEmail": "hello@loom.example",
    "products": [
        {
            "title": "Blanket",
            "price": "120",
            "type": "blankets",
            "description": "Woven by hand from the wool of our own sheep.",
            "stock": 3,
            "imageUrl": "https://pictures.example/blanket.png",
        }
    ],
}


@pytest.fixture
def storefront() -> Storefront:
    paths = ("/products/blanket", "/collections/featured", "/cart", "/collections/all")
    pages = dict.fromkeys((*paths, "/pages/contact"), "A page")
    return Storefront(domain=HOST, files=pages, has_password=True, password=PASSWORD)


@pytest.fixture
async def two_stores(
    database_url: str,
    redis_url: str,
    platform: Platform,
    clock: Clock,
    storefront: Storefront,
) -> AsyncIterator[TwoStores]:
    """Run the whole service beside a web that has the store's own site."""
    async with Storefronts(storefront).serve() as web:
        settings = settings_of(
            database_url=database_url,
            redis_url=redis_url,
            commerce_url_template=platform.url_template,
            storefront_url=web,
            scan_pace_seconds=0,
            launch_theme_url="https://themes.example/ours.zip",
        )
        async with running(settings, clock=clock, timers=False) as started:
            service = started.service
            ann = await settle(service, "ann", 1_000_000, clock.now)
            bob = await settle(service, "bob", 2_000_000, clock.now)
            yield TwoStores(service, ann, bob, started.app)


async def come_to(merchant: Merchant, *milestones: str) -> None:
    """Let ticks come until milestones are done; what waits for its time is due with each."""
    for id in milestones:
        found = await merchant.milestone(id)
        with anyio.move_on_after(120):
            while found["state"] not in {"succeeded", "approved", "failed", "blocked"}:
                await merchant.tick()
                found = await merchant.milestone(id)
        assert found["state"] in {"succeeded", "approved"}, (id, *found.values())


async def test_a_store_is_launched_with_what_people_do_done_in_its_admin(
    merchant: Merchant, platform: Platform, storefront: Storefront
) -> None:
    shop, setup = merchant.shop, merchant.shop.setup
    await merchant.launch(**FORM)
    await merchant.until("brand.kit", "succeeded")
    # Whoever takes the password off before the check is told so, until it is on again.
    for has_password, alarms in ((False, ["opened_early"]), (True, [])):
        setup.has_password = has_password
        await until_alarms(merchant, alarms)
    await merchant.decide("brand.approve", "done")
    await merchant.until("catalog.collections", "succeeded", "failed")
    setup.payments_activated = True
    setup.address.update(address1="1 Weaver St", city="Salem")
    await merchant.decide("catalog.review", "done")
    await come_to(merchant, "storefront.theme", "storefront.navigation", "catalog.publish")

    ours = next(one for one in setup.themes if one["role"] == "UNPUBLISHED")
    assert "shopify://shop_images/mark-" in ours["files"]["config/settings_data.json"]
    setup.themes[0]["role"], ours["role"] = "UNPUBLISHED", "MAIN"
    shop.primary_domain = HOST
    await come_to(merchant, "storefront.publish_theme", "launch.domain", "operations.payments")
    assert (await merchant.milestone("operations.tax"))["checkpoint"]["hinted"] is True
    for decided in ("operations.tax", "legal.review"):
        assert (await merchant.decide(decided, "done")).status_code == 200
    await come_to(merchant, "growth.seo", "growth.analytics", "growth.email", "foundation.plan")
    await merchant.tick()
    # The platform lives by a clock of its own.
    behind = merchant.two_stores.service.clock() - platform.now()
    platform.clock.advance(behind.total_seconds())
    platform.place_order(shop.domain, test=True)
    # Who charged tax when they confirmed it, and charges none now, is told so, and the store is not opened.
    setup.charges_tax = False
    await come_to(merchant, "launch.test_order")
    red = await merchant.until("launch.preflight", "failed", "succeeded")
    assert (red["state"], red["reason"]) == ("failed", "preflight_red")
    assert "tax.lines_domestic" in red["detail"]
    assert "1 of 24" in red["detail"]
    setup.charges_tax = True
    assert (await merchant.run("preflight"))["result"] == "succeeded"
    report = (await merchant.milestone("launch.preflight"))["result"]
    assert (len(report["checks"]), report["countries"]) == (24, ["CA", "DE", "US"])
    assert set(report["unknown"]) == {"links.no_4xx_5xx"}
    await are_pages_read_by_the_password(merchant, storefront)

    setup.has_password = storefront.has_password = False
    await is_found_open(merchant)
    assert await kept_password(merchant) is None

    # Buyers of an open store who pay nothing are seen, too.
    platform.clock.advance(timedelta(hours=2).total_seconds())
    platform.place_order(shop.domain, test=True)
    await until_alarms(merchant, ["test_mode_on"])
    await until_written(merchant, {"launch_finished", "store_opened_early", "test_mode_on"})


async def are_pages_read_by_the_password(merchant: Merchant, storefront: Storefront) -> None:
    """Tell the password of the storefront, a wrong one first, and have its pages checked by it."""
    for told, unknown in (("guessed", ["links.no_4xx_5xx"]), (PASSWORD, [])):
        spec = {**SPEC, **FORM, "storefrontPassword": told}
        address = f"/api/wizard/store/{merchant.store_id}"
        answer = await merchant.client.patch(address, json={"spec": spec})
        assert answer.status_code == 200, answer.text
        assert (await merchant.run("preflight", force=True))["result"] == "succeeded"
        report = (await merchant.milestone("launch.preflight"))["result"]
        assert list(report["unknown"]) == unknown
    assert {"/pages/contact", "/collections/all"} <= set(storefront.paths())
    # It is told to nobody, and sealed where it is kept.
    assert PASSWORD not in (await merchant.client.get(address)).text
    assert str(await kept_password(merchant)).startswith("v1.")


async def kept_password(merchant: Merchant) -> str | None:
    """Read what is kept of the storefront's password."""
    (row,) = await merchant.two_stores.database.fetch(
        "SELECT storefront_password FROM store_launches WHERE store_id = $1", merchant.store_id
    )
    found: str | None = row["storefront_password"]
    return found


async def is_found_open(merchant: Merchant) -> None:
    """Come to the last step, and see what it reports."""
    await come_to(merchant, "launch.unlock")
    now = merchant.two_stores.service.clock()
    for minutes in (0, 1, 61 + 24 * 60):
        await merchant.two_stores.database.execute(
            "INSERT INTO commerce_webhook_events (store_id, delivery_id, topic, shop_domain, created_at)"
            " VALUES ($1, $2, 'orders/create', $3, $4)",
            merchant.store_id,
            f"delivery_{minutes}",
            merchant.shop.domain,
            now - timedelta(minutes=minutes),
        )
    await sell(merchant, now - timedelta(hours=2), 30)
    await merchant.run("post-launch", force=True)
    await come_to(merchant, "launch.verify")
    live = (await merchant.milestone("launch.verify"))["result"]
    assert (live["host"], set(live["pages"].values())) == (HOST, {200})
    assert live["deliveriesOfTheLastHour"] == {"orders/create": 2}
    assert live["asksPassword"] is False
    # What it sold before is kept as what its first days are held against, and these are told by the hour.
    sold = {one["currency"]: one["orders"] for one in live["baseline"]["sold"]}
    assert (sold["EUR"], live["baseline"]["hours"]) == (30, 24)
    await sell(merchant, merchant.two_stores.service.clock(), 2)
    hours = (await merchant.cockpit())["sinceOpening"]
    told = [(one["orders"], one["gross"]) for one in hours if one["gross"]["currency"] == "EUR"]
    assert told == [(2, {"amount": 200, "currency": "EUR"})]
    assert (await merchant.cockpit())["finishedAt"] is not None


async def sell(merchant: Merchant, at: datetime, orders: int) -> None:
    """Have a store sell something in the hour of a moment, for one euro each."""
    await merchant.two_stores.database.execute(
        "INSERT INTO commerce_sales (store_id, minutes, at, source, currency, orders, gross_minor,"
        " current_minor, refunds, refunded_minor)"
        " VALUES ($1, 60, date_trunc('hour', $2::timestamptz), 'web', 'EUR', $3, $4, $4, 0, 0)",
        merchant.store_id,
        at,
        orders,
        orders * 100,
    )


async def until_written(merchant: Merchant, events: set[str]) -> None:
    """Wait until people were written to once about each of these, and about nothing else."""
    written: list[str] = []
    with anyio.move_on_after(120):
        while set(written) != events:
            await asyncio.sleep(0.05)
            rows = await merchant.two_stores.database.fetch("SELECT event FROM outbound_mail")
            # On a slow machine so many ticks come that a day is over.
            written = [row["event"] for row in rows if row["event"] != "launch_waits"]
    assert sorted(written) == sorted(events)


async def until_alarms(merchant: Merchant, alarms: list[str]) -> None:
    """Let ticks come until the look at the shop says this."""
    with anyio.fail_after(120):
        while (await merchant.cockpit())["alarms"] != alarms:
            await merchant.tick()
