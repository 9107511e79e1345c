import json
from datetime import timedelta

import httpx
import pytest

from tests.mcp.tools.two_stores import Owner, TwoStores, result
from tolsey.actors.organization.ledger.messages import AdjustCredits, GrantCredits
from tolsey.actors.organization.messages import organization
from tolsey.http.mcp import wire
from tolsey.http.web import policies
from tolsey.storage.cache import Cache
from tolsey.storage.limits import Limits, Policy

pytestmark = pytest.mark.anyio


async def listed(two_stores: TwoStores, owner: Owner, listing_id: str, store_id: str) -> None:
    """List a store with a good sync of its revenue in two currencies."""
    at = two_stores.service.clock()
    await two_stores.database.execute(
        """
        INSERT INTO listings (title, anonymous, included_assets, excluded_assets, self_reported,
            auto_approve_access, financing_offered, id, organization_id, store_id, slug, status,
            created_by, created_at, seller_active_at)
        VALUES ('A shop', false, '[]', '[]', '{}', false, false, $1, $2, $3, $1, 'ACTIVE', 'usr_x',
            $4, $4)
        """,
        *(listing_id, owner.organization_id, store_id, at),
    )
    await two_stores.database.execute(
        """
        INSERT INTO listing_verifications (listing_id, state, since, generation, shop_domain,
            last_ok_at, verified_at, keeps_badge, provider)
        VALUES ($1, 'verified', $2, 1, 'a.myshopify.com', $2, $2, true, 'commerce')
        """,
        *(listing_id, at),
    )
    figures = {"mrr": 5, "revenue30d": 123_456, "annualised": 1_502_048, "orders": 9}
    await two_stores.database.execute(
        """
        INSERT INTO revenue_snapshots (listing_id, window_end, window_start, source, shop_domain,
            definition, shop_currency, verified, figures, orders, skipped, flags)
        VALUES ($1, $2, $2, 'commerce', 'a.myshopify.com', 'rv2', 'EUR', true, $3::jsonb, 9, '{}',
            '[]')
        """,
        *(listing_id, at, json.dumps({"EUR": figures})),
    )


async def test_verified_revenue_is_that_of_this_stores_own_listings(two_stores: TwoStores) -> None:
    await listed(two_stores, two_stores.ann, "listing_a", two_stores.ann.store_id)
    await listed(two_stores, two_stores.ann, "listing_b", "store_of_ann_too")
    await listed(two_stores, two_stores.bob, "listing_c", two_stores.ann.store_id)
    agent = await two_stores.agent(two_stores.ann)
    (answered,) = result(await agent.call("get_verified_revenue"))["listings"]
    assert (answered["listing_id"], answered["state"], answered["badge"]) == (
        "listing_a",
        "verified",
        "green",
    )
    assert answered["revenue_30d"] == {"amount": "1234.56", "currency": "EUR"}
    assert answered["annualised"] == {"amount": "15020.48", "currency": "EUR"}
    assert answered["flags"] == []


async def test_credits_are_told_in_dollars(two_stores: TwoStores) -> None:
    to = organization(two_stores.ann.organization_id)
    await two_stores.service.runtime.ask(
        to,
        AdjustCredits(
            key="a1",
            amount=12_345_678,
            reason="a present",
            user_id="usr_x",
            at=two_stores.service.clock(),
        ),
    )
    agent = await two_stores.agent(two_stores.ann)
    answered = result(await agent.call("get_credit_balance"))
    assert answered["available"] == {"amount": "12.345678", "currency": "USD"}
    assert answered["held"] == {"amount": "0.00", "currency": "USD"}
    assert [one["kind"] for one in answered["grants"]] == ["adjustment"]
    (entry,) = result(await agent.call("list_credit_entries"))["items"]
    assert (entry["id"], entry["amount"]["amount"]) == ("1", "12.345678")


async def test_grants_are_told_in_parts_in_the_order_they_are_spent(two_stores: TwoStores) -> None:
    to, at = organization(two_stores.ann.organization_id), two_stores.service.clock()
    for n in range(30):
        ends = at + timedelta(days=300 - n)
        await two_stores.service.runtime.ask(
            to,
            GrantCredits(
                key=f"g{n}", kind="bonus", amount=(n + 1) * 10_000, at=at, expires_at=ends
            ),
        )
    agent = await two_stores.agent(two_stores.ann)
    first = result(await agent.call("get_credit_balance"))
    rest = result(await agent.call("get_credit_balance", cursor=first["next_cursor"]))
    answered = [one["remaining"]["amount"] for one in first["grants"] + rest["grants"]]
    assert (len(first["grants"]), first["grants_total"]) == (25, 30)
    assert answered == [f"0.{n:02}" for n in range(30, 0, -1)]
    assert "next_cursor" not in rest


async def test_the_plans_limits_tell_how_many_calls_are_left(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    answered = result(await agent.call("get_plan_limits"))
    assert (answered["plan"], answered["stores_used"], answered["stores_included"]) == ("pro", 1, 3)
    assert answered["monthly_credits"] == {"amount": "49.00", "currency": "USD"}
    assert answered["mcp_quotas"] == [
        {"window_seconds": 60, "limit": 500, "remaining": 499},
        {"window_seconds": 86_400, "limit": 50_000, "remaining": 49_999},
    ]
    answered = result(await agent.call("get_plan_limits"))
    assert answered["mcp_quotas"][0]["remaining"] == 498
    agent = await two_stores.agent(two_stores.bob)
    answered = result(await agent.call("get_plan_limits"))
    assert answered["mcp_quotas"][0]["remaining"] == 499


async def test_an_organization_without_bounds_is_told_none(two_stores: TwoStores) -> None:
    await two_stores.database.execute(
        "UPDATE organizations SET plan = 'custom', stores_contracted = 70"
    )
    answered = result(await (await two_stores.agent(two_stores.ann)).call("get_plan_limits"))
    assert (answered["stores_included"], answered["mcp_quotas"]) == (70, [])
    assert "concurrent_workflows" not in answered


async def test_looking_at_a_window_counts_nothing(two_stores: TwoStores) -> None:
    limits, policy = two_stores.service.limits, Policy("p", 3, policies.MINUTE)
    assert await limits.used([policy], "someone") == (0,)
    await limits.admit([policy], "someone")
    for _ in range(5):
        assert await limits.used([policy], "someone") == (1,)
    assert (await limits.admit([policy], "someone")).remaining == 1


async def test_while_redis_is_away_this_process_knows_its_own_calls() -> None:
    cache, policy = Cache("redis://127.0.0.1:1"), Policy("p", 3, policies.MINUTE)
    limits = Limits(cache)
    assert await limits.used([policy], "someone") == (0,)
    await limits.admit([policy], "someone")
    assert await limits.used([policy], "someone") == (1,)
    assert await limits.used([], "someone") == ()
    await cache.close()


async def test_a_batch_that_is_too_large_for_what_is_left_uses_up_nothing(
    two_stores: TwoStores,
) -> None:
    await two_stores.database.execute("UPDATE organizations SET plan = 'free'")
    agent = await two_stores.agent(two_stores.ann)

    async def batch(size: int) -> httpx.Response:
        ping = {"jsonrpc": "2.0", "method": "ping"}
        sent = [{**ping, "id": number} for number in range(size)]
        return await agent.post(sent, **{"MCP-Protocol-Version": wire.BATCHING})

    assert left(await batch(30)) == {"mcp-min": 20, "mcp-day": 1_970}
    for _ in range(3):
        refused = await batch(21)
        assert refused.status_code == 429
        assert refused.json()["error"]["data"]["violated-policies"] == ["mcp-min"]
        assert left(refused) == {"mcp-min": 20, "mcp-day": 1_970}
    assert left(await batch(20)) == {"mcp-min": 0, "mcp-day": 1_950}


def left(answer: httpx.Response) -> dict[str, int]:
    """Read what is left of each limit."""
    items = [item.split(";") for item in answer.headers["ratelimit"].split(", ")]
    return {name.strip('"'): int(rest.removeprefix("r=")) for name, rest, _ in items}
