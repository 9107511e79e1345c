"""A seller at her desk, and a buyer who checks."""

import base64
import json
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import anyio
import anyio.lowlevel
import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.orders import Line, Order, Transaction, fee_of

SELL = "/api/sell/listings"
PUBLIC = "/api/public/listings"
SHOP = "corner.myshopify.com"
SECRET = "shpss_corner_secret"
CREDENTIALS = {"shopDomain": SHOP, "clientId": "corner-app", "clientSecret": SECRET}
DAY = timedelta(days=1)
NUMBERS = count(7_205_759_403_792_794_000)
VERIFICATION = {
    *("state", "source", "definition", "currency", "mrr", "revenue30d", "annualised"),
    *("windowStart", "windowEnd", "syncedAt", "flags", "arr", "mrrAtRisk", "subscribers"),
    *("visibility", "ranges"),
    *(
        "refundsOfEarlierOrders30d",
        "taxIncluded",
        "meteredItems",
        "otherCurrencies",
        "corroboration",
    ),
}


def sell_on(platform: Platform, days_ago: int, price: int) -> None:
    at = platform.now() - days_ago * DAY
    paid = Transaction(
        *(next(NUMBERS), "SALE", "SUCCESS", price, "shopify_payments", at), fee=fee_of(price)
    )
    sold = Order(
        id=next(NUMBERS),
        number=1001,
        currency="USD",
        created_at=at,
        processed_at=at,
        updated_at=at,
        lines=[Line(next(NUMBERS), "A thing", price)],
        transactions=[paid],
        checkout_token="c0ffee",
    )
    platform.shop(SHOP).orders[sold.id] = sold


@dataclass
class Seller:
    """Ann at her desk, with a listing."""

    browser: httpx.AsyncClient
    organization_id: str
    made: dict[str, Any]
    path: str = field(init=False)

    def __post_init__(self) -> None:
        self.path = f"{SELL}/{self.made['id']}"

    async def post(self, command: str, body: Any = None) -> httpx.Response:
        return await self.browser.post(f"{self.path}/{command}", json=body)

    async def read(self) -> dict[str, Any]:
        response = await self.browser.get(self.path)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    async def synced(self) -> dict[str, Any]:
        """Wait until no sync is under way."""
        with anyio.fail_after(240):
            found = await self.read()
            while any(each["isSyncing"] for each in found["connections"]):
                await anyio.sleep(0.01)
                found = await self.read()
        return found

    async def public(self, tail: str = "") -> httpx.Response:
        return await self.browser.get(f"{PUBLIC}/{self.made['slug']}{tail}")


async def listed(person: Any, **changed: Any) -> Seller:
    body = {
        "organizationId": person.organization_id,
        "title": "Corner <shop> & co",
        "askingPrice": {"amount": 5_000_000, "currency": "USD"},
        "domain": "www.corner.example",
        **changed,
    }
    response = await person.browser.post(SELL, json=body)
    assert response.status_code == 201, response.text
    return Seller(person.browser, person.organization_id, response.json())


def check(answer: dict[str, Any], keys: dict[str, Any]) -> None:
    """Check a verification as a buyer would, who knows nothing but the public keys."""
    rest = dict(answer)
    signature = rest.pop("signature")
    key = next(key for key in keys["keys"] if key["kid"] == signature["keyId"])
    document = {name: signature[name] for name in ("keyId", "listing", "signedAt")}
    text = json.dumps(
        {**document, "verification": rest},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    public_key = Ed25519PublicKey.from_public_bytes(unpadded(key["x"]))
    public_key.verify(unpadded(signature["value"]), text.encode())


def unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
