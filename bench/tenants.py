"""A service over a world that grows, and the tenants who ask of it: `bench/growth.py`."""

import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx

from bench import made, measure, orders, surface, world
from bench.webhooks import CLIENT_ID
from bench.world import Tenant
from tolsey.http.oauth.scopes import SCOPES
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.storage.sealing.sealed import fingerprint

PASSWORD: Final = "correct horse battery staple"  # noqa: S105 - of accounts that end with the bench

LEFT_OPEN: Final = """
WITH reset AS (
    INSERT INTO password_resets (token_hash, user_id, created_at, expires_at)
    VALUES ($5, $2, now(), $8)
), invitation AS (
    INSERT INTO invitations (id, token_hash, organization_id, email, role, invited_by, created_at,
        expires_at)
    VALUES ('inv_' || $1, $6, $3, 'invited.' || $1 || '@example.com', 'member', $2, now(), $8)
), file AS (
    INSERT INTO files (id, organization_id, store_id, purpose, name, content_type, sha256, size,
        created_by, created_at, expires_at)
    VALUES ('file_' || $1, $3, $4, 'store_export', 'export.json', 'application/json',
        repeat('0', 64), 1, $2, now(), $8)
)
INSERT INTO oauth_requests (id_hash, client_id, client_name, redirect_uri, code_challenge, resource,
    store_id, scopes, expires_at)
VALUES ($7, 'bench', 'Bench', 'http://127.0.0.1/', '', '', $4, '{orders:read}', $8)
"""
"""What a tenant has under way, to be looked at and never ended."""


class Growing:
    """One database that grows, and the tenants who ask of it."""

    def __init__(self, url: str, redis_url: str | None, folder: Path) -> None:
        self.url = url
        self.redis_url = redis_url
        self.folder = folder
        self.port, self.platform_port = measure.free_port(), measure.free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.tenants: list[Tenant] = []
        self.administrator: Mapping[str, str] = {}
        self.delivered = 0
        self.made: Mapping[str, Mapping[str, Any]] = {}
        """What the tenants have made, as values of parameters, by the tenant's name."""
        self.orders = 0
        """How many orders the large store has."""

    @property
    def _said(self) -> Path:
        return self.folder / "world.json"

    def remember(self) -> None:
        """Write down what asks need to know of the tenants, for the next run over this world."""
        plain = ("port", "platform_port", "administrator", "delivered", "made", "orders")
        said = {name: getattr(self, name) for name in plain}
        said["tenants"] = [asdict(tenant) for tenant in self.tenants]
        self._said.write_text(json.dumps(said), encoding="utf-8")

    def recall(self) -> bool:
        """Take up what a run before wrote down; answer whether there was one."""
        if not self._said.exists():
            return False
        said = json.loads(self._said.read_text(encoding="utf-8"))
        tenants = [Tenant(**tenant) for tenant in said.pop("tenants")]
        vars(self).update(said, tenants=tenants)
        self.base = f"http://127.0.0.1:{self.port}"
        return True

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[httpx.AsyncClient]:
        """Run the service; its shops answer meanwhile."""
        env = {
            "DATABASE_URL": self.url,
            "DATA_DIR": str(self.folder),
            "BASE_URL": self.base,
            "COMMERCE_URL_TEMPLATE": f"http://127.0.0.1:{self.platform_port}/{{shop}}",
            "LOG_LEVEL": "error",
            **({"REDIS_URL": self.redis_url} if self.redis_url else {}),
        }
        log = self.folder / "service.log"
        platform = Platform(published_folder=None)
        for shop in ("small.myshopify.com", orders.SHOP):
            platform.add_shop(
                ShopSpec(domain=shop, client_id=CLIENT_ID, client_secret=orders.SECRET)
            )
        command = [sys.executable, "-m", "tolsey", "serve", "--port", str(self.port)]
        with measure.child(command, env=env, log=log) as process:
            try:
                await asyncio.to_thread(measure.await_service, self.port, process)
                async with (
                    platform.serve(port=self.platform_port),
                    httpx.AsyncClient(base_url=self.base, timeout=120) as client,
                ):
                    yield client
            except Exception:
                print(log.read_text(encoding="utf-8")[-4000:], file=sys.stderr)
                raise

    async def sign_up(self, client: httpx.AsyncClient) -> None:
        """Let the tenants in, connect their stores, and let their agents in."""
        database = await asyncpg.connect(self.url)
        try:
            for name, shop in (("large", orders.SHOP), ("small", "small.myshopify.com")):
                self.tenants.append(await self._tenant(client, database, name, shop))
            account = await self._account(client, "operator")
            self.administrator = account["headers"]
            await database.execute(
                "UPDATE organizations SET is_administrators = true WHERE id = $1", account["id"]
            )
            small = self.tenants[1]
            await world.fill_store(database, small.store_id, 0, world.SMALL_TENANT)
            await world.fill_ledger(database, small.organization_id, 4)
            self.made = await made.make(client, self.url, self.tenants)
        finally:
            await database.close()

    async def _account(self, client: httpx.AsyncClient, name: str) -> dict[str, Any]:
        client.cookies.clear()
        answer = await client.post(
            "/api/auth/signup",
            json={
                "email": f"{name}@example.com",
                "password": PASSWORD,
                "organizationName": name,
            },
            headers={"Origin": self.base},
        )
        made = answer.raise_for_status().json()
        cookie = "; ".join(f"{key}={value}" for key, value in client.cookies.items())
        client.cookies.clear()
        return {
            "id": made["organization"]["id"],
            "user": made["user"]["id"],
            "headers": {"Cookie": cookie, "Origin": self.base},
        }

    async def _post(
        self, client: httpx.AsyncClient, path: str, headers: Mapping[str, str], **body: Any
    ) -> dict[str, Any]:
        answer = await client.post(path, json=body, headers=headers)
        said: dict[str, Any] = answer.raise_for_status().json()
        return said

    async def _tenant(
        self,
        client: httpx.AsyncClient,
        database: "asyncpg.Connection[asyncpg.Record]",
        name: str,
        shop: str,
    ) -> Tenant:
        account = await self._account(client, name)
        headers, organization = account["headers"], account["id"]
        # By contract: their calls are not counted against a plan.
        await database.execute(
            "UPDATE organizations SET plan = 'custom' WHERE id = $1", organization
        )
        store = await self._post(
            client, "/api/stores", headers, organizationId=organization, name=name
        )
        store_id = store["id"]
        await self._post(
            client,
            "/api/integrations/commerce/custom-app",
            headers,
            storeId=store_id,
            shopDomain=shop,
            clientId=CLIENT_ID,
            clientSecret=orders.SECRET,
        )
        colleague = f"colleague.{name}@example.com"
        await self._post(
            client,
            f"/api/organizations/{organization}/members",
            headers,
            email=colleague,
            role="member",
        )
        mail_id = await database.fetchval(
            "SELECT id FROM outbound_mail WHERE recipient = $1", colleague
        )
        made = await self._post(
            client,
            "/api/account/api-keys",
            headers,
            organizationId=organization,
            scopes=["intelligence:read"],
        )
        token = f"bench-agent-{name}-{'x' * 30}"
        until = datetime.now(UTC) + timedelta(days=30)
        await database.execute(
            """
            WITH granted AS (
                INSERT INTO oauth_grants (id, user_id, client_id, client_name, redirect_uri,
                    organization_id, store_id, resource, scopes, created_at)
                VALUES ($1, $2, 'bench', 'Bench', '', $3, $4, $5, $6, now())
            )
            INSERT INTO oauth_tokens (token_hash, grant_id, kind, scopes, expires_at)
            VALUES ($7, $1, 'access', $6, $8)
            """,
            *(f"grant_{name}", account["user"], organization, store_id),
            *(f"{self.base}/api/mcp/v1/{store_id}", list(SCOPES), fingerprint(token), until),
        )
        tenant = Tenant(
            name=name,
            user_id=account["user"],
            organization_id=organization,
            store_id=store_id,
            shop=shop,
            headers=headers,
            token=token,
            api_key=made["value"],
            mail_id=mail_id,
        )
        await leave_open(database, tenant, until)
        return tenant

    async def grow(self, after: int) -> None:
        """Write the rows between the size there is and the next one down."""
        # A world that was left half filled is none to be asked.
        self._said.unlink(missing_ok=True)
        database = await asyncpg.connect(self.url, command_timeout=3_600)
        try:
            await world.fill(database, self.tenants[0], self.orders, after)
        finally:
            await database.close()
        self.orders = after
        self.remember()


def secret_of(tenant: Tenant, what: str) -> str:
    """Give the secret of a link that was sent to a tenant's person."""
    return f"bench-{what}-{tenant.name}-{'x' * 30}"


async def leave_open(
    connection: "asyncpg.Connection[asyncpg.Record]", tenant: Tenant, until: datetime
) -> None:
    """Write down what a tenant has under way."""
    secrets = (secret_of(tenant, what) for what in ("reset", "invitation", "consent"))
    await connection.execute(
        LEFT_OPEN,
        *(tenant.name, tenant.user_id, tenant.organization_id, tenant.store_id),
        *map(fingerprint, secrets),
        until,
    )


def values_of(tenant: Tenant, orders_there: int) -> dict[str, Any]:
    """Give what a tenant's parameters are asked with, by name, or by place and name."""
    its_own = orders_there if tenant.name == "large" else world.SMALL_TENANT
    last = world.FIRST_ORDER + max(its_own - 1, 0)
    product = world.FIRST_PRODUCT + max(its_own // 100 - 1, 0)
    # Each tenth listing has a proof, each fiftieth its badge.
    listing = max(orders_there // 10 - 1, 0) // 100 * 100
    at = datetime.now(UTC)
    return {
        "organizationId": tenant.organization_id,
        "organization_id": tenant.organization_id,
        "storeId": tenant.store_id,
        "store_id": tenant.store_id,
        "provider": "commerce",
        "slug": f"lamps-{listing}",
        "kind": "organization",
        "/api/admin/actors/{kind}/{id} id": tenant.organization_id,
        "/docs/api/{group} group": "selling",
        "/docs/api/{group}/{operation} group": "selling",
        "/docs/api/{group}/{operation} operation": "create_listing",
        "/docs/{slug} slug": "agents",
        "/password/reset": {"token": secret_of(tenant, "reset")},
        "/invitations/{token} token": secret_of(tenant, "invitation"),
        "/oauth/consent/{request_id} request_id": secret_of(tenant, "consent"),
        "/api/admin/stores/{id}/diagnosis id": tenant.store_id,
        "/admin/find": {"q": tenant.store_id},
        "q": tenant.store_id,
        "user_id": tenant.user_id,
        "mail_id": tenant.mail_id,
        "file_id": f"file_{tenant.name}",
        "recipient": f"{tenant.name}@example.com",
        "/api/admin/audit subject": {"subject": tenant.store_id},
        "/api/admin/audit actor": {"actor": tenant.user_id},
        "/api/admin/audit event": {"event": world.EVENTS[-1]},
        "/api/admin/webhooks topic": {"storeId": tenant.store_id, "topic": "orders/updated"},
        "/api/stores/{store_id}/memory/search limit": 20,
        "months": 12,
        "variables": "{}",
        "resource": f"api/mcp/v1/{tenant.store_id}",
        "owner": "nobody",
        "limit": 100,
        "days": 365,
        "shard": 7,
        "id": f"order-{last}",
        "order_id": str(last),
        "product_id": str(product),
        "inventory_item_id": "11",
        "location_id": "1",
        "threshold": 5,
        "customer": f"s1:{hashlib.sha256(b'buyer0').hexdigest()}",
        "query": "lamp brass",
        "platform_query query": "{ shop { name } }",
        "event": world.EVENTS[-1],
        "financial_status": "refunded",
        "fulfillment_status": "unfulfilled",
        "since": (at - timedelta(days=30)).isoformat(),
        "until": (at - timedelta(days=300)).isoformat(),
        "status": "draft",
        "vendor": "Vendor 7",
        "product_type": "Type 7",
        "cursor": surface.NEXT_PAGE,
    }
