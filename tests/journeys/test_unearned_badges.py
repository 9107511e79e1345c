"""Badges that nobody earned, and numbers that nobody proved."""

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import anyio
import httpx
import pytest
from cryptography.exceptions import InvalidSignature

from tests.http.listings.seller_side import check
from tests.journeys.conftest import SECRET, SHOP, Seller, order_body, sign_up, signed
from tests.journeys.strangers import LISTINGS, PUBLIC, browsing, deliver, listing_of, quiet, verify
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.service import Running

PRICE = {"askingPrice": {"amount": 10**9, "currency": "USD"}}
TAILS = ("", "/verification", "/badge.svg", "/og.png", "/embed", "/history")


@pytest.fixture
async def rival(live: Running) -> AsyncIterator[Seller]:
    async with browsing(live) as client:
        yield await sign_up(client, "rival@example.com")


async def on_the_market(live: Running, seller: Seller) -> dict[str, Any]:
    listing = await listing_of(seller, **PRICE)
    published = await seller.post(f"{LISTINGS}/{listing['id']}/publish")
    assert published.status_code == 200, published.text
    assert (await verify(seller, listing, SECRET)).status_code == 200
    await quiet(live)
    return listing


async def shown(live: Running, slug: str) -> dict[str, int]:
    """Say what a passer-by gets at each public address of a listing."""
    async with browsing(live) as client:
        return {tail: (await client.get(f"{PUBLIC}/{slug}{tail}")).status_code for tail in TAILS}


async def test_a_draft_a_withdrawn_and_a_made_up_listing_show_nothing(
    live: Running, seller: Seller
) -> None:
    listing = await listing_of(seller, **PRICE)
    assert (await verify(seller, listing, SECRET)).status_code == 200
    await quiet(live)
    nothing = dict.fromkeys(TAILS, 404)
    assert await shown(live, listing["slug"]) == nothing
    assert await shown(live, listing["id"]) == nothing
    await seller.post(f"{LISTINGS}/{listing['id']}/publish")
    assert await shown(live, listing["slug"]) == dict.fromkeys(TAILS, 200)
    await seller.post(f"{LISTINGS}/{listing['id']}/withdraw")
    assert await shown(live, listing["slug"]) == nothing
    assert await shown(live, "made-up") == nothing


async def test_a_suspended_listing_shows_nothing_and_its_seller_cannot_lift_that(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    listing = await on_the_market(live, seller)
    where = f"/api/admin/listings/{listing['id']}/suspend"
    assert (await operator.post(where, json={"reason": "look"})).status_code == 200
    assert await shown(live, listing["slug"]) == dict.fromkeys(TAILS, 404)
    for command in ("publish", "pause", "submit"):
        answer = await seller.post(f"{LISTINGS}/{listing['id']}/{command}")
        assert answer.status_code == 409, command
    assert await shown(live, listing["slug"]) == dict.fromkeys(TAILS, 404)


async def test_flagged_and_rejected_numbers_are_gone_from_every_public_page(
    live: Running, seller: Seller, operator: httpx.AsyncClient, browser: httpx.AsyncClient
) -> None:
    listing = await on_the_market(live, seller)
    path = f"{PUBLIC}/{listing['slug']}"
    numbers = (await browser.get(f"{path}/verification")).json()["revenue30d"]
    assert numbers > 0

    async def hidden() -> None:
        assert (await browser.get(f"{path}/badge.svg")).status_code == 404
        for tail in ("", "/verification", "/embed", "/history"):
            page = await browser.get(path + tail)
            assert page.status_code == 200
            assert str(numbers) not in page.text, tail
        assert (await browser.get(f"{path}/history")).json()["items"] == []

    where = f"/api/admin/listings/{listing['id']}/verification"
    assert (await operator.post(f"{where}/flag", json={"reason": "odd"})).status_code == 200
    await hidden()
    # neither another try of the shop nor the same credentials lift a suspension
    assert (await verify(seller, listing, SECRET)).status_code == 409
    refresh = await seller.post(f"{LISTINGS}/{listing['id']}/verify/refresh")
    assert refresh.status_code == 409
    await hidden()
    assert (await operator.post(f"{where}/reject", json={"reason": "forged"})).status_code == 200
    await hidden()
    assert (await seller.post(f"{LISTINGS}/{listing['id']}/verify/refresh")).status_code == 409
    await hidden()


async def test_a_revoked_verification_has_no_badge(
    live: Running, seller: Seller, browser: httpx.AsyncClient
) -> None:
    listing = await on_the_market(live, seller)
    path = f"{PUBLIC}/{listing['slug']}"
    assert (await browser.get(f"{path}/badge.svg")).status_code == 200
    gone = await seller.browser.delete(f"{LISTINGS}/{listing['id']}/verify")
    assert gone.status_code == 200
    assert (await browser.get(f"{path}/badge.svg")).status_code == 404
    proof = (await browser.get(f"{path}/verification")).json()
    assert (proof["state"], proof["revenue30d"], proof["mrr"]) == ("revoked", None, None)


async def test_no_proof_can_be_carried_to_another_listing_or_made_up(
    live: Running, seller: Seller, rival: Seller, browser: httpx.AsyncClient
) -> None:
    listing = await on_the_market(live, seller)
    other = await listing_of(rival, **PRICE)
    await rival.post(f"{LISTINGS}/{other['id']}/publish")
    proof = (await browser.get(f"{PUBLIC}/{listing['slug']}/verification")).json()
    keys = (await browser.get("/.well-known/verification-keys.json")).json()
    check(proof, keys)
    assert set(keys["keys"][0]) == {"kty", "crv", "use", "alg", "kid", "x"}  # no private part

    signature = proof["signature"]
    forged: list[dict[str, Any]] = [
        {**proof, name: value}
        for name, value in {
            "revenue30d": proof["revenue30d"] * 10,
            "mrr": 1,
            "currency": "KWD",
            "state": "verified_new",
            "definition": "rv1",
            "syncedAt": "2031-01-01T00:00:00.000Z",
            "flags": ["trusted"],
            "windowEnd": None,
            "note": "and more",
        }.items()
    ]
    forged += [
        {**proof, "signature": {**signature, name: value}}
        for name, value in {
            "listing": other["slug"],
            "signedAt": "2031-01-01T00:00:00.000Z",
            "value": base64.urlsafe_b64encode(b"\0" * 64).decode().rstrip("="),
        }.items()
    ]
    for document in forged:
        with pytest.raises(InvalidSignature):
            check(document, keys)
    # a proof that says nothing is signed as one that says nothing
    empty = (await browser.get(f"{PUBLIC}/{other['slug']}/verification")).json()
    check(empty, keys)
    assert (empty["state"], empty["revenue30d"]) == ("none", None)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = await browser.request(
            method, f"{PUBLIC}/{listing['slug']}/verification", json=proof
        )
        assert answer.status_code == 405


async def test_one_shop_backs_one_listing_whoever_comes_and_by_whatever_name(
    live: Running, seller: Seller, rival: Seller, platform: Platform
) -> None:
    first, second = await listing_of(seller, **PRICE), await listing_of(rival, **PRICE)
    third = await listing_of(seller, **PRICE)
    platform.shops["renamed.myshopify.com"] = platform.shop(SHOP)  # the shop's former name
    answers = await asyncio.gather(
        *(verify(who, which, SECRET) for who, which in ((seller, first), (rival, second)))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    await quiet(live)
    for shop in (SHOP, "renamed.myshopify.com", "https://renamed.myshopify.com/admin"):
        answer = await seller.post(
            f"{LISTINGS}/{third['id']}/verify/commerce",
            shopDomain=shop,
            clientId="client-1",
            clientSecret=SECRET,
        )
        assert (answer.status_code, answer.json()["code"]) == (409, "source_in_use"), shop
    rows = await live.service.database.fetch("SELECT shop_domain FROM revenue_sources")
    assert [row["shop_domain"] for row in rows] == [SHOP]


async def test_a_seller_cannot_show_one_shop_and_be_read_from_another(
    live: Running, seller: Seller, platform: Platform, browser: httpx.AsyncClient
) -> None:
    """Another shop starts from nothing: no badge of the one before is left."""
    small = "small.myshopify.com"
    platform.add_shop(
        ShopSpec(
            domain=small,
            client_id="client-1",
            client_secret=SECRET,
            orders=make_history(seed=4, days=60, orders=3),
        )
    )
    listing = await on_the_market(live, seller)
    path = f"{PUBLIC}/{listing['slug']}"
    rich = (await browser.get(f"{path}/verification")).json()["revenue30d"]
    release = platform.faults.hold("graphql")
    async with anyio.create_task_group() as tasks:

        async def change() -> None:
            answer = await seller.post(
                f"{LISTINGS}/{listing['id']}/verify/commerce",
                shopDomain=small,
                clientId="client-1",
                clientSecret=SECRET,
            )
            assert answer.status_code == 200, answer.text

        tasks.start_soon(change)
        release.set()
    await quiet(live)
    proof = (await browser.get(f"{path}/verification")).json()
    assert proof["revenue30d"] != rich
    assert (await browser.get(f"{path}/history")).text.count(str(rich)) == 0


async def test_a_seller_cannot_mint_revenue_with_deliveries(
    live: Running, browser: httpx.AsyncClient, seller: Seller, platform: Platform
) -> None:
    await seller.connect()
    listing = await listing_of(seller, askingPrice={"amount": 10**9, "currency": "USD"})
    await seller.post(f"{LISTINGS}/{listing['id']}/publish")
    await verify(seller, listing, SECRET)
    await quiet(live)
    proof = f"{PUBLIC}/{listing['slug']}/verification"
    figures = ("state", "currency", "mrr", "revenue30d", "annualised", "flags")
    before = (await browser.get(proof)).json()
    assert before["state"] == "verified"
    assert before["revenue30d"] > 0

    now = datetime.now(UTC).isoformat()
    bodies = [
        (topic, order_body(10_000 + n, total_price="9000000.00", processed_at=now, updated_at=now))
        for n, topic in enumerate(("orders/create", "orders/paid", "orders/updated") * 5)
    ]
    bodies += [
        ("orders/delete", b'{"id": 1}'),
        (
            "shop/update",
            json.dumps({"id": 9, "currency": "JPY", "plan_name": "x", "updated_at": now}).encode(),
        ),
        ("app/scopes_update", json.dumps({"current": ["read_all_orders"]}).encode()),
        (
            "bulk_operations/finish",
            b'{"admin_graphql_api_id": "gid://shopify/BulkOperation/1", "status": "completed"}',
        ),
    ]
    for topic, body in bodies:
        headers = signed(body, topic, delivery_id=str(uuid.uuid4()))
        assert (await deliver(browser, body, headers)).status_code == 200, topic
    assert (await seller.post(f"{LISTINGS}/{listing['id']}/verify/refresh")).status_code == 202
    await quiet(live)
    after = (await browser.get(proof)).json()
    assert {name: after[name] for name in figures} == {name: before[name] for name in figures}
