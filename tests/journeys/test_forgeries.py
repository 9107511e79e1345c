"""Deliveries that were never made, made twice, or made for someone else."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.journeys.conftest import (
    EVENTS,
    SECRET,
    SHOP,
    Seller,
    order_body,
    sign_up,
    signed,
)
from tests.journeys.strangers import (
    LISTINGS,
    browsing,
    deliver,
    listing_of,
    quiet,
    same,
    verify,
)
from tolsey.actors.refusals import Refusal
from tolsey.actors.store.connection.messages import UseToken
from tolsey.actors.store.messages import store
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.service import Running
from tolsey.storage.selling import listings

OTHER = "other.myshopify.com"
OTHER_SECRET = "shpss_ffffffffffffffffffffffffffffffff"


@pytest.fixture(autouse=True)
def nothing_sold_before(platform: Platform) -> None:
    """Let the shop have no earlier orders, which would be imported: what is kept here was delivered."""
    platform.shop(SHOP).orders.clear()


@pytest.fixture
async def other(live: Running, platform: Platform) -> AsyncIterator[Seller]:
    """Another tenant, with a shop of their own."""
    platform.add_shop(ShopSpec(domain=OTHER, client_id="client-1", client_secret=OTHER_SECRET))
    async with browsing(live) as client:
        yield await sign_up(client, "other@example.com")


async def status_of(seller: Seller) -> str:
    path = f"/api/stores/{seller.store_id}/integrations/commerce"
    return str((await seller.browser.get(path)).json()["status"])


DELIVERED = "commerce_orders WHERE order_id < 1000"
"""The orders that tests deliver: those that the shop had before are imported."""


async def rows_of(live: Running, table: str) -> int:
    row = await live.service.database.fetchrow(f"SELECT count(*) AS n FROM {table}")  # noqa: S608 - our own names
    assert row is not None
    return int(row["n"])


async def test_nothing_that_is_forged_is_taken(
    live: Running, browser: httpx.AsyncClient, seller: Seller, other: Seller
) -> None:
    await seller.connect()
    await other.connect(OTHER, OTHER_SECRET)
    body = order_body(1)
    good = signed(body)
    wrong = base64.b64encode(b"\x00" * 32).decode()
    digest = "X-Shopify-Hmac-Sha256"
    forged: dict[str, tuple[bytes, dict[str, str]]] = {
        "unsigned": (body, {k: v for k, v in good.items() if k != digest}),
        "an empty signature": (body, {**good, digest: ""}),
        "a wrong one": (body, {**good, digest: wrong}),
        "hex": (body, {**good, digest: base64.b64decode(good[digest]).hex()}),
        "in another spelling": (body, {**good, digest: good[digest].rstrip("=")}),
        "with blanks inside": (body, {**good, digest: f"{good[digest][:20]} {good[digest][20:]}"}),
        "twice": (body, {**good, digest: f"{good[digest]},{good[digest]}"}),
        "of another body": (order_body(2), good),
        "of the body and a newline": (body + b"\n", good),
        "with an empty secret": (body, signed(body, secret="")),
        "with the client id": (body, signed(body, secret="client-1")),
        "with another shop's secret": (body, signed(body, secret=OTHER_SECRET)),
        "for another shop": (body, signed(body, shop=OTHER)),
        "for a shop with a dot": (body, signed(body, shop=SHOP + ".")),
        "for a shop in a path": (body, signed(body, shop=f"{SHOP}/x")),
        "for two shops": (body, signed(body, shop=f"{SHOP}, {OTHER}")),
        "for no shop": (body, {k: v for k, v in good.items() if "Shop-Domain" not in k}),
    }
    for name, (sent, headers) in forged.items():
        answer = await deliver(browser, sent, headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "invalid_signature"), name
    assert await rows_of(live, "commerce_webhook_events") == 0
    assert await rows_of(live, DELIVERED) == 0


async def test_header_families_are_never_mixed(
    live: Running, browser: httpx.AsyncClient, seller: Seller, other: Seller
) -> None:
    await seller.connect()
    await other.connect(OTHER, OTHER_SECRET)
    body = order_body(1)
    ours, theirs = signed(body), signed(body, shop=OTHER, secret=OTHER_SECRET)

    def family(headers: dict[str, str], prefix: str) -> dict[str, str]:
        return {name.replace("X-Shopify-", prefix): value for name, value in headers.items()}

    mixed: dict[str, tuple[Any, int]] = {
        "two shops": ({**ours, "X-Commerce-Shop-Domain": OTHER}, 400),
        "two signatures": ({**ours, **family(theirs, "X-Commerce-")}, 400),
        "two signatures again": ({**ours, **family(theirs, "Shopify-")}, 400),
        "two lines of a topic": ([*ours.items(), ("X-Shopify-Topic", "app/uninstalled")], 400),
        "two lines of a shop": ([*ours.items(), ("X-Shopify-Shop-Domain", OTHER)], 400),
        "the shop of one, the signature of another": (
            {
                "X-Commerce-Shop-Domain": SHOP,
                "Shopify-Topic": "app/uninstalled",
                "X-Shopify-Hmac-Sha256": ours["X-Shopify-Hmac-Sha256"],
            },
            401,
        ),
        "a topic of a family that did not sign": (
            {**{k: v for k, v in ours.items() if "Topic" not in k}, "X-Commerce-Topic": "x/y"},
            400,
        ),
    }
    for name, (headers, status) in mixed.items():
        answer = await deliver(browser, body, headers)
        assert answer.status_code == status, f"{name}: {answer.text}"
    assert await rows_of(live, "commerce_webhook_events") == 0

    # each family alone is as good as the others, and an unsigned one beside it is not heard
    for prefix in ("X-Commerce-", "Shopify-", "x-shopify-"):
        headers = family(signed(order_body(7)), prefix)
        beside = "Shopify-Topic" if prefix != "Shopify-" else "X-Commerce-Topic"
        answer = await deliver(browser, order_body(7), {**headers, beside: "app/uninstalled"})
        assert answer.json() == {"status": "accepted"}, prefix
    assert await status_of(seller) == "active"


async def test_hundreds_of_replays_have_one_effect(
    live: Running, browser: httpx.AsyncClient, seller: Seller
) -> None:
    await seller.connect()
    body = order_body(1)
    headers = signed(body)
    answers: list[str] = []
    while len(answers) < 200:
        batch = await asyncio.gather(*(deliver(browser, body, headers) for _ in range(100)))
        # A machine that is busy answers 503 in time, and the sender repeats.
        answers += [answer.json()["status"] for answer in batch if answer.status_code != 503]
    # One that a busy machine kept for later was accepted, too: whether it is a replay is found out then.
    assert "accepted" in answers
    assert set(answers) <= {"accepted", "duplicate"}
    await quiet(live)
    assert (await deliver(browser, body, headers)).json() == {"status": "duplicate"}
    assert await rows_of(live, "commerce_webhook_events") == 1
    assert await rows_of(live, DELIVERED) == 1


async def test_an_older_body_replayed_under_a_new_id_changes_nothing(
    live: Running, browser: httpx.AsyncClient, seller: Seller
) -> None:
    await seller.connect()
    old = order_body(1, financial_status="pending", updated_at="2026-07-01T10:00:00Z")
    new = order_body(1, financial_status="refunded", updated_at="2026-07-02T10:00:00Z")
    for body in (old, new, old):
        assert (await deliver(browser, body, signed(body))).json() == {"status": "accepted"}
    row = await live.service.database.fetchrow(
        "SELECT financial_status FROM commerce_orders WHERE order_id < 1000"
    )
    assert row is not None
    assert row["financial_status"] == "refunded"


async def test_an_unknown_shop_a_wrong_secret_and_a_left_shop_are_one_answer(
    live: Running, browser: httpx.AsyncClient, seller: Seller, other: Seller
) -> None:
    await seller.connect()
    await other.connect(OTHER, OTHER_SECRET)
    path = f"/api/integrations/commerce/custom-app?storeId={other.store_id}"
    assert (await other.browser.delete(path)).status_code == 200
    await quiet(live)
    body = order_body(1)
    same_id = {"X-Request-Id": "the-same"}
    answers = [
        await deliver(browser, body, {**headers, **same_id})
        for headers in (
            signed(body, secret="wrong"),
            signed(body, shop="nobody.myshopify.com"),
            signed(body, shop=OTHER, secret=OTHER_SECRET),
            signed(body, shop="127.0.0.1"),
            signed(body, shop="no such thing"),
            signed(body, topic="shop/redact", shop="nobody.myshopify.com"),
        )
    ]
    assert answers[0].status_code == 401
    assert all(same(answers[0], answer) for answer in answers)
    assert not [name for name in answers[0].headers if name.lower() == "set-cookie"]


async def test_made_up_shops_neither_fill_the_directory_nor_push_a_real_one_out(
    live: Running, browser: httpx.AsyncClient, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seller.connect()
    receiver: Any = live.app.receivers[EVENTS]  # type: ignore[attr-defined]
    directory = receiver._directory
    monkeypatch.setattr(directory, "_most", 20)
    await deliver(browser, order_body(1), signed(order_body(1)))
    body = order_body(2)
    for n in range(100):
        headers = signed(body, shop=f"made-up-{n}.myshopify.com")
        assert (await deliver(browser, body, headers)).status_code == 401
    for n in range(100):
        assert (await deliver(browser, body, signed(body, shop=f"made up {n}"))).status_code == 401
    assert len(directory._unknown) <= 20
    assert list(directory._known) == [SHOP]
    assert not directory._reads


@pytest.mark.parametrize("topic", ["shop/redact", "customers/redact", "customers/data_request"])
async def test_an_erasure_on_the_events_route_erases_nothing_at_once(
    live: Running, browser: httpx.AsyncClient, seller: Seller, topic: str
) -> None:
    await seller.connect()
    order = order_body(1)
    await deliver(browser, order, signed(order))
    body = json.dumps(
        {
            "shop_id": 9,
            "shop_domain": SHOP,
            "customer": {"id": 7, "email": "buyer@example.com", "phone": "555-0199"},
            "orders_to_redact": [1],
        }
    ).encode()
    answer = await deliver(browser, body, signed(body, topic))
    assert answer.status_code == 200
    await quiet(live)
    assert await status_of(seller) == "active"
    row = await live.service.database.fetchrow(
        "SELECT deleted_at, customer_hash FROM commerce_orders WHERE order_id < 1000"
    )
    assert row is not None
    assert row["deleted_at"] is None
    assert row["customer_hash"].startswith("s1:")
    kept = await live.service.database.fetch("SELECT metadata::text AS said FROM audit_log")
    assert not [row for row in kept if "buyer@" in row["said"] or "555-0199" in row["said"]]


async def test_a_store_repointed_to_another_shop_hears_the_new_one_only(
    live: Running, browser: httpx.AsyncClient, seller: Seller, other: Seller
) -> None:
    await seller.connect()
    body = order_body(1)
    assert (await deliver(browser, body, signed(body))).status_code == 200
    assert (await seller.connect(OTHER, OTHER_SECRET)).status_code == 200
    await quiet(live)

    farewell = b'{"id": 9, "myshopify_domain": null}'
    late = await deliver(browser, farewell, signed(farewell, "app/uninstalled"))
    assert late.status_code == 401  # no store is connected to that shop any more
    new = signed(farewell, "app/uninstalled", shop=SHOP, secret=OTHER_SECRET)
    assert (await deliver(browser, farewell, new)).status_code == 401
    assert await status_of(seller) == "active"
    order = order_body(5)
    taken = await deliver(browser, order, signed(order, shop=OTHER, secret=OTHER_SECRET))
    assert taken.json() == {"status": "accepted"}


async def test_of_two_stores_of_a_shop_each_hears_what_its_own_secret_signed(
    live: Running, browser: httpx.AsyncClient, seller: Seller, other: Seller, platform: Platform
) -> None:
    second = "shpss_eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
    await seller.connect()
    platform.rotate_secret(SHOP, second, keep_old=True)
    assert (await other.connect(SHOP, second)).status_code == 200
    await quiet(live)
    one, two = order_body(1), order_body(2)
    await deliver(browser, one, signed(one))
    await deliver(browser, two, signed(two, secret=second))
    rows = await live.service.database.fetch(
        "SELECT store_id, order_id FROM commerce_orders WHERE order_id < 1000"
    )
    assert {(row["store_id"], row["order_id"]) for row in rows} == {
        (seller.store_id, 1),
        (other.store_id, 2),
    }
    # one tenant's farewell is not the other's
    farewell = b'{"id": 9, "myshopify_domain": null}'
    await deliver(browser, farewell, signed(farewell, "app/uninstalled", secret=second))
    assert (await status_of(seller), await status_of(other)) == ("active", "revoked")


async def test_of_two_stores_with_one_app_both_hear_everything(
    live: Running, browser: httpx.AsyncClient, seller: Seller, other: Seller
) -> None:
    await seller.connect()
    await other.connect(SHOP, SECRET)
    await quiet(live)
    order = order_body(1)
    headers = signed(order)
    first = await deliver(browser, order, headers)
    again = await deliver(browser, order, headers)
    assert (first.json()["status"], again.json()["status"]) == ("accepted", "duplicate")
    assert await rows_of(live, DELIVERED) == 2
    hashes = await live.service.database.fetch(
        "SELECT DISTINCT customer_hash FROM commerce_orders WHERE order_id < 1000"
    )
    assert len(hashes) == 2  # one buyer, a name per store
    farewell = b'{"id": 9, "myshopify_domain": null}'
    await deliver(browser, farewell, signed(farewell, "app/uninstalled"))
    assert (await status_of(seller), await status_of(other)) == ("revoked", "revoked")


async def test_no_credential_leaves_the_service_after_the_answer_to_an_uninstall(
    live: Running, browser: httpx.AsyncClient, seller: Seller, platform: Platform
) -> None:
    """The platform of this test goes on granting tokens, so that every call would be seen."""
    await seller.connect()
    listing = await listing_of(seller)
    assert (await verify(seller, listing, SECRET)).status_code == 200
    await quiet(live)
    edited = json.dumps({"order_edit": {"id": 1, "order_id": 1}}).encode()
    farewell = b'{"id": 9, "myshopify_domain": null}'
    headers = signed(farewell, "app/uninstalled")
    answer = await deliver(browser, farewell, headers)
    before = (platform.requests, platform.grants)
    assert answer.json() == {"status": "accepted"}

    row = await live.service.database.fetchrow(
        "SELECT status, access_token, metadata::text AS metadata FROM integration_connections"
    )
    assert row is not None
    assert (row["status"], row["access_token"]) == ("revoked", None)
    assert "Encrypted" not in row["metadata"]
    assert "uninstalledAt" in row["metadata"]
    # the listing has not heard of it yet, perhaps, and its credentials are out of reach all the same
    assert await listings.source_of(live.service.database, listing["id"]) is None
    await seller.post(f"{LISTINGS}/{listing['id']}/verify/refresh")
    assert (await deliver(browser, farewell, headers)).json() == {"status": "duplicate"}
    assert (await deliver(browser, edited, signed(edited, "orders/edited"))).status_code == 401
    with pytest.raises(Refusal, match="Connect the store again"):
        await live.service.runtime.ask(store(seller.store_id), UseToken(datetime.now(UTC)))
    await quiet(live)
    await seller.post(f"{LISTINGS}/{listing['id']}/verify/refresh")
    await quiet(live)
    assert (platform.requests, platform.grants) == before
    shown = (await seller.browser.get(f"{LISTINGS}/{listing['id']}")).json()
    assert shown["verification"]["state"] == "revoked"
    sources = await live.service.database.fetch("SELECT sealed_secret FROM revenue_sources")
    assert [row["sealed_secret"] for row in sources] == [None]


async def test_a_late_farewell_does_not_revoke_what_was_connected_since(
    live: Running, browser: httpx.AsyncClient, seller: Seller
) -> None:
    happened = (datetime.now(UTC) - timedelta(minutes=6)).isoformat()
    await seller.connect()
    farewell = b'{"id": 9, "myshopify_domain": null}'
    for delivery_id in ("late-1", "late-2"):
        headers = signed(
            farewell,
            "app/uninstalled",
            delivery_id=delivery_id,
            **{"X-Shopify-Triggered-At": happened},
        )
        assert (await deliver(browser, farewell, headers)).status_code == 200
    await quiet(live)
    assert await status_of(seller) == "active"
