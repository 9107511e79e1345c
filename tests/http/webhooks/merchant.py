"""A merchant's stores and shops, as the receiver's tests see them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import orjson

from tolsey.actors.store.connection.messages import Connect
from tolsey.actors.store.messages import store
from tolsey.http.privacy.opening import PrivacyRequests
from tolsey.http.webhooks.commerce import CommerceEvents
from tolsey.http.webhooks.directory import ShopDirectory
from tolsey.http.webhooks.signatures import sign
from tolsey.runtime.registry import Runtime
from tolsey.storage.commerce import connections
from tolsey.storage.commerce.stores import seal_salt
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.connection import ShopProfile
from tolsey.storage.sealing.sealed import Vault

SHOP = "snowdevil.myshopify.com"
SECRET = "shpss_test"
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


@dataclass
class Answered:
    """What the receiver answered."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Merchant:
    """A store's way into the tests: it connects to shops and its shops deliver."""

    vault: Vault
    database: Database
    runtime: Runtime
    directory: ShopDirectory
    app: CommerceEvents
    requests: PrivacyRequests
    ordinals: "count[int]" = field(default_factory=lambda: count(1))

    async def connect(
        self, store_id: str = "store_1", shop: str = SHOP, secret: str = SECRET, at: datetime = NOON
    ) -> None:
        await self.database.execute(
            "INSERT INTO organizations (id, name) VALUES ('org_1', 'o') ON CONFLICT DO NOTHING"
        )
        await self.database.execute(
            "INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)"
            " VALUES ($1, 'org_1', 's', $2, now()) ON CONFLICT DO NOTHING",
            store_id,
            seal_salt(self.vault, store_id, store_id.ljust(32).encode()),
        )
        await self.runtime.ask(
            store(store_id),
            Connect(
                at=at,
                user_id="usr_1",
                shop=ShopProfile(store_id=store_id, shop_domain=shop, facts_at=at, currency="USD"),
                client_id="app",
                access_token=connections.seal_token(self.vault, store_id, "shpat_1"),
                client_secret=connections.seal_secret(self.vault, store_id, secret),
                scopes=("read_orders",),
                expires_at=NOON + timedelta(days=1),
            ),
        )
        self.directory.forget(shop)

    async def deliver(
        self,
        topic: str,
        body: object,
        *,
        id: str | None = None,
        secret: str = SECRET,
        shop: str = SHOP,
        **headers: str,
    ) -> Answered:
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        named = {
            "x-shopify-topic": topic,
            "x-shopify-hmac-sha256": sign(raw, secret),
            "x-shopify-shop-domain": shop,
            "x-shopify-webhook-id": id or f"delivery-{next(self.ordinals)}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return await call(self.app, raw, [(k.encode(), v.encode()) for k, v in named.items()])


async def call(
    app: Callable[..., Awaitable[None]],
    body: bytes | Sequence[bytes | None],
    headers: Sequence[tuple[bytes, bytes]],
    method: str = "POST",
) -> Answered:
    """Send one request; a sequence arrives in parts, and a None among them never does."""
    parts: list[bytes | None] = [body] if isinstance(body, bytes) else list(body)
    answered = Answered()

    async def receive() -> dict[str, Any]:
        part = parts.pop(0)
        if part is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(event: Any) -> None:
        if event["type"] == "http.response.start":
            answered.status = event["status"]
            answered.headers = dict(event["headers"])
        else:
            answered.body += event["body"]

    scope = {"type": "http", "method": method, "path": "/", "headers": list(headers)}
    await app(scope, receive, send)
    return answered
