"""A competitor is looked at anew on an agent's word, as often a day as the organization's plan says."""

import pytest

from tests.mcp.tools.two_stores import TwoStores, refused, result
from tolsey.actors.storefront.messages import SuppressStorefront, storefront

pytestmark = pytest.mark.anyio

TOOL = "request_competitor_scan"


async def test_an_agent_has_a_competitor_scanned_once(two_stores: TwoStores) -> None:
    await two_stores.database.execute("UPDATE organizations SET plan = 'pro'")
    agent = await two_stores.agent(two_stores.ann)
    wish = {"domain": two_stores.ann.rival, "idempotency_key": "scan-0001"}
    planned = result(await agent.call(TOOL, **wish, dry_run=True))
    assert (planned["status"], planned["after"]["state"]) == ("planned", "queued")
    scans = "SELECT id, domain, source, organization_id, mode FROM storefront_scans"
    assert await two_stores.database.fetch(scans) == []
    asked = result(await agent.call(TOOL, **wish))
    assert (asked["status"], asked["after"]["state"]) == ("applied", "running")
    again = result(await agent.call(TOOL, **wish))
    assert (again["status"], again["after"]) == ("replayed", asked["after"])
    (scan,) = await two_stores.database.fetch(scans)
    assert dict(scan) == {
        "id": asked["after"]["scan_id"],
        "domain": two_stores.ann.rival,
        "source": "agent",
        "organization_id": two_stores.ann.organization_id,
        "mode": "full",
    }


async def test_a_scan_for_an_agent_is_one_of_the_plans_of_the_day(two_stores: TwoStores) -> None:
    await two_stores.database.execute("UPDATE organizations SET plan = 'free'")
    agent = await two_stores.agent(two_stores.ann)
    wish = {"domain": two_stores.ann.rival, "mode": "light"}
    result(await agent.call(TOOL, **wish, idempotency_key="scan-0001"))
    answer = await agent.call(TOOL, **wish, idempotency_key="scan-0002")
    assert answer.status_code == 429, answer.text
    assert answer.json()["error"]["data"]["violated-policies"] == ["scans-day"]


async def test_only_a_competitor_of_the_store_that_may_be_looked_at_is_scanned(
    two_stores: TwoStores,
) -> None:
    agent = await two_stores.agent(two_stores.ann)
    other = {"domain": two_stores.bob.rival, "idempotency_key": "scan-0001"}
    assert "isn't one of the store's competitors" in refused(await agent.call(TOOL, **other))
    await two_stores.service.runtime.ask(
        storefront(two_stores.ann.rival),
        SuppressStorefront(reason="asked", source="owner", at=two_stores.service.clock()),
    )
    left_alone = {"domain": two_stores.ann.rival, "idempotency_key": "scan-0002"}
    assert "opted out of scans" in refused(await agent.call(TOOL, **left_alone))
