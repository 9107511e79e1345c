"""Revenue as a user would first write it: day by day, fifty orders a page, summed afterwards.

It reads the sums of each order only, neither lines nor transactions, so it asks for less than ours.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx

PAGE = 50
QUERY = """
query Orders($first: Int!, $after: String, $query: String!) {
  orders(first: $first, after: $after, query: $query, sortKey: PROCESSED_AT) {
    nodes {
      id test processedAt cancelledAt sourceName currencyCode
      totalPriceSet { shopMoney { amount } }
      totalRefundedSet { shopMoney { amount } }
    }
    pageInfo { hasNextPage endCursor }
  }
}
"""


async def verify(base: str, client_id: str, client_secret: str) -> dict[str, Any]:
    """Sum the last thirty days; answers the orders, the sum, the points they cost and the calls."""
    async with httpx.AsyncClient(base_url=base, timeout=30) as client:
        grant = await client.post(
            "/admin/oauth/access_token",
            data={
                "grant_type": "client_credentials",
                "client_id": client_id,
                "client_secret": client_secret,
            },
        )
        client.headers["X-Shopify-Access-Token"] = grant.json()["access_token"]
        found: list[dict[str, Any]] = []
        points, calls = 0.0, 1
        now = datetime.now(UTC)
        for days in range(30, 0, -1):
            start = now - timedelta(days=days)
            orders, cost, pages = await between(client, start, start + timedelta(days=1))
            found += orders
            points += cost
            calls += pages
    revenue = sum((worth(order) for order in found if not order["test"]), Decimal(0))
    return {"orders": len(found), "revenue": str(revenue), "points": points, "calls": calls}


async def between(
    client: httpx.AsyncClient, start: datetime, end: datetime
) -> tuple[list[dict[str, Any]], float, int]:
    """Page through a day; the platform refuses to page past 25,000 orders of one query."""
    found: list[dict[str, Any]] = []
    after, points, pages = None, 0.0, 0
    span = f"processed_at:>='{start.isoformat()}' AND processed_at:<'{end.isoformat()}'"
    while True:
        variables = {"first": PAGE, "after": after, "query": span}
        answer = await client.post(
            "/admin/api/2026-07/graphql.json", json={"query": QUERY, "variables": variables}
        )
        parsed = answer.json()
        if parsed.get("errors"):
            raise RuntimeError(parsed["errors"])
        page = parsed["data"]["orders"]
        points += parsed["extensions"]["cost"]["actualQueryCost"]
        found += page["nodes"]
        pages += 1
        if not page["pageInfo"]["hasNextPage"]:
            return found, points, pages
        after = page["pageInfo"]["endCursor"]


def worth(order: dict[str, Any]) -> Decimal:
    """Give what an order brought in."""
    total = Decimal(order["totalPriceSet"]["shopMoney"]["amount"])
    return total - Decimal(order["totalRefundedSet"]["shopMoney"]["amount"])
