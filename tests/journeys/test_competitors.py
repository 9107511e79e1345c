"""A store names whom it competes with, and programs read what is known of them by a key."""

import asyncio
import csv
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, cast

import anyio
import dns.message
import dns.rcode
import dns.rrset
import httpx
import pytest

from tests.http.people import Clock
from tests.journeys.conftest import Seller
from tests.journeys.test_scans import DOMAIN, clock, count, live, scanned, shop, web
from tests.timing import until
from tolsey.actors.storefront.messages import (
    AwaitScan,
    DiscoverStorefront,
    SuppressStorefront,
    storefront,
)
from tolsey.sandbox.storefronts import Storefront
from tolsey.service import Running
from tolsey.settings import Settings
from tolsey.storage.commerce.connections import shop_key_of

__all__ = ["clock", "live", "shop", "web"]

API = "/api/intelligence"
SOLD = """
INSERT INTO commerce_orders (store_id, order_id, updated_at, name, currency, total_minor, current_total_minor,
    financial_status, test, source_name, metadata, processed_at, created_at_platform, parts)
SELECT $1, n, $2, '#' || n, 'USD', 4000, 4000, 'paid', false, 'web', '{}', $2, $2,
    '{"discounts": [], "totalDiscounts": "0.00", "shipping": [], "lines": [{"id": 1, "productId": 7, "variantId": 8,
      "title": "Kettle", "quantity": 3, "currentQuantity": 3, "price": "13.30", "discount": "0.00"}]}'
FROM generate_series(900001, 900010) n
"""
"""Thirty of one product, for 400.00."""
KINDS = {"observed", "detected", "inferred", "estimated", "unavailable"}


async def on_plan(live: Running, plan: str) -> None:
    await live.service.database.execute("UPDATE organizations SET plan = $1", plan)


@pytest.fixture
async def key(seller: Seller) -> dict[str, str]:
    body = {
        "organizationId": seller.organization_id,
        "scopes": ["intelligence:read", "intelligence:write"],
    }
    answer = await seller.post("/api/account/api-keys", **body)
    return {"Authorization": f"Bearer {answer.json()['value']}"}


def of(seller: Seller) -> str:
    return f"/api/stores/{seller.store_id}/competitors"


async def with_orders(live: Running, seller: Seller, at: datetime) -> None:
    """Connect the seller's store to its shop, and have thirty of one product sold there."""
    assert (await seller.connect()).status_code == 200
    await until(lambda: count(live, "store_shops"))
    database = live.service.database
    await database.execute(SOLD, await shop_key_of(database, seller.store_id), at)


async def read(
    browser: httpx.AsyncClient, key: dict[str, str], path: str, **params: Any
) -> dict[str, Any]:
    answer = await browser.get(API + path, headers=key, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_store_names_competitors_as_many_as_its_plan_lets_it(
    seller: Seller, live: Running
) -> None:
    added = await seller.post(of(seller), domain="https://www.Shop.Example/collections")
    assert added.status_code == 201, added.text
    assert added.json()["domain"] == DOMAIN
    assert added.json()["storefront"]["state"] == "discovered"
    again = await seller.post(of(seller), domain=DOMAIN)
    assert (again.status_code, again.json()["addedAt"]) == (200, added.json()["addedAt"])
    for n in range(4):
        assert (await seller.post(of(seller), domain=f"other{n}.example")).status_code == 201
    refused = await seller.post(of(seller), domain="one-more.example")
    assert (refused.status_code, refused.json()["plan"]) == (402, "pro")
    bad = await seller.post(of(seller), domain="127.0.0.1")
    assert (bad.status_code, bad.json()["code"]) == (422, "invalid_domain")

    listed = (await seller.browser.get(of(seller), params={"limit": 3})).json()
    rest = (
        await seller.browser.get(of(seller), params={"limit": 3, "cursor": listed["nextCursor"]})
    ).json()
    assert {one["domain"] for one in listed["items"] + rest["items"]} == {
        DOMAIN,
        *(f"other{n}.example" for n in range(4)),
    }
    assert rest["nextCursor"] is None
    gone = await seller.browser.delete(f"{of(seller)}/{DOMAIN}")
    assert gone.status_code == 204
    assert (await seller.browser.delete(f"{of(seller)}/{DOMAIN}")).status_code == 404
    assert (await seller.post(of(seller), domain="one-more.example")).status_code == 201


async def test_a_program_reads_what_is_known_of_a_shop_and_how_it_is_known(
    browser: httpx.AsyncClient,
    seller: Seller,
    key: dict[str, str],
    live: Running,
    operator: httpx.AsyncClient,
    *,
    shop: Storefront,
    clock: Clock,
) -> None:
    await on_plan(live, "max_20x")
    missing = await browser.get(f"{API}/stores/{DOMAIN}", headers=key)
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    await seller.post(of(seller), domain=DOMAIN)
    await scanned(operator, persist=True)
    clock.advance(timedelta(days=1))
    shop.products[0]["variants"][0]["inventory_quantity"] = 90
    shop.products[1]["variants"][0]["price"] = "25.00"
    await scanned(operator, persist=True)

    known = await read(browser, key, f"/stores/{DOMAIN}")
    assert known["state"] == "active"
    assert {one["provenance"] for one in known["fields"].values()} <= KINDS
    assert all(one["source"] for one in known["fields"].values())
    assert known["fields"]["monthly_visits"]["source"] == "Set TRAFFIC_API_KEY to read this."
    assert known["diagnosis"]["ads"]["env"] == "ADS_API_KEY"

    products = await read(browser, key, f"/stores/{DOMAIN}/products", limit=2)
    assert [one["id"] for one in products["items"]] == [3, 2]
    assert products["items"][1]["lowestPrice"] == {"amount": 2500, "currency": "USD"}
    more = await read(
        browser, key, f"/stores/{DOMAIN}/products", limit=2, cursor=products["nextCursor"]
    )
    assert [(one["id"], one["quantity"]) for one in more["items"]] == [(1, 90)]

    velocity = (await read(browser, key, f"/stores/{DOMAIN}/velocity"))["items"]
    told = {one["productId"]: one for one in velocity}
    assert (told[1]["value"], told[1]["n"], told[1]["provenance"]) == (10.0, 1, "observed")
    assert told[1]["low"] < 10 < told[1]["high"]
    assert (told[2]["value"], told[2]["low"]) == (0.0, 0.0)

    snapshots = (await read(browser, key, f"/stores/{DOMAIN}/snapshots"))["items"]
    assert [(one["changed"], one["productCount"]) for one in snapshots] == [(2, 3), (6, 3)]
    last, first = snapshots
    assert (first["unitsInStock"], first["velocity"]) == (300, None)
    assert (last["unitsInStock"], last["velocity"]) == (290, 10.0)
    assert last["velocityLow"] < 10 < last["velocityHigh"]
    assert last["medianPrice"] == {"amount": 2000, "currency": "USD"}
    since = (clock() - timedelta(hours=1)).isoformat()
    changes = (await read(browser, key, "/changes", since=since))["items"]
    assert {(one["kind"], one["before"], one["after"]) for one in changes} == {
        ("quantity", "100", "90"),
        ("price", "20.00", "25.00"),
    }
    first = await read(browser, key, "/changes", since=since, limit=1)
    second = await read(browser, key, "/changes", since=since, limit=1, cursor=first["nextCursor"])
    assert first["items"] + second["items"] == changes

    made_with = (await read(browser, key, f"/stores/{DOMAIN}/technologies"))["items"]
    assert [one["name"] for one in made_with] == ["Shopify", "Klaviyo", "Judge.me"]
    compared = (await read(browser, key, "/compare", domains=f"{DOMAIN},unheard.example"))["items"]
    assert [(one["domain"], one["state"]) for one in compared] == [
        (DOMAIN, "active"),
        ("unheard.example", None),
    ]
    assert compared[0]["highlights"]["best_seller_velocity"]["value"] == 10.0
    crowd = ",".join(f"shop{n}.example" for n in range(6))
    answer = await browser.get(f"{API}/compare", headers=key, params={"domains": crowd})
    assert (answer.status_code, answer.json()["code"]) == (422, "too_many_domains")
    long = await browser.get(f"{API}/compare", headers=key, params={"domains": "x" * 1281})
    assert (long.status_code, long.json()["code"]) == (422, "invalid_request")

    for asked, matches in (
        ({"platform": "Shopify", "country": "BE", "category": "Thing", "minVelocity": 9}, 1),
        ({"minVelocity": 11}, 0),
        ({"country": "NL"}, 0),
    ):
        assert len((await read(browser, key, "/stores", **asked))["items"]) == matches, asked


async def test_a_program_asks_for_scans_by_its_plan_and_sees_what_is_used(
    browser: httpx.AsyncClient, key: dict[str, str], live: Running
) -> None:
    asked = await browser.post(f"{API}/scans", headers=key, json={"domain": DOMAIN})
    assert asked.status_code == 202, asked.text
    scan_id = asked.json()["id"]
    with anyio.fail_after(60):
        # Who asks again and again how far it is uses up the plan's calls of a minute.
        await live.service.runtime.ask(storefront(DOMAIN), AwaitScan(scan_id=scan_id))
    found = await read(browser, key, f"/scans/{scan_id}")
    assert (found["state"], found["report"]["persisted"]) == ("done", True)
    usage = await read(browser, key, "/usage")
    assert {one["name"]: one["used"] for one in usage["windows"]}["scans-day"] == 1
    await on_plan(live, "free")
    again = await browser.post(f"{API}/scans", headers=key, json={"domain": DOMAIN})
    assert (again.status_code, again.json()["violated-policies"]) == (429, ["scans-day"])
    other = await browser.get(f"{API}/scans/scan_1", headers=key)
    assert other.status_code == 404


async def test_a_shop_that_is_left_alone_is_named_by_nobody_and_scanned_for_nobody(
    browser: httpx.AsyncClient,
    seller: Seller,
    key: dict[str, str],
    live: Running,
    *,
    clock: Clock,
    shop: Storefront,
) -> None:
    suppress = SuppressStorefront(reason="asked", source="owner", at=clock())
    await live.service.runtime.ask(storefront(DOMAIN), suppress)
    refused = await seller.post(of(seller), domain=DOMAIN)
    assert (refused.status_code, refused.json()["code"]) == (409, "suppressed")
    scan = await browser.post(f"{API}/scans", headers=key, json={"domain": DOMAIN})
    assert (scan.status_code, scan.json()["code"]) == (409, "suppressed")
    assert shop.asked == []
    assert (await browser.get(f"{API}/stores/{DOMAIN}", headers=key)).status_code == 404


async def test_the_pages_of_competitors_show_figures_with_their_intervals_and_what_is_not_known(
    seller: Seller,
    live: Running,
    operator: httpx.AsyncClient,
    *,
    shop: Storefront,
    clock: Clock,
) -> None:
    await on_plan(live, "max_20x")
    shop.products[2]["title"] = '=HYPERLINK("http://evil.example","A, kettle")'
    path, web = f"/stores/{seller.store_id}/competitors", seller.browser
    assert "None yet" in (await web.get(path)).text
    wrong = await web.post(path, data={"domain": "127.0.0.1"})
    assert (wrong.status_code, "not a valid domain" in wrong.text) == (422, True)
    named = await web.post(path, data={"domain": DOMAIN})
    assert (named.status_code, named.headers["location"]) == (303, f"{path}?done=added")
    await web.post(path, data={"domain": "other.example"})
    assert "Waits for its first scan" in (await web.get(f"{path}/{DOMAIN}")).text
    await scanned(operator, persist=True)
    clock.advance(timedelta(days=1))
    shop.products[0]["variants"][0]["inventory_quantity"] = 90
    await scanned(operator, persist=True)

    one = (await web.get(f"{path}/{DOMAIN}")).text
    assert "Stock 100 → 90" in one
    assert "Set TRAFFIC_API_KEY to read this." in one
    assert one.count("<svg viewBox") >= 3
    assert "10.0" in one
    api = f"/api{path}/{DOMAIN}/download"
    table = (await web.get(f"{api}.csv", params={"of": "products"})).text.splitlines()
    assert table[0].startswith("product_id,title,handle")
    assert len(table) == 4
    (of_formula,) = [row for row in csv.reader(table) if row[0] == "3"]
    assert of_formula[1] == """'=HYPERLINK("http://evil.example","A, kettle")"""
    (moved,) = (await web.get(f"{api}.json")).json()["items"]
    assert (moved["kind"], moved["before"], moved["after"]) == ("quantity", "100", "90")
    assert len((await web.get(f"{api}.json", params={"of": "snapshots"})).json()["items"]) == 2
    assert (await web.get(f"/api{path}/elsewhere.example/download.csv")).status_code == 404
    compared = await web.get(f"{path}/compare", params={"domain": [DOMAIN, "other.example"]})
    assert compared.status_code == 200, compared.text
    assert f"Sold a day, best seller: {DOMAIN} 10.0, " in compared.text
    assert "A store, you" not in compared.text  # it has no shop yet
    await with_orders(live, seller, clock() - timedelta(days=2))
    beside = (await web.get(f"{path}/compare", params={"domain": [DOMAIN]})).text
    assert f"Sold a day, best seller: A store, you 1.0; {DOMAIN} 10.0, " in beside
    assert beside.count('class="dot own"') == 1
    row = beside[beside.index('<td data-label="Shop"><b><bdi>A store, you') :]
    assert all(
        f">{one}<" in row[: row.index("</tr>")]
        for one in ("1.0", "exact", "your orders", "USD 400.00")
    )
    by_price = {"domain": [DOMAIN], "figure": "median_price"}
    assert "USD 20.00" in (await web.get(f"{path}/compare", params=by_price)).text
    foreign = await web.get(f"{path}/compare", params={"domain": "elsewhere.example"})
    assert foreign.status_code == 404
    again = await web.post(f"{path}/{DOMAIN}/scan")
    assert (again.status_code, again.headers["location"]) == (303, f"{path}/{DOMAIN}?done=asked")
    await on_plan(live, "free")
    refused = await web.post(f"{path}/{DOMAIN}/scan")
    assert refused.status_code == 429
    gone = await web.post(f"{path}/{DOMAIN}/remove")
    assert (gone.status_code, (await web.get(f"{path}/{DOMAIN}")).status_code) == (303, 404)


class Names(asyncio.DatagramProtocol):
    """The DNS as its clients see it: TXT records by their names."""

    def __init__(self) -> None:
        self.texts = dict[str, list[str]]()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        asked = dns.message.from_wire(data)
        name = asked.question[0].name
        answer = dns.message.make_response(asked)
        texts = self.texts.get(name.to_text(omit_final_dot=True))
        if texts:
            answer.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", *texts))
        else:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        self.transport.sendto(answer.to_wire(), addr)


@pytest.fixture
async def names() -> AsyncIterator[Names]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(Names, local_addr=("127.0.0.1", 0))
    yield protocol
    transport.close()


@pytest.fixture
def settings(settings: Settings, names: Names, web: str) -> Settings:
    port = names.transport.get_extra_info("sockname")[1]
    return settings.model_copy(
        update={
            "storefront_url": web,
            "scan_pace_seconds": 0.0,
            "dns_url": f"dns://127.0.0.1:{port}",
        }
    )


async def test_an_owner_proves_a_domain_by_a_record_of_its_dns(
    browser: httpx.AsyncClient, live: Running, names: Names, clock: Clock
) -> None:
    heard = DiscoverStorefront(source="test", at=clock())
    await live.service.runtime.ask(storefront(DOMAIN), heard)
    wish = {"domain": DOMAIN}
    told = await browser.post("/api/public/suppressions", json=wish)
    assert (told.status_code, told.json()["record"]) == (202, f"_tolsey-opt-out.{DOMAIN}")
    content = told.json()["content"]
    names.texts[DOMAIN] = [f'"{content}"']  # at the domain itself it is somebody else's text
    names.texts[told.json()["record"]] = ['"v=spf1 -all"']
    assert (await browser.post("/api/public/suppressions", json=wish)).status_code == 202
    # Long texts come in pieces, and a name may have several.
    names.texts[told.json()["record"]].append(f'"{content[:9]}" "{content[9:]}"')
    done = await browser.post("/api/public/suppressions", json=wish)
    assert (done.status_code, done.json()["state"]) == (200, "suppressed")

    async def is_done() -> bool:
        return not await count(live, "storefronts")

    await until(is_done)


async def test_an_owner_proves_a_domain_by_a_file_and_is_left_alone(
    browser: httpx.AsyncClient, operator: httpx.AsyncClient, live: Running, shop: Storefront
) -> None:
    await scanned(operator, persist=True)
    shop.robots = (
        "User-agent: *\nDisallow: /"  # which is about crawlers, not about their owner's word
    )
    wish = {"domain": f"www.{DOMAIN}"}
    told = await browser.post("/api/public/suppressions", json=wish)
    assert (told.status_code, told.json()["state"]) == (202, "unproven")
    assert told.json()["file"] == f"https://{DOMAIN}/.well-known/tolsey-opt-out.txt"
    path = "/.well-known/tolsey-opt-out.txt"
    another = await browser.post("/api/public/suppressions", json={"domain": "other.example"})
    shop.files[path] = another.json()["content"]  # what somebody else was told proves nothing
    assert (await browser.post("/api/public/suppressions", json=wish)).status_code == 202
    shop.files[path] = told.json()["content"] + "\n"
    done = await browser.post("/api/public/suppressions", json=wish)
    assert (done.status_code, done.json()["state"]) == (200, "suppressed")

    async def is_done() -> bool:
        return not await count(live, "storefronts")

    await until(is_done)
    refused = await operator.post(
        "/api/admin/intelligence/scan", json={"domain": DOMAIN, "persist": False}
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "suppressed")
