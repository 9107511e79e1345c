"""A customer wants to know what is kept of them, or to be forgotten, whoever brings the wish."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.journeys.conftest import SECRET, SHOP, Seller, order_body, sign_up, signed
from tests.journeys.strangers import deliver, quiet
from tests.journeys.test_compliance import (
    EMAIL,
    OTHER,
    OTHER_SECRET,
    PLATFORM_SECRET,
    ROUTES,
    WORDS,
    asked,
    client,
    erased,
    merchant,
    places,
    tell,
)
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.service import Running
from tolsey.settings import Settings

__all__ = ["merchant"]

SOMEBODY_ELSE = "else@example.com"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"commerce_client_secret": PLATFORM_SECRET})


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    """Two shops that sold nothing before they were connected."""
    made = Platform()
    for shop, secret in ((SHOP, SECRET), (OTHER, OTHER_SECRET)):
        made.add_shop(ShopSpec(domain=shop, client_id="client-1", client_secret=secret))
    async with made.serve():
        yield made


async def told(live: Running, seller: Seller, request: str) -> dict[str, Any]:
    """Fetch the answer of a request as an owner does, by the address that is good for a minute."""
    found = await seller.browser.get(f"/api/stores/{seller.store_id}/privacy/{request}/file")
    assert found.status_code == 200, found.text
    async with client(live) as anybody:
        answer: dict[str, Any] = (await anybody.get(found.json()["url"])).json()
    return answer


async def test_what_is_kept_of_a_customer_is_told_to_each_store_of_the_shop_and_to_nobody_else(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    database = live.service.database
    await seller.connect()
    facts = f"/api/stores/{seller.store_id}/memory/facts"
    async with client(live) as another:
        second = await sign_up(another, "second@example.com")
        await second.connect()
        await quiet(live)
        came = {
            "landing_site": "/summer?utm_source=news",
            "referring_site": "https://news.example/x",
        }
        await tell(seller.browser, SHOP, SECRET, **came)
        raw = order_body(2, email=SOMEBODY_ELSE, customer={"id": 8, "email": SOMEBODY_ELSE})
        await deliver(seller.browser, raw, signed(raw))
        # An address in words of the shop's people, as they write one.
        for key, value in (
            ("dora", f"Write to {EMAIL.upper()}."),
            ("none", "a@b and c@example.com"),
        ):
            await seller.browser.put(f"{facts}/{key}", json={"value": value})

        assert (await asked(another, "data-request", ROUTES["data-request"])).status_code == 200
        outcome = await erased(live)
        assert (outcome["requestsCompleted"], outcome["requestsFailed"]) == (1, 0)
        (request,) = (await operator.get("/api/admin/compliance")).json()["items"]
        assert {one["leg"] for one in request["legs"]} == {"answer"}
        assert {len(one["queryDigest"]) for one in request["legs"]} == {64}
        assert request["handledAt"] is None

        first = await told(live, seller, request["id"])
        other = await told(live, second, request["id"])
        path = f"/api/stores/{seller.store_id}/privacy/{request['id']}/file"
        assert (await another.get(path)).status_code == 404
    (order,) = first["orders"]
    assert (order["orderId"], order["metadata"]["tags"]) == (1, WORDS)
    assert [one["customerId"] for one in first["customers"]] == [7]
    (touch,) = first["attributionTouches"]
    assert (touch["orderId"], touch["landingPage"], touch["source"]) == (1, "/summer", "news")
    assert [one["name"] for one in first["mentionsInFacts"]] == ["dora"]
    assert other["mentionsInFacts"] == []
    assert [one["orderId"] for one in other["orders"]] == [1]
    # The same address has another name in each store, and neither is in the other's answer.
    assert set(first["knownAs"]) & set(other["knownAs"]) == set()
    assert {one["what"] for one in first["keptUntil"]} >= {"orders", "customers"}
    # The address is kept nowhere but where the shop's people wrote it.
    assert await places(database, EMAIL) == {"facts.value"}

    mails = await database.fetch(
        "SELECT recipient, subject FROM outbound_mail WHERE event = 'data_request_answered' ORDER BY 1"
    )
    assert [row["recipient"] for row in mails] == ["second@example.com", "seller@example.com"]
    trail = await database.fetch(
        "SELECT event FROM audit_log WHERE subject = $1 AND event LIKE 'compliance.%' ORDER BY id",
        seller.store_id,
    )
    assert [row["event"] for row in trail] == [
        "compliance.requested",
        "compliance.answered",
        "compliance.fetched",
    ]


async def test_an_answer_is_gone_after_thirty_days(live: Running, merchant: Seller) -> None:
    await asked(merchant.browser, "data-request", ROUTES["data-request"])
    await erased(live)
    (request,) = (await merchant.browser.get(f"/api/stores/{merchant.store_id}/privacy")).json()[
        "items"
    ]
    assert request["fileId"]
    row = await live.service.database.fetchrow("SELECT created_at, expires_at FROM files")
    assert row is not None
    assert row["expires_at"] - row["created_at"] == timedelta(days=30)
    await live.service.database.execute("UPDATE files SET expires_at = now()")
    path = f"/api/stores/{merchant.store_id}/privacy"
    assert (await merchant.browser.get(f"{path}/{request['id']}/file")).status_code == 404
    (request,) = (await merchant.browser.get(path)).json()["items"]
    assert request["fileId"] is None
    assert await live.service.files.sweep(10) == 1
    assert await live.service.database.fetch("SELECT FROM files") == []


async def test_a_merchant_exports_and_erases_one_customer_by_their_address(
    live: Running, seller: Seller
) -> None:
    database = live.service.database
    path = f"/api/stores/{seller.store_id}/privacy"
    early = await seller.post(path, email=EMAIL, action="export")
    assert early.status_code == 409
    await seller.connect()
    await quiet(live)
    await tell(seller.browser, SHOP, SECRET)
    await seller.connect(OTHER, OTHER_SECRET)
    await quiet(live)
    await tell(seller.browser, OTHER, OTHER_SECRET)

    # One request for each shop of the store; asked again while it is open, it is the same.
    wanted = {"email": f" {EMAIL.upper()} ", "action": "export"}
    answer = await seller.post(path, **wanted)
    assert answer.status_code == 202, answer.text
    first = answer.json()["items"]
    assert [one["shopDomain"] for one in first] == [SHOP, OTHER]
    assert {one["source"] for one in first} == {"merchant"}
    again = (await seller.post(path, **wanted)).json()["items"]
    assert [one["id"] for one in again] == [one["id"] for one in first]
    await erased(live)
    answers = [await told(live, seller, one["id"]) for one in first]
    assert [len(one["orders"]) for one in answers] == [1, 1]
    assert set(answers[0]["knownAs"]) & set(answers[1]["knownAs"]) == set()

    unsure = await seller.post(path, email=EMAIL, action="erase")
    assert (unsure.status_code, unsure.json()["code"]) == (409, "confirmation_required")
    sure = await seller.post(path, email=EMAIL, action="erase", confirmed=True)
    assert sure.status_code == 202, sure.text
    await erased(live)
    rows = await database.fetch("SELECT customer_hash, metadata::text AS said FROM commerce_orders")
    assert [tuple(row.values()) for row in rows] == [(None, "{}")] * 2
    assert await places(database, EMAIL, WORDS) == set()
    # It is asked for anew once the first is done.
    later = (await seller.post(path, **wanted)).json()["items"]
    assert {one["id"] for one in later} & {one["id"] for one in first} == set()


async def test_the_page_asks_once_more_before_a_customer_is_forgotten(
    live: Running, seller: Seller
) -> None:
    await seller.connect()
    page = f"/stores/{seller.store_id}/privacy"
    empty = await seller.browser.get(page)
    assert "Nobody has asked yet." in empty.text
    form = {"email": EMAIL, "action": "erase"}
    question = await seller.browser.post(page, data=form)
    assert question.status_code == 200
    assert "Forget them for good" in question.text
    assert await live.service.database.fetch("SELECT FROM compliance_requests") == []
    taken = await seller.browser.post(page, data={**form, "confirmed": "true"})
    assert (taken.status_code, taken.headers["location"]) == (303, f"{page}?done=erase")
    await seller.browser.post(page, data={"email": EMAIL, "action": "export"})
    await erased(live)
    shown = await seller.browser.get(page)
    assert shown.text.count("Download") == 1
    assert "a person of yours" in shown.text
    (asked_for,) = await live.service.database.fetch(
        "SELECT id FROM compliance_requests WHERE topic = 'customers/data_request'"
    )
    fetched = await seller.browser.get(f"{page}/{asked_for['id']}/file")
    assert fetched.status_code == 303
    assert (
        json.loads((await seller.browser.get(fetched.headers["location"])).content)["orders"] == []
    )
    wrong = await seller.browser.post(page, data={"email": "nobody", "action": "export"})
    assert wrong.status_code == 422
    assert "Type a mail address." in wrong.text
