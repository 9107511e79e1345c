"""What the tenants of `bench/growth.py` have made before they are asked: a deal between them, a launch, a plan of changes.

What the service makes by itself is made through its own routes, so that it reads as what people made; of what
comes over time, or from agents, the rows are written down.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import asyncpg
import httpx

from bench.world import Tenant
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.http.privacy.answering import ANSWER_PURPOSE, file_id_of
from tolsey.storage.commerce import compliance
from tolsey.storage.database import Database

PRICE: Final = {"amount": 2_000_000, "currency": "USD"}
CHANGES: Final = """
INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool, subject, digest, state,
    created_at, finished_at, before, after, change_set)
SELECT $1, $2 || n, $3, 'bench', 'change_price', 'product/' || n, '', 'applied', now(), now(),
    $4, $4, $2
FROM generate_series(1, 100) n
"""
PRICES: Final = (
    '{"prices": {"1": {"price": {"amount": 1990, "currency": "USD"}, "compare_at_price": null}}}'
)
COMPETES: Final = """
INSERT INTO competitors (store_id, domain, added_by, added_at)
SELECT $1, domain, $2, now() FROM unnest($3::text[]) AS domain
"""
SCAN: Final = """
INSERT INTO storefront_scans (id, domain, mode, is_kept, was_restored, source, organization_id, user_id,
    state, asked_at, ended_at)
VALUES ($1, $2, 'full', true, false, 'customer', $3, $4, 'done', now(), now())
"""
ANSWER: Final = """
INSERT INTO files (id, organization_id, store_id, purpose, name, content_type, sha256, size, created_by,
    created_at, expires_at)
VALUES ($1, $2, $3, $4, 'answer.json', 'application/json', repeat('0', 64), 1, $5, now(),
    now() + interval '30 days')
"""
FINGERPRINT: Final = "SELECT dead_letter_fingerprint('store', 'store.Gone', 'it failed')"
DOLLARS: Final = {"currency": "USD"}
MARKET: Final[Mapping[str, Any]] = {
    "businessModel": "saas",
    "/api/public/listings q": "lamps",
    "currency": "USD",
    **dict.fromkeys(("minPrice", "minRevenue"), 2_000_00),
    **dict.fromkeys(("maxPrice", "maxRevenue"), 20_000_00),
    **{
        f"/api/public/listings {name} with": DOLLARS
        for name in ("minPrice", "maxPrice", "minRevenue", "maxRevenue", "sort")
    },
}
FIRST_SHOP: Final = "s000000.bench-shops.com"
"""The shop of the registry of which most is known."""
COMPARED: Final = [f"s00000{n}.bench-shops.com" for n in range(5)]


async def make(
    client: httpx.AsyncClient, url: str, tenants: Sequence[Tenant]
) -> dict[str, dict[str, Any]]:
    """Let each tenant make what it is asked for; answer the values of parameters by the tenant's name."""
    seller, buyer = tenants
    known: dict[str, dict[str, Any]] = {}
    connection, database = await asyncpg.connect(url), Database(url)
    await database.open()
    try:
        for tenant in tenants:
            known[tenant.name] = await _alone(client, connection, database, tenant)
        deal = await _deal(client, seller, buyer, known[seller.name]["listing_id"])
    finally:
        await database.close()
        await connection.close()
    return {name: {**values, **deal} for name, values in known.items()}


async def _alone(
    client: httpx.AsyncClient,
    connection: "asyncpg.Connection[asyncpg.Record]",
    database: Database,
    tenant: Tenant,
) -> dict[str, Any]:
    """Make what a tenant makes by itself: a listing, a launch, a plan, a customer's wish and a scan."""
    listing = await _post(
        client,
        tenant,
        "/api/sell/listings",
        organizationId=tenant.organization_id,
        storeId=tenant.store_id,
        title="Corner shop",
        askingPrice=PRICE,
    )
    await _post(client, tenant, f"/api/sell/listings/{listing['id']}/publish")
    spec = {"businessName": "Lamps", "country": "DE"}
    await _post(client, tenant, "/api/wizard/store/launch", storeId=tenant.store_id, spec=spec)
    plan, scan = f"plan_{tenant.name}", f"scan_{tenant.name}"
    await connection.execute(CHANGES, tenant.store_id, plan, tenant.user_id, PRICES)
    await connection.execute(COMPETES, tenant.store_id, tenant.user_id, COMPARED)
    await connection.execute(SCAN, scan, FIRST_SHOP, tenant.organization_id, tenant.user_id)
    wish = {"email": "buyer0@example.com", "action": "export"}
    asked = await _post(client, tenant, f"/api/stores/{tenant.store_id}/privacy", **wish)
    request = await compliance.find(database, asked["items"][0]["id"])
    assert request is not None
    file_id = file_id_of(request, tenant.store_id)
    whose = tenant.organization_id, tenant.store_id
    await connection.execute(ANSWER, file_id, *whose, ANSWER_PURPOSE, tenant.user_id)
    return {
        "listing_id": listing["id"],
        "change_set": plan,
        "operation_id": f"{plan}1",
        "/api/operations/{id} id": f"{plan}1",
        "request_id": request.id,
        "scan_id": scan,
        "domain": FIRST_SHOP,
        "domains": ",".join(COMPARED),
        "compare_competitors domains": COMPARED,
        "milestone_id": next(iter(PLAYBOOK.milestones)),
        "milestone": next(iter(PLAYBOOK.milestones)),
        "/stores/{store_id}/competitors/compare": {"domain": FIRST_SHOP},
        "/status/api/v2/{name}.json name": "summary",
        "fingerprint": await connection.fetchval(FINGERPRINT),
        "platform": "common",
        "category": "common",
        "country": "DE",
        "minVelocity": 5,
        **MARKET,
    }


async def _deal(
    client: httpx.AsyncClient, seller: Tenant, buyer: Tenant, listing_id: str
) -> dict[str, Any]:
    """Let a buyer into a listing, as far as the agreement that both are to sign."""
    asked = await _post(
        client,
        buyer,
        f"/api/marketplace/listings/{listing_id}/access",
        organizationId=buyer.organization_id,
        message="Tell me more.",
    )
    move = {"event": "access.approve", "expectedStage": asked["stage"]}
    path = f"/api/marketplace/deals/{asked['id']}"
    await _post(client, seller, f"{path}/advance", **move)
    deal = (await client.get(path, headers=buyer.headers)).raise_for_status().json()
    return {"deal_id": asked["id"], "signature_id": deal["signatureId"]}


async def _post(
    client: httpx.AsyncClient, tenant: Tenant, path: str, **body: Any
) -> Mapping[str, Any]:
    answer = await client.post(path, json=body, headers=tenant.headers)
    if answer.is_error:
        raise RuntimeError(f"{path}: {answer.status_code} {answer.text}")
    said: Mapping[str, Any] = answer.json()
    return said
