"""Since when answers that are made of what the shop delivered are whole."""

from datetime import datetime
from typing import Any

import pytest

from tests.mcp.tools.two_stores import TwoStores, connect, refused, result

pytestmark = pytest.mark.anyio

MADE_OF_FACTS: dict[str, dict[str, Any]] = {
    "get_store_summary": {},
    "get_sales_report": {},
    "list_orders": {},
    "list_products": {},
    "search_products": {"query": "shirt"},
    "list_inventory_levels": {},
    "get_low_stock_report": {},
    "get_best_sellers": {"period": "365d"},
    "get_stock_forecast": {},
    "get_refund_report": {},
    "get_attribution_report": {"by": "campaign"},
    "get_customer_cohorts": {},
    "list_customers": {},
    "search": {"query": "shirt"},
}
"""How the answers are asked for that are made of what the shop told."""


async def test_answers_say_since_when_the_shop_told_what_changed(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    for name, wanted in MADE_OF_FACTS.items():
        assert "facts_since" not in result(await agent.call(name, **wanted)), name
    await connect(two_stores.service, two_stores.ann, "shpat_a", ["read_orders"])
    when = two_stores.service.clock()
    for name, wanted in MADE_OF_FACTS.items():
        answered = result(await agent.call(name, **wanted))["facts_since"]
        assert datetime.fromisoformat(answered) == when, name


async def test_what_is_not_known_may_be_older_than_the_connection(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    asked: dict[str, dict[str, Any]] = {
        "get_order": {"order_id": "9"},
        "get_product": {"product_id": "9"},
        "fetch": {"id": "order-9"},
    }
    for name, wanted in asked.items():
        assert "platform_query" not in refused(await agent.call(name, **wanted))
    await connect(two_stores.service, two_stores.ann, "shpat_a", ["read_orders"])
    since = two_stores.service.clock().isoformat(timespec="seconds")
    for name, wanted in asked.items():
        answered = refused(await agent.call(name, **wanted))
        assert since in answered, name
        assert "Use platform_query to read older ones" in answered
        assert "not_found" in answered
