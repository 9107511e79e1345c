from pathlib import Path
from typing import Any

import httpx
import pytest

from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec

SHOP = "demo.myshopify.com"
PAGE = """
query Page($first: Int!, $after: String, $query: String, $reverse: Boolean) {
  orders(first: $first, after: $after, query: $query, reverse: $reverse, sortKey: PROCESSED_AT) {
    nodes { id processedAt test }
    pageInfo { hasNextPage endCursor }
  }
}
"""


async def all_pages(app: Any, **asked: Any) -> list[Any]:
    found: list[Any] = []
    after = None
    for _ in range(100):
        orders = (await app.ask(PAGE, after=after, **asked))["orders"]
        found += orders["nodes"]
        after = orders["pageInfo"]["endCursor"]
        if not orders["pageInfo"]["hasNextPage"]:
            return found
    raise AssertionError("the pages never end")


@pytest.mark.parametrize("reverse", [False, True])
async def test_pages_hold_every_order_once_and_in_order(app: Any, *, reverse: bool) -> None:
    found = await all_pages(app, first=97, reverse=reverse)
    kept = app.platform.shop(SHOP).orders.values()
    expected = sorted(kept, key=lambda o: (o.processed_at, o.id), reverse=reverse)
    assert [f["id"] for f in found] == [f"gid://shopify/Order/{o.id}" for o in expected]


async def test_a_page_backwards_is_the_page_before(app: Any) -> None:
    first = (await app.ask("{ orders(first: 9) { edges { cursor node { id } } } }"))["orders"]
    back = await app.ask(
        "query($b: String) { orders(last: 3, before: $b) {"
        " nodes { id } pageInfo { hasPreviousPage hasNextPage } } }",
        b=first["edges"][6]["cursor"],
    )
    assert back["orders"]["nodes"] == [edge["node"] for edge in first["edges"][3:6]]
    assert back["orders"]["pageInfo"] == {"hasPreviousPage": True, "hasNextPage": True}


async def test_a_window_and_the_test_flag_are_searched_together(app: Any) -> None:
    query = "processed_at:>=2026-07-10T00:00:00Z AND processed_at:<'2026-07-20' AND test:false"
    found = await all_pages(app, first=100, query=query)
    expected = [
        o
        for o in app.platform.shop(SHOP).orders.values()
        if "2026-07-10" <= o.processed_at.isoformat() < "2026-07-20" and not o.test
    ]
    assert len(found) == len(expected) > 0
    count = await app.ask(
        "query($q: String) { ordersCount(query: $q) { count precision } }", q=query
    )
    assert count["ordersCount"] == {"count": len(expected), "precision": "EXACT"}


@pytest.mark.parametrize(
    ("query", "tag"),
    [
        ("status:cancelled", "cancelled"),
        ("test:true", "test"),
        ("gateway:manual", "manual"),
        ("financial_status:pending", "pending"),
        ("source_name:subscription_contract", "subscription"),
        ("tag:gift_card", "gift_card"),
    ],
)
async def test_orders_are_found_by_what_they_are(app: Any, query: str, tag: str) -> None:
    kept = app.platform.shop(SHOP).orders.values()
    expected = sum(o.tags[0] == tag for o in kept)
    count = await app.ask("query($q: String) { ordersCount(query: $q) { count } }", q=query)
    inverse = await app.ask("query($q: String) { ordersCount(query: $q) { count } }", q=f"-{query}")
    assert count["ordersCount"]["count"] == expected > 0
    assert inverse["ordersCount"]["count"] == len(kept) - expected


async def test_an_unknown_search_field_is_ignored_with_a_warning(app: Any) -> None:
    answer = (await app.post('{ ordersCount(query: "colour:red") { count } }')).json()
    assert answer["data"]["ordersCount"]["count"] == 600
    assert answer["extensions"]["search"][0]["field"] == "colour"


async def test_a_count_stops_at_its_limit(app: Any) -> None:
    count = await app.ask("{ ordersCount(limit: 10) { count precision } }")
    assert count["ordersCount"] == {"count": 10, "precision": "AT_LEAST"}


async def test_money_agrees_with_lines_payments_and_refunds(app: Any) -> None:
    platform: Platform = app.platform
    order = platform.place_order(SHOP, shipping=500)
    platform.refund_order(SHOP, order.id, amount=1000)
    data = await app.ask(
        """query($id: ID!) { order(id: $id) { displayFinancialStatus
          ...Money
          lineItems(first: 5) { nodes { quantity sellingPlan { name } } }
          transactions(first: 5) { kind status manualPaymentGateway }
          refunds(first: 5) { totalRefundedSet { shopMoney { amount } } } } }
        fragment Money on Order {
          whole: totalPriceSet { shopMoney { amount currencyCode } }
          net: netPaymentSet { shopMoney { amount } } }""",
        id=f"gid://shopify/Order/{order.id}",
    )
    assert data["order"] == {
        "displayFinancialStatus": "PARTIALLY_REFUNDED",
        "whole": {"shopMoney": {"amount": "30.0", "currencyCode": "USD"}},
        "net": {"shopMoney": {"amount": "20.0"}},
        "lineItems": {"nodes": [{"quantity": 1, "sellingPlan": None}]},
        "transactions": [
            {"kind": "SALE", "status": "SUCCESS", "manualPaymentGateway": False},
            {"kind": "REFUND", "status": "SUCCESS", "manualPaymentGateway": False},
        ],
        "refunds": [{"totalRefundedSet": {"shopMoney": {"amount": "10.0"}}}],
    }


@pytest.mark.parametrize(("excluded", "amount"), [(True, "30.0"), (False, "60.0")])
async def test_line_prices_leave_returned_units_out_as_published(
    *, excluded: bool, amount: str
) -> None:
    platform = Platform(line_prices_exclude_returns=excluded)
    shop = platform.add_shop(ShopSpec(domain=SHOP))
    async with platform.serve() as url, httpx.AsyncClient(base_url=url) as client:
        order = platform.place_order(SHOP)
        order.lines[0].quantity, order.lines[0].unit_price, order.lines[0].returned = 2, 3000, 1
        token = shop.issue_token(platform.now()).text
        answer = await client.post(
            f"/{SHOP}/admin/api/2026-07/graphql.json",
            json={
                "query": "{ orders(first: 1) { nodes { lineItems(first: 1) { nodes {"
                " priceAfterAllDiscountsBeforeTaxesSet { shopMoney { amount } } } } } } }"
            },
            headers={"X-Shopify-Access-Token": token},
        )
    line = answer.json()["data"]["orders"]["nodes"][0]["lineItems"]["nodes"][0]
    assert line["priceAfterAllDiscountsBeforeTaxesSet"]["shopMoney"]["amount"] == amount


async def test_without_read_all_orders_only_sixty_days_are_seen(app: Any) -> None:
    platform: Platform = app.platform
    before = len(platform.shop(SHOP).orders)
    platform.advance(45 * 86_400)
    await app.grant()
    assert (await app.ask("{ ordersCount { count } }"))["ordersCount"]["count"] == before
    platform.set_scopes(SHOP, "read_orders")
    assert 0 < (await app.ask("{ ordersCount { count } }"))["ordersCount"]["count"] < before


async def test_a_missing_scope_is_denied_inside_a_200(app: Any) -> None:
    app.platform.set_scopes(SHOP, "read_products")
    answer = await app.post("{ shop { id } ordersCount { count } }")
    assert answer.status_code == 200
    error = answer.json()["errors"][0]
    assert error["extensions"]["code"] == "ACCESS_DENIED"
    assert error["extensions"]["requiredAccess"] == "`read_orders` access scope."
    assert error["path"] == ["ordersCount"]
    assert answer.json()["data"]["shop"]


async def test_writing_implies_reading(app: Any) -> None:
    app.platform.set_scopes(SHOP, "write_orders")
    assert (await app.ask("{ ordersCount { count } }"))["ordersCount"]["count"] == 600


async def test_a_document_that_is_not_valid_is_refused(app: Any) -> None:
    answer = await app.post("{ shop { colour } }")
    assert answer.status_code == 200
    assert "Cannot query field 'colour'" in answer.json()["errors"][0]["message"]
    assert "Syntax Error" in (await app.post("{ shop {")).json()["errors"][0]["message"]
    missing = await app.post("query($id: ID!) { order(id: $id) { id } }")
    assert "$id" in missing.json()["errors"][0]["message"]


async def test_a_published_field_that_is_not_served_says_so(app: Any, published: Path) -> None:
    assert published
    error = (await app.post("{ shop { description } }")).json()["errors"][0]
    assert error["extensions"]["code"] == "SANDBOX_UNSUPPORTED"


async def test_without_the_published_schema_our_own_checks_documents(tmp_path: Path) -> None:
    platform = Platform(published_folder=tmp_path)
    shop = platform.add_shop(ShopSpec(domain=SHOP))
    token = {"X-Shopify-Access-Token": shop.issue_token(platform.now()).text}
    async with platform.serve() as url, httpx.AsyncClient(base_url=url, headers=token) as client:
        path = f"/{SHOP}/admin/api/2026-07/graphql.json"
        good = await client.post(path, json={"query": "{ shop { id } }"})
        bad = await client.post(path, json={"query": "{ shop { description } }"})
    assert good.json()["data"]["shop"]["id"] == f"gid://shopify/Shop/{shop.id}"
    assert "Cannot query field 'description'" in bad.json()["errors"][0]["message"]


async def test_a_body_without_a_document_is_a_bad_request(app: Any) -> None:
    answer = await app.client.post(
        f"/{SHOP}/admin/api/2026-07/graphql.json",
        content=b"[1]",
        headers={"X-Shopify-Access-Token": app.token},
    )
    assert answer.status_code == 400


async def test_cost_is_two_for_a_connection_and_one_for_each_object(app: Any) -> None:
    slim = """{ orders(first: 199) { nodes { id netPaymentSet { shopMoney { amount } }
      totalRefundedSet { shopMoney { amount } } } pageInfo { hasNextPage } } }"""
    cost = (await app.post(slim)).json()["extensions"]["cost"]
    assert cost["requestedQueryCost"] == 2 + 199 * 5
    assert cost["actualQueryCost"] == 2 + 199 * 5
    assert cost["throttleStatus"]["currentlyAvailable"] == 2000 - 997


async def test_only_what_was_used_is_paid_for(app: Any) -> None:
    query = '{ orders(first: 100, query: "test:true AND id:1") { nodes { id } } }'
    cost = (await app.post(query)).json()["extensions"]["cost"]
    assert (cost["requestedQueryCost"], cost["actualQueryCost"]) == (102, 2)
    assert cost["throttleStatus"]["currentlyAvailable"] == 1998


async def test_a_query_over_a_thousand_points_is_refused(app: Any) -> None:
    answer = await app.post(
        "{ orders(first: 250) { nodes { lineItems(first: 5) { nodes { id } } } } }"
    )
    error = answer.json()["errors"][0]
    assert error["extensions"]["code"] == "MAX_COST_EXCEEDED"
    assert error["extensions"]["cost"] == 2 + 250 * (1 + 2 + 5)


async def test_an_empty_bucket_throttles_inside_a_200_and_refills_with_time(app: Any) -> None:
    app.platform.shop(SHOP).bucket.drain(app.platform.now())
    query = "{ orders(first: 98) { nodes { id } } }"
    answer = await app.post(query)
    assert answer.status_code == 200
    assert answer.json()["errors"][0]["extensions"]["code"] == "THROTTLED"
    assert answer.json()["extensions"]["cost"] == {
        "requestedQueryCost": 100,
        "actualQueryCost": None,
        "throttleStatus": {
            "maximumAvailable": 2000.0,
            "currentlyAvailable": 0,
            "restoreRate": 100.0,
        },
    }
    app.platform.advance(1)
    assert "errors" not in (await app.post(query)).json()


@pytest.mark.parametrize(
    "query", ["{ orders { nodes { id } } }", "{ orders(first: 251) { nodes { id } } }"]
)
async def test_a_page_needs_a_size_of_at_most_250(app: Any, query: str) -> None:
    answer = (await app.post(query)).json()
    assert answer["data"] is None
    assert answer["errors"][0]["extensions"]["code"] == "BAD_REQUEST"


async def test_any_object_is_found_by_its_id(app: Any) -> None:
    order = next(iter(app.platform.shop(SHOP).orders.values()))
    gid = f"gid://shopify/Order/{order.id}"
    data = await app.ask(
        "query($id: ID!) { node(id: $id) { __typename id ... on Order { name @include(if: true)"
        " note @skip(if: true) } } nodes(ids: [$id, $id]) { id } }",
        id=gid,
    )
    assert data["node"] == {"__typename": "Order", "id": gid, "name": order.name}
    assert data["nodes"] == [{"id": gid}] * 2
