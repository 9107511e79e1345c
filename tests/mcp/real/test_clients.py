"""Clients as people install them, with their defaults: one consent, from the first 401 to every tool."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.people import settings_of
from tests.journeys.conftest import free_port
from tests.mcp.real import visits
from tests.mcp.real.clients import table
from tests.mcp.real.clients.catalogue import CLIENTS, Client
from tests.mcp.real.served_stores import ON_REQUEST_TOOLS, Keeper, ServedStores
from tests.mcp.tools import two_stores as tools_hall
from tests.mcp.tools.shop import ANNS, ITEM, PRODUCT, opened
from tests.mcp.tools.test_reads_apart import everything
from tests.mcp.tools.test_writes_revenue import verified
from tests.pages.conftest import ServedSite, served
from tolsey.actors.store.memory.messages import KeepFact
from tolsey.actors.store.messages import store
from tolsey.http.mcp.tools.registry import stores_registry
from tolsey.http.oauth.scopes import ON_REQUEST, SCOPES
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.products import LOCATION_ID
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.storage.records.memory import MemorySource

pytestmark = pytest.mark.usefixtures("node")

LONGEST = 180.0
ANN = 1_000_000


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    made = Platform()
    domain = tools_hall.SHOPS["ann"]
    made.add_shop(ShopSpec(domain=domain, client_id=f"app-{domain}"))
    async with made.serve():
        yield made


@pytest.fixture
async def live_site(
    database_url: str, redis_url: str, platform: Platform
) -> AsyncIterator[ServedSite]:
    port = free_port()
    settings = settings_of(
        base_url=f"http://127.0.0.1:{port}",
        database_url=database_url,
        redis_url=redis_url,
        commerce_url_template=platform.url_template,
        storefront_url="http://127.0.0.1:9",  # nobody is there
    )
    async with served(settings, port) as opened_hall:
        yield opened_hall


async def furnished(
    live_site: ServedSite, keeper: Keeper, platform: Platform
) -> dict[str, dict[str, Any]]:
    """Give a store something for every tool; answers how each is called."""
    service = live_site.running.service
    row = await service.database.fetchrow(
        "SELECT user_id, organization_id FROM stores JOIN members USING (organization_id) WHERE id = $1",
        keeper.store_id,
    )
    assert row is not None
    owner = tools_hall.Owner(
        "ann", row["user_id"], row["organization_id"], keeper.store_id, ANN, live_site.clock.now
    )
    await service.database.execute("UPDATE organizations SET plan = 'max_20x'")
    await tools_hall.furnish(service.database, owner)
    inside = tools_hall.TwoStores(service, owner, owner)
    counter = await opened(inside, platform)
    await verified(inside, platform, owner)
    await service.database.execute(
        """
        INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool, subject,
            digest, state, created_at)
        VALUES ($1, 'op_ann', $2, 'c', 't', 's', 'd', 'sent', now())
        """,
        owner.store_id,
        owner.user_id,
    )
    told = KeepFact(
        fact_id="fact_told",
        key="shipping.days",
        value='"Mondays"',
        source=MemorySource.AGENT,
        user_id=owner.user_id,
        at=service.clock(),
    )
    await service.runtime.ask(store(owner.store_id), told)
    order, product = {"order_id": str(counter.order.id)}, {"product_id": str(PRODUCT)}
    (sent,) = platform.fulfil_order(ANNS, platform.place_order(ANNS).id).fulfilments
    stock = {"inventory_item_id": str(ITEM), "location_id": str(LOCATION_ID)}
    writes: dict[str, dict[str, Any]] = {
        "update_product": {**product, "title": "Shirt", "dry_run": True},
        "set_product_status": {**product, "status": "DRAFT"},
        "adjust_inventory": {**stock, "delta": 1},
        "change_price": {
            **product,
            "prices": [{"variant_id": "770", "price": {"amount": "17.90", "currency": "USD"}}],
            "dry_run": True,
        },
        "fulfil_order": {**order, "dry_run": True},
        "track_fulfilment": {"fulfillment_id": str(sent.id), "tracking_number": "T1"},
        "refund_order": {**order, "amount": {"amount": "1", "currency": "USD"}, "dry_run": True},
        "create_discount": {"code": "SPRING", "title": "Spring sale", "percentage": 15},
        "save_collection": {"handle": "summer", "title": "Summer", "dry_run": True},
        "save_page": {"handle": "about-us", "title": "About us", "dry_run": True},
        "change_many": {
            "changes": [
                {"tool": "tag_order", "arguments": json.dumps({**order, "tags": ["many"]})},
                {"tool": "adjust_inventory", "arguments": json.dumps({**stock, "delta": 0})},
            ],
            "dry_run": True,
        },
        "add_order_note": {**order, "note": "Wrap it"},
        "tag_order": {**order, "tags": ["gift"]},
        "refresh_revenue": {},
        "request_competitor_scan": {"domain": owner.rival},
        "save_memory": {"text": "The owner asked for blue shirts."},
        "delete_memory": {"id": "fact_told"},
        "run_launch_milestone": {"milestone_id": "brand.kit", "dry_run": True},
        "request_launch_probe": {"dry_run": True},
    }
    keyed = {name: {**one, "idempotency_key": f"key-{name[:20]}"} for name, one in writes.items()}
    query = {"query": "query Q($n: Int!) { products(first: $n) { nodes { title } } }"}
    reading = {**query, "variables": '{"n": 1}'}
    found = {**everything(owner), "platform_query": reading, **keyed}
    # What is let out on request alone no client asks for by itself.
    return {name: one for name, one in found.items() if name not in ON_REQUEST_TOOLS}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda one: one.name)
async def test_a_client_with_its_defaults_works_with_every_tool_after_one_consent(
    two_keepers: ServedStores, platform: Platform, tmp_path: Path, client: Client
) -> None:
    if not client.installed.stands():
        pytest.skip(f"{client.name} could not be installed here (`make conformance` tries it)")
    calls, report = tmp_path / "calls.json", tmp_path / "report.json"
    calls.write_text(json.dumps(await furnished(two_keepers.live_site, two_keepers.ann, platform)))
    two_keepers.ann.ticks_all = True
    status, answered = await visits.run(
        [*client.command(), two_keepers.ann.address, str(calls), str(report)],
        client.cwd,
        visited=two_keepers.ann.visit,
        env=environment(tmp_path),
        seconds=LONGEST,
    )
    assert status == 0, answered
    found = json.loads(report.read_text())
    table.keep(client.name, found, consents=two_keepers.ann.consents)
    troubles = {name: trouble for name, trouble in found["answers"].items() if trouble}
    assert troubles == {}, answered
    registry = stores_registry(two_keepers.live_site.running.service)
    assert found["tools"] == list(registry.tools)
    assert found["answers"].keys() == registry.tools.keys() - set(ON_REQUEST_TOOLS)
    assert two_keepers.ann.consents == 1
    rows = await two_keepers.live_site.running.service.database.fetch(
        "SELECT scopes FROM oauth_grants WHERE client_id <> 'client_1'"
    )
    assert [set(row["scopes"]) for row in rows] == [set(SCOPES) - ON_REQUEST]
    assert platform.shop(tools_hall.SHOPS["ann"]).products[PRODUCT].title == "Shirt"


def environment(home: Path) -> dict[str, str]:
    """Give a client a home of its own, and a browser that says where it was sent."""
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "BROWSER": "echo %s",
        "MCP_USE_ANONYMIZED_TELEMETRY": "false",
        "PYTHONUNBUFFERED": "1",
    }
