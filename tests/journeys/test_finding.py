"""An operator who is told no more than a shop's name finds what is wrong, in one request and on one page."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import httpx
import pytest

from tests.http.account_books import RESTRICTED_KEY, Account
from tests.journeys.conftest import EVENTS, SHOP, Seller, free_port, order_body, signed
from tests.journeys.strangers import LISTINGS, listing_of, quiet
from tests.timing import until
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.payments.processor import Processor
from tolsey.service import Running, running
from tolsey.settings import Settings

FIND = "/api/admin/find"
CHANGED = "shpss_changed0000000000000000000000"


class Clock:
    """The service's clock, which a test may put forward."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def port() -> int:
    """Say where the payment processor is, while it is there."""
    return free_port()


@pytest.fixture
def settings(settings: Settings, port: int) -> Settings:
    return settings.model_copy(update={"payments_api_base": f"http://127.0.0.1:{port}"})


@pytest.fixture
async def live(settings: Settings, clock: Clock) -> AsyncIterator[Running]:
    async with running(settings, clock=clock, timers=False, poll_seconds=0.1) as service:
        yield service


async def edited(browser: httpx.AsyncClient, order_id: int, n: int) -> None:
    """Deliver that an order was edited: what it is now has to be read from its shop."""
    body = json.dumps({"order_edit": {"id": n, "order_id": order_id}}).encode()
    headers = signed(body, "orders/edited", delivery_id=f"edit-{n}")
    assert (await browser.post(EVENTS, content=body, headers=headers)).status_code == 200


async def until_told(operator: httpx.AsyncClient, wanted: set[str]) -> dict[str, dict[str, str]]:
    """Ask until all these causes are told; answer them by their codes."""

    async def find() -> dict[str, dict[str, str]] | None:
        answer = await operator.get(FIND, params={"q": "DEMO"})
        assert answer.status_code == 200, answer.text
        causes = {one["cause"]: one for one in answer.json()["diagnosis"]["causes"]}
        return causes if causes.keys() >= wanted else None

    return await until(find)


@asynccontextmanager
async def broken(browser: httpx.AsyncClient, platform: Platform) -> AsyncIterator[None]:
    """Let the platform hang, then refuse tokens, and the shop sign with a secret that nobody has."""
    held = platform.faults.hold()
    first, second, *_ = sorted(platform.shop(SHOP).orders)
    await edited(browser, first, 1)
    await until(lambda: platform.faults.happened)
    platform.rotate_secret(SHOP, CHANGED)
    platform.revoke_tokens(SHOP)
    await edited(browser, second, 2)
    delivery = order_body(7)
    headers = signed(delivery, secret=CHANGED)
    assert (await browser.post(EVENTS, content=delivery, headers=headers)).status_code == 401
    try:
        yield
    finally:
        held.set()


async def test_with_everything_broken_the_shops_name_leads_to_every_cause(
    live: Running, seller: Seller, operator: httpx.AsyncClient, platform: Platform, clock: Clock
) -> None:
    processor = Processor()
    Account(processor).pay("cus_a", 2_500, days_ago=40)
    assert (await seller.connect()).status_code == 200
    listing = await listing_of(seller, storeId=seller.store_id)
    verify = f"{LISTINGS}/{listing['id']}/verify"
    async with processor.serve(int(str(live.service.settings.payments_api_base)[-5:])):
        answer = await seller.post(f"{verify}/payments", restrictedKey=RESTRICTED_KEY)
        assert answer.status_code == 200, answer.text
        await quiet(live)
    well = (await operator.get(FIND, params={"q": "demo"})).json()
    assert [(one["kind"], one["matched"]) for one in well["items"]] == [("store", "shop")]
    assert well["diagnosis"]["causes"] == []

    async with broken(seller.browser, platform):
        assert (await seller.post(f"{verify}/refresh")).status_code == 202
        clock.ahead = timedelta(minutes=1)
        wanted = {"token_refused", "deliveries_refused", "call_failing", "call_under_way"}
        causes = await until_told(operator, wanted)
        page = (await operator.get("/admin/find", params={"q": "demo"})).text
    assert "1 delivery" in causes["deliveries_refused"]["why"]
    assert f"PullRevenue of listing {listing['id']}" in causes["call_failing"]["why"]
    assert f"of store {seller.store_id} is under way" in causes["call_under_way"]["why"]
    assert all(one["do"] for one in causes.values())
    for cause in causes.values():
        assert cause["cause"] in page
    assert "PullRevenue" in page
    for secret in (RESTRICTED_KEY, "shpss_", "shpat_"):
        assert secret not in page


async def test_what_somebody_tells_leads_to_what_it_is(
    seller: Seller, operator: httpx.AsyncClient
) -> None:
    await seller.connect()

    async def found(typed: str) -> list[tuple[str, str, str]]:
        answer = await operator.get(FIND, params={"q": typed})
        assert answer.status_code == 200, answer.text
        return [(one["kind"], one["id"], one["matched"]) for one in answer.json()["items"]]

    store = ("store", seller.store_id)
    company = ("organization", seller.organization_id)
    assert await found(f"https://{SHOP}/admin") == [(*store, "shop")]
    assert await found(seller.store_id) == [(*store, "id")]
    assert await found("a STO") == [(*store, "name")]
    assert await found(seller.organization_id) == [(*company, "id"), (*store, "organization")]
    listing = await listing_of(seller, storeId=seller.store_id)
    assert await found(listing["id"]) == [("listing", listing["id"], "id"), (*store, "listing")]
    assert await found("a comp") == [(*company, "name")]
    user, *rest = await found(" Seller@Example.com ")
    assert user[0] == "user"
    assert rest == [(*company, "mail"), (*store, "mail")]
    for nobody in ("%", "nobody@example.com", "\\", "x" * 200):
        assert await found(nobody) == []


async def test_a_look_is_on_record_and_what_was_typed_is_not(
    seller: Seller, operator: httpx.AsyncClient, live: Running
) -> None:
    await operator.get(FIND, params={"q": "seller@example.com"})
    answer = (await operator.get("/api/admin/audit", params={"event": "admin.find"})).json()
    (row,) = answer["items"]
    assert seller.store_id in row["metadata"]["found"]
    assert "seller@" not in json.dumps(row)


@pytest.mark.parametrize("path", [FIND, "/api/admin/stores/x/diagnosis", "/admin/find"])
async def test_no_seller_finds_anybody(seller: Seller, path: str) -> None:
    assert (await seller.browser.get(path, params={"q": "demo"})).status_code == 403


async def test_the_inspector_of_a_store_names_the_listing_that_sells_it(
    seller: Seller, operator: httpx.AsyncClient
) -> None:
    listing = await listing_of(seller, storeId=seller.store_id)
    seen = (await operator.get(f"/api/admin/actors/store/{seller.store_id}")).json()
    assert [one["id"] for one in seen["listings"]] == [listing["id"]]


async def test_audit_rows_and_deliveries_are_listed_of_what_is_named(
    seller: Seller, operator: httpx.AsyncClient, browser: httpx.AsyncClient
) -> None:
    await seller.connect()
    for n, topic in enumerate(("orders/create", "orders/updated", "orders/create")):
        body = order_body(n + 1)
        answer = await browser.post(EVENTS, content=body, headers=signed(body, topic))
        assert answer.status_code == 200, answer.text

    async def listed(path: str, **query: str) -> list[dict[str, str]]:
        answer = await operator.get(f"/api/admin/{path}", params=query)
        assert answer.status_code == 200, answer.text
        items: list[dict[str, str]] = answer.json()["items"]
        return items

    of_store = partial(listed, storeId=seller.store_id)
    assert [one["topic"] for one in await of_store("webhooks")] == [
        *("orders/create", "orders/updated", "orders/create")
    ]
    assert len(await of_store("webhooks", topic="orders/updated")) == 1
    assert await listed("webhooks", storeId="store_other") == []
    events = [one["event"] for one in await listed("audit", subject=seller.store_id)]
    assert events.count("commerce.webhook.orders.create") == 2
    assert "commerce.connected" in events
    acts = await listed("audit", organizationId=seller.organization_id)
    assert {"store.created", "commerce.connected"} <= {one["event"] for one in acts}
    assert not any(one["event"].startswith("commerce.webhook.") for one in acts)
    (connected,) = await listed("audit", event="commerce.connected")
    assert connected in await listed("audit", actor=connected["actor"])
    for query in ({"event": "a.b", "actor": "usr_1"}, {"subject": "s", "organizationId": "org_1"}):
        refused = await operator.get("/api/admin/audit", params=query)
        assert refused.status_code == 422, refused.text
        assert "Send one of" in refused.text
    refused = await operator.get("/api/admin/webhooks", params={"topic": "orders/create"})
    assert refused.status_code == 422
