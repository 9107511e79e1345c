"""Looking for a business among what is on the market, and watching one."""

from typing import Any

import httpx
import pytest

from tests.http.listings.seller_side import PUBLIC, Seller, listed
from tests.http.people import SignUp
from tolsey.http.app import create_app
from tolsey.http.market import selling_accounts, watching
from tolsey.http.people import auth, organizations
from tolsey.http.selling import public, reviews, sell
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge

MARKET = "/api/marketplace"


@pytest.fixture
def edge(service: Service) -> Edge:
    parts = (auth, organizations, stores, sell, public, reviews, watching, selling_accounts)
    return create_app(service, [part.routes for part in parts], {})


async def on_the_market(person: Any, title: str, amount: int, **said: Any) -> Seller:
    price = {"amount": amount, "currency": said.pop("currency", "USD")}
    seller = await listed(person, title=title, askingPrice=price, **said)
    assert (await seller.post("publish")).status_code == 200
    return seller


async def titles(browser: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await browser.get(PUBLIC, params=query)
    assert answer.status_code == 200, answer.text
    return [one["title"] for one in answer.json()["items"]]


async def test_buyers_search_filter_sort_and_page(sign_up: SignUp) -> None:
    ann = await sign_up("ann@example.com")
    await on_the_market(ann, "Café du coin", 300_000, category="Food", country="FR")
    await on_the_market(ann, "Candle shop", 100_000, category="Home", financingOffered=True)
    await on_the_market(ann, "Candle club", 200_000, category="Home")
    await on_the_market(ann, "Kaffee", 50_000, currency="EUR")
    browser = ann.browser

    assert await titles(browser) == ["Kaffee", "Candle club", "Candle shop", "Café du coin"]
    assert await titles(browser, q="cafe") == ["Café du coin"]
    assert await titles(browser, q="cand", financing="true") == ["Candle shop"]
    assert await titles(browser, category="home", sort="price_asc", currency="USD") == [
        "Candle shop",
        "Candle club",
    ]
    assert await titles(browser, minPrice=150_000, maxPrice=250_000, currency="USD") == [
        "Candle club"
    ]
    assert await titles(browser, country="fr") == ["Café du coin"]
    assert await titles(browser, verified="true") == []
    assert await titles(browser, status="SOLD") == []

    seen, cursor = [], None
    while True:
        query: dict[str, Any] = {"limit": 1, "sort": "price_desc", "currency": "USD"} | (
            {"cursor": cursor} if cursor else {}
        )
        page = (await browser.get(PUBLIC, params=query)).json()
        seen += [one["title"] for one in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == ["Café du coin", "Candle club", "Candle shop"]

    answer = await browser.get(PUBLIC, params={"minPrice": 1})
    assert answer.status_code == 422
    assert "send currency" in answer.text
    of_prices = (
        await browser.get(PUBLIC, params={"limit": 1, "sort": "price_asc", "currency": "USD"})
    ).json()
    wrong = await browser.get(PUBLIC, params={"cursor": of_prices["nextCursor"]})
    assert wrong.json()["code"] == "invalid_cursor"


async def test_the_seller_sees_how_many_watch_and_look_and_nobody_sees_who(sign_up: SignUp) -> None:
    ann, ben = await sign_up("ann@example.com"), await sign_up("ben@example.com")
    seller = await on_the_market(ann, "Corner", 100_000)
    path = f"{MARKET}/listings/{seller.made['id']}/watch"
    for _ in range(2):
        assert (await ben.browser.post(path)).status_code == 204
        assert (await ben.browser.get(f"{PUBLIC}/{seller.made['slug']}")).status_code == 200
    watched = (await ben.browser.get(f"{MARKET}/watched")).json()["items"]
    assert [one["id"] for one in watched] == [seller.made["id"]]
    assert (await ann.browser.get(f"{MARKET}/watched")).json()["items"] == []
    found = await seller.read()
    assert (found["watchers"], found["views"]) == (1, 1)
    assert not {"watchers", "views"} & set((await seller.public()).json())

    assert (await ben.browser.delete(path)).status_code == 204
    assert (await seller.read())["watchers"] == 0
    assert (await ben.browser.delete(path)).status_code == 404
    draft = await listed(ann, title="A draft")
    answer = await ben.browser.post(f"{MARKET}/listings/{draft.made['id']}/watch")
    assert answer.status_code == 404


async def test_what_is_for_buyers_under_an_nda_is_in_nothing_public(sign_up: SignUp) -> None:
    ann = await sign_up("ann@example.com")
    said = {"businessName": "Secret Corner GmbH", "suppliers": "Wachs & Docht"}
    seller = await on_the_market(
        ann, "Corner", 100_000, private=said, requiredDocuments=["tax_return"]
    )
    found = await seller.read()
    assert found["private"] == {**dict.fromkeys(found["private"]), **said}
    assert found["requiredDocuments"] == ["tax_return"]
    edited = await seller.browser.patch(seller.path, json={"title": "Corner shop"})
    assert edited.json()["private"] == found["private"]
    for path in (PUBLIC, f"{PUBLIC}/{seller.made['slug']}"):
        text = (await ann.browser.get(path)).text
        assert "Secret" not in text
        assert "Docht" not in text
        assert "tax_return" not in text


async def test_without_a_processor_no_account_is_required(sign_up: SignUp) -> None:
    ann, eve = await sign_up("ann@example.com"), await sign_up("eve@example.com")
    query = {"organizationId": ann.organization_id}
    answer = (await ann.browser.get("/api/sell/account", params=query)).json()
    assert (answer["required"], answer["ready"], answer["state"]) == (False, True, "none")
    assert (await eve.browser.get("/api/sell/account", params=query)).status_code == 404
