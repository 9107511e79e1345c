import json
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.mcp.tools.two_stores import TwoStores, connect, refused, result
from tolsey.actors.store.deliveries.payloads import parts_of, variant

pytestmark = pytest.mark.anyio

EUR = "EUR"


def euros(amount: str) -> dict[str, str]:
    return {"amount": amount, "currency": EUR}


async def test_the_store_is_summed_up_as_far_as_scopes_allow(two_stores: TwoStores) -> None:
    answered = result(await (await two_stores.agent(two_stores.ann)).call("get_store_summary"))
    assert answered["id"] == two_stores.ann.store_id
    assert answered["shop"] == {
        "domain": "ann.myshopify.com",
        "name": "ann's shop",
        "currency": EUR,
        "time_zone": "America/New_York",
    }
    assert (answered["plan"], answered["token_state"]) == ("pro", "never")
    assert (answered["products"], answered["orders_30d"]) == (3, 2)
    narrow = await two_stores.agent(two_stores.ann, ["store:read"])
    answered = result(await narrow.call("get_store_summary"))
    assert not {"products", "orders_30d"} & answered.keys()


async def test_a_connection_says_what_was_granted_or_that_nobody_knows(
    two_stores: TwoStores,
) -> None:
    agent = await two_stores.agent(two_stores.ann)
    answered = result(await agent.call("get_connection_status"))
    assert (answered["status"], answered["token_state"], answered["scopes"]) == (
        "never",
        "never",
        "UNKNOWN",
    )
    await connect(two_stores.service, two_stores.bob, "shpat_b", ["read_orders"])
    answered = result(await (await two_stores.agent(two_stores.bob)).call("get_connection_status"))
    assert (answered["status"], answered["token_state"]) == ("active", "ok")
    assert (answered["scopes"], answered["shop_domain"]) == (["read_orders"], "bob.myshopify.com")


async def test_orders_are_listed_newest_first_without_tests(two_stores: TwoStores) -> None:
    agent, base = await two_stores.agent(two_stores.ann), two_stores.ann.base
    items = result(await agent.call("list_orders"))["items"]
    assert [int(one["id"]) - base for one in items] == [4, 3, 2, 1]
    (second,) = [one for one in items if one["id"] == str(base + 2)]
    assert (second["total"], second["current_total"]) == (euros("50.50"), euros("40.50"))
    assert second["fulfillment_status"] == "unfulfilled"
    assert second["customer"] == two_stores.ann.buyer
    items = result(await agent.call("list_orders", include_tests=True))["items"]
    assert items[0]["id"] == str(base + 5)


async def test_orders_are_chosen_by_what_became_of_them(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    chosen: list[tuple[dict[str, Any], list[int]]] = [
        ({"financial_status": "voided"}, [4]),
        ({"financial_status": "VOIDED"}, [4]),
        ({"financial_status": " Partially_Refunded"}, [2]),
        ({"fulfillment_status": "fulfilled"}, []),
        ({"fulfillment_status": "unfulfilled", "limit": 1}, [4]),
        ({"fulfillment_status": "PARTIALLY_FULFILLED"}, []),
    ]
    for wanted, found in chosen:
        items = result(await agent.call("list_orders", **wanted))["items"]
        assert [int(one["id"]) - two_stores.ann.base for one in items] == found, wanted


@pytest.mark.parametrize(
    ("name", "filters"),
    [
        ("list_orders", {"financial_status": "payed"}),
        ("list_orders", {"fulfillment_status": "shipped"}),
        ("list_products", {"status": "on sale"}),
    ],
)
async def test_a_word_that_the_platform_does_not_know_is_refused_with_those_it_does(
    two_stores: TwoStores, name: str, filters: dict[str, str]
) -> None:
    agent = await two_stores.agent(two_stores.ann)
    answered = refused(await agent.call(name, **filters))
    assert f"{next(iter(filters))}: Value error, must be one of " in answered


async def test_what_is_looked_for_is_found_with_and_without_accents(two_stores: TwoStores) -> None:
    agent, base = await two_stores.agent(two_stores.ann), two_stores.ann.base
    await two_stores.database.execute(
        "UPDATE commerce_products SET title = 'Café Smørrebrød Straße', vendor = 'Łódź'"
        " WHERE product_id = $1",
        base + 1,
    )
    for words in ("cafe", "CAFÉ", "cafe\u0301 strasse", "smorrebrod", "lodz"):
        items = result(await agent.call("search_products", query=words))["items"]
        assert [one["id"] for one in items] == [str(base + 1)], words
        found = result(await agent.call("search", query=words))["results"]
        assert [one["id"] for one in found] == [f"product-{base + 1}"], words
    items = result(await agent.call("list_products", vendor="lodz", status="ACTIVE"))["items"]
    assert [one["id"] for one in items] == [str(base + 1)]


async def test_an_order_carries_its_lines_discounts_shipping_and_tags(
    two_stores: TwoStores,
) -> None:
    agent, base = await two_stores.agent(two_stores.ann), two_stores.ann.base
    asked = {"order_id": str(base + 2)}
    assert "lines" not in result(await agent.call("get_order", **asked))
    line = {
        "id": 1,
        "product_id": 788032119674292900,
        "variant_id": None,
        "title": "Aviator sunglasses",
        "variant_title": None,
        "sku": "SKU2006-001",
        "quantity": 2,
        "current_quantity": 1,
        "price": "89.99",
        "total_discount": "5.00",
        "properties": [{"name": "Engraving", "value": "For Jane"}],
    }
    body = {
        "line_items": [line, {**line, "product_id": None, "title": "Engraved for Jane"}],
        "discount_codes": [{"code": "SUMMER", "type": "fixed_amount", "amount": "20.00"}],
        "total_discounts": "20.00",
        "shipping_lines": [{"title": "Generic Shipping", "price": "10.00"}],
    }
    await two_stores.database.execute(
        "UPDATE commerce_orders SET parts = $2, metadata = $3 WHERE order_id = $1",
        base + 2,
        parts_of(body),
        json.dumps({"tags": "gift, fragile", "noteAttributes": []}),
    )
    answered = result(await agent.call("get_order", **asked))
    assert answered["lines"][0] == {
        "title": "Aviator sunglasses",
        "sku": "SKU2006-001",
        "product_id": "788032119674292900",
        "quantity": 2,
        "current_quantity": 1,
        "price": euros("89.99"),
        "discount": euros("5.00"),
    }
    assert "Jane" not in str(answered)  # typed by somebody, who may have named a person
    assert answered["discounts"] == [{"code": "SUMMER", "amount": euros("20.00")}]
    assert answered["total_discounts"] == euros("20.00")
    assert answered["shipping"] == [{"title": "Generic Shipping", "price": euros("10.00")}]
    assert answered["tags"] == ["gift", "fragile"]
    listed = result(await agent.call("list_orders", limit=5))["items"]
    assert [one["tags"] for one in listed if one["id"] == answered["id"]] == [["gift", "fragile"]]


async def test_orders_are_chosen_by_time_and_buyer(two_stores: TwoStores) -> None:
    agent, ann = await two_stores.agent(two_stores.ann), two_stores.ann
    since = (ann.at - timedelta(days=10)).isoformat()
    until = (ann.at - timedelta(hours=36)).isoformat()
    items = result(await agent.call("list_orders", since=since, until=until))["items"]
    assert [one["id"] for one in items] == [str(ann.base + 2)]
    items = result(await agent.call("list_orders", customer=ann.buyer))["items"]
    assert [int(one["id"]) - ann.base for one in items] == [2, 1]
    answered = refused(await agent.call("list_orders", since="2026-07-01T10:00:00"))
    assert "since" in answered


async def test_a_list_is_read_part_by_part(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    lists: list[tuple[str, dict[str, Any]]] = [
        ("list_orders", {}),
        ("list_orders", {"since": "2000-01-01T00:00:00Z"}),
        ("list_products", {}),
        ("search_products", {"query": "shirt"}),
        ("list_inventory_levels", {}),
        ("get_low_stock_report", {"threshold": 1000, "include_unlisted": True}),
        ("list_customers", {}),
        ("list_audit_events", {}),
    ]
    for name, wanted in lists:
        whole = result(await agent.call(name, **wanted))["items"]
        parts: list[Any] = []
        cursor: dict[str, str] = {}
        for _ in range(len(whole) + 1):
            answered = result(await agent.call(name, limit=1, **wanted, **cursor))
            parts += answered["items"]
            if "next_cursor" not in answered:
                break
            cursor = {"cursor": answered["next_cursor"]}
        assert parts == whole, name
        assert "next_cursor" not in answered


async def test_an_order_is_read_with_its_refunds_and_parcels(two_stores: TwoStores) -> None:
    agent, base = await two_stores.agent(two_stores.ann), two_stores.ann.base
    answered = result(await agent.call("get_order", order_id=str(base + 2)))
    (refund,) = answered["refunds"]
    assert (refund["id"], refund["amount"]) == (str(base + 50), euros("10.00"))
    (parcel,) = answered["parcels"]
    assert (parcel["status"], parcel["shipment_status"]) == ("success", "in_transit")


async def test_sales_are_added_up_by_currency_and_in_the_days_of_the_shop(
    two_stores: TwoStores,
) -> None:
    agent, at = await two_stores.agent(two_stores.ann), two_stores.ann.at
    answered = result(await agent.call("get_sales_report", group_by="none"))
    assert answered["time_zone"] == "America/New_York"
    (row,) = answered["rows"]
    assert row == {
        "group": "all",
        "orders": 2,
        "gross": euros("120.50"),
        "current": euros("110.50"),
        "refunded": euros("10.00"),
    }
    there = ZoneInfo("America/New_York")
    answered = result(await agent.call("get_sales_report", group_by="day"))
    days = [(at - timedelta(days=ago)).astimezone(there).date().isoformat() for ago in (2, 1)]
    assert [row["group"] for row in answered["rows"]] == days
    assert [row["refunded"]["amount"] for row in answered["rows"]] == ["0.00", "10.00"]
    answered = result(await agent.call("get_sales_report", period="90d", group_by="source"))
    assert {row["group"]: row["orders"] for row in answered["rows"]} == {"pos": 1, "web": 2}
    answered = result(await agent.call("get_sales_report", period="365d", group_by="month"))
    assert all(row["group"].endswith("-01") for row in answered["rows"])


async def test_a_shop_with_a_zone_nobody_knows_has_days_in_utc(two_stores: TwoStores) -> None:
    await two_stores.database.execute("UPDATE store_shops SET timezone = 'Mars/Olympus'")
    answered = result(
        await (await two_stores.agent(two_stores.ann)).call("get_sales_report", group_by="week")
    )
    assert answered["time_zone"] == "UTC"


async def test_products_are_listed_searched_and_read(two_stores: TwoStores) -> None:
    agent, base = await two_stores.agent(two_stores.ann), two_stores.ann.base
    items = result(await agent.call("list_products"))["items"]
    assert [one["title"] for one in items] == ["Old hat", "Red 100% shirt", "Blue shirt"]
    items = result(await agent.call("list_products", status="archived"))["items"]
    assert [one["title"] for one in items] == ["Old hat"]
    items = result(await agent.call("list_products", vendor="loom", product_type="hats"))["items"]
    assert items == []
    answered = result(await agent.call("get_product", product_id=str(base + 1)))
    assert (answered["tags"], len(answered["variants"])) == (["soft", "warm"], 2)
    assert answered["variants"][0]["price"] == euros("19.90")
    assert answered["variants"][0]["inventory_item_id"] == str(base + 1000)


async def test_products_are_found_by_all_words_and_no_word_is_a_pattern(
    two_stores: TwoStores,
) -> None:
    agent = await two_stores.agent(two_stores.ann)
    for query, titles in (
        ("shirt", ["Red 100% shirt", "Blue shirt"]),
        ("SHIRT blue", ["Blue shirt"]),
        ("100%", ["Red 100% shirt"]),
        ("%", ["Red 100% shirt"]),
        ("_", []),
        ("R-0", ["Red 100% shirt"]),
        ("price", []),
        ("   ", ["Old hat", "Red 100% shirt", "Blue shirt"]),
    ):
        items = result(await agent.call("search_products", query=query))["items"]
        assert [one["title"] for one in items] == titles, query


async def test_stock_is_listed_by_place_and_what_runs_out_comes_first(
    two_stores: TwoStores,
) -> None:
    agent, base = await two_stores.agent(two_stores.ann), two_stores.ann.base
    items = result(await agent.call("list_inventory_levels"))["items"]
    assert [(one["location_id"], one["available"]) for one in items] == [("1", 2), ("2", -3)]
    wanted = {"product_id": str(base + 2), "location_id": "2"}
    (level,) = result(await agent.call("list_inventory_levels", **wanted))["items"]
    assert (level["inventory_item_id"], level["available"]) == (str(base + 2000), -3)
    wanted = {"product_id": str(base + 1), "inventory_item_id": str(base + 2000)}
    assert result(await agent.call("list_inventory_levels", **wanted))["items"] == []
    items = result(await agent.call("get_low_stock_report"))["items"]
    # The levels of the red shirt say -1 over both places, whatever the product said once.
    assert [(one["product_title"], one["available"]) for one in items] == [
        ("Red 100% shirt", -1),
        ("Blue shirt", 3),
    ]
    everything: dict[str, Any] = {"threshold": 0, "include_unlisted": True}
    items = result(await agent.call("get_low_stock_report", **everything))["items"]
    assert [one["product_title"] for one in items] == ["Red 100% shirt", "Old hat"]


async def test_a_product_has_the_stock_that_the_report_tells(two_stores: TwoStores) -> None:
    agent, base = await two_stores.agent(two_stores.ann), two_stores.ann.base
    (red,) = result(await agent.call("get_product", product_id=str(base + 2)))["variants"]
    assert (red["inventory_quantity"], red["tracked"]) == (-1, True)
    whole = json.loads(result(await agent.call("fetch", id=f"product-{base + 2}"))["text"])
    read = await agent.ask("resources/read", {"uri": f"store://product/{base + 2}"})
    held = json.loads(read.json()["result"]["contents"][0]["text"])
    assert whole["variants"] == held["variants"] == [red]
    # Of the blue shirt nothing but its own delivery told.
    blue = result(await agent.call("get_product", product_id=str(base + 1)))["variants"]
    assert [one["inventory_quantity"] for one in blue] == [3, 40]


@pytest.mark.parametrize(
    ("management", "level", "tracked", "left"),
    [
        ({"inventory_management": "shopify"}, None, True, 0),
        ({"inventory_management": "shopify"}, "null", True, 0),
        ({"inventory_management": None}, None, False, None),
        ({"inventory_management": None}, 3, False, None),
        ({}, None, None, 0),
        ({}, "null", False, None),
        ({}, 3, True, 3),
    ],
)
async def test_nothing_that_nobody_counts_runs_out(
    two_stores: TwoStores,
    management: dict[str, Any],
    level: int | str | None,
    tracked: bool | None,
    left: int | None,
) -> None:
    """The platform tells that an item is not tracked in its product, or in its levels."""
    agent, ann = await two_stores.agent(two_stores.ann), two_stores.ann
    said = variant({"id": 9, "inventory_item_id": 90, "inventory_quantity": 0, **management})
    await two_stores.database.execute(
        "UPDATE commerce_products SET variants = $2::jsonb WHERE store_id = $1 AND product_id = $3",
        ann.store_id,
        json.dumps([said]),
        ann.base + 2,
    )
    if level is not None:
        await two_stores.database.execute(
            "INSERT INTO commerce_inventory_levels VALUES ($1, 90, 1, $2, $3)",
            ann.store_id,
            ann.at,
            None if level == "null" else level,
        )
    (answered,) = result(await agent.call("get_product", product_id=str(ann.base + 2)))["variants"]
    assert (answered.get("inventory_quantity"), answered.get("tracked")) == (left, tracked)
    items = result(await agent.call("get_low_stock_report"))["items"]
    low = [one.get("tracked") for one in items if one["variant_id"] == "9"]
    assert low == ([] if left is None else [tracked])


async def test_buyers_are_counted_as_pseudonyms(two_stores: TwoStores) -> None:
    agent, ann = await two_stores.agent(two_stores.ann), two_stores.ann
    items = result(await agent.call("list_customers"))["items"]
    assert [one["customer"] for one in items] == [
        ann.buyer,
        ann.other_buyer,
        f"s1:{ann.base + 2:064x}",
    ]
    first = items[0]
    assert (first["orders"], first["refunded_orders"]) == (2, 1)
    assert first["spent"] == [euros("140.50")]
    assert first["cohort"] == (ann.at - timedelta(days=40)).strftime("%Y-%m")
    assert (items[2]["orders"], items[2]["spent"]) == (0, [])
    items = result(await agent.call("list_customers", order_by="orders"))["items"]
    assert [one["orders"] for one in items] == [2, 1]
    assert result(await agent.call("get_customer", customer=ann.buyer)) == first
    answered = refused(await agent.call("get_customer", customer=f"s1:{'f' * 64}"))
    assert "not_found" in answered


async def test_buyers_with_the_most_orders_come_part_by_part(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    asked: dict[str, Any] = {"order_by": "orders", "limit": 1}
    answered = result(await agent.call("list_customers", **asked))
    rest = result(await agent.call("list_customers", **asked, cursor=answered["next_cursor"]))
    assert [one["orders"] for one in (*answered["items"], *rest["items"])] == [2, 1]
    # A cursor of one order says nothing in the other.
    text = refused(await agent.call("list_customers", cursor=answered["next_cursor"]))
    assert "invalid_cursor" in text


async def test_audit_events_say_who_did_what_without_extracts(two_stores: TwoStores) -> None:
    for event, subject, metadata in (
        ("commerce.connected", two_stores.ann.store_id, '{"shopDomain": "x", "payload": {"a": 1}}'),
        ("commerce.webhook.orders/create", two_stores.ann.store_id, '{"payload": {"name": "#1"}}'),
        (
            "agent.write",
            two_stores.ann.store_id,
            '{"tool": "t", "before": "Jane", "after": {"n": 1}}',
        ),
        ("admin.actor.pause", two_stores.ann.store_id, '{"reason": "operators only"}'),
        ("commerce.connected", "store_else", "{}"),
    ):
        await two_stores.database.execute(
            """
            INSERT INTO audit_log (event, subject, organization_id, actor, metadata)
            VALUES ($1, $2, $3, 'usr_ann', $4::jsonb)
            """,
            event,
            subject,
            two_stores.ann.organization_id,
            metadata,
        )
    agent = await two_stores.agent(two_stores.ann)
    items = result(await agent.call("list_audit_events"))["items"]
    assert [(one["event"], one["detail"]) for one in items] == [
        ("agent.write", {"tool": "t"}),
        ("commerce.webhook.orders/create", {}),
        ("commerce.connected", {"shopDomain": "x"}),
    ]
    items = result(await agent.call("list_audit_events", event="commerce.webhook."))["items"]
    assert len(items) == 1
    assert result(await agent.call("list_audit_events", event="commerce%"))["items"] == []


async def test_privacy_requests_of_the_store_are_listed_with_what_is_still_to_be_done(
    two_stores: TwoStores,
) -> None:
    at = two_stores.service.clock()
    for n, owner in enumerate((two_stores.ann, two_stores.bob, two_stores.ann)):
        await two_stores.database.execute(
            """
            INSERT INTO compliance_requests (id, topic, shop_domain, delivery_id, body_digest, stores,
                shop_keys, received_at, pending_steps)
            VALUES ($1, 'shop/redact', 'x', $1, $1, ARRAY[$2], ARRAY[$2], $3, '{store-record}')
            """,
            f"req_{n}",
            owner.store_id,
            at - timedelta(days=31 - n),
        )
    agent = await two_stores.agent(two_stores.ann)
    items = result(await agent.call("list_compliance_requests"))["items"]
    clocks = [(one["id"], one["overdue"], one["clock"]) for one in items]
    assert clocks == [("req_2", False, "urgent"), ("req_0", True, "overdue")]
    assert {one["source"] for one in items} == {"platform"}
    assert items[0]["pending_steps"] == ["store-record"]
    first = result(await agent.call("list_compliance_requests", limit=1))
    rest = await agent.call("list_compliance_requests", cursor=first["next_cursor"])
    assert result(rest)["items"] == items[1:]


async def test_search_finds_orders_by_number_and_products_by_words(two_stores: TwoStores) -> None:
    agent, base = await two_stores.agent(two_stores.ann), two_stores.ann.base
    for name in (f"#{base + 2}", str(base + 2)):
        (found,) = result(await agent.call("search", query=name))["results"]
        assert found == {
            "id": f"order-{base + 2}",
            "title": f"Order #{base + 2}",
            "url": f"https://ann.myshopify.com/admin/orders/{base + 2}",
        }
    (found,) = result(await agent.call("search", query="red shirt"))["results"]
    assert found["url"] == "https://ann.myshopify.com/products/red-100%25-shirt"
    whole = result(await agent.call("fetch", id=found["id"]))
    assert '"inventory_item_id"' in whole["text"]
    assert whole["metadata"] == {"type": "product"}
    whole = result(await agent.call("fetch", id=f"order-{base + 2}"))
    assert '"parcels"' in whole["text"]
    for nothing in ("", "order-9", "launch-1", "product-x", f"product-{base + 4}"):
        assert "not_found" in refused(await agent.call("fetch", id=nothing))


async def test_search_looks_only_where_scopes_allow(two_stores: TwoStores) -> None:
    base = two_stores.ann.base
    agent = await two_stores.agent(two_stores.ann, ["store:read", "catalog:read"])
    assert result(await agent.call("search", query=str(base + 2)))["results"] == []
    answer = await agent.call("fetch", id=f"order-{base + 2}")
    assert answer.status_code == 403
    challenge = answer.headers["www-authenticate"]
    assert 'scope="store:read orders:read catalog:read"' in challenge
    agent = await two_stores.agent(two_stores.ann, ["store:read"])
    assert (await agent.call("search", query="shirt")).status_code == 403


async def test_what_became_of_a_change_is_told_to_its_user_alone(two_stores: TwoStores) -> None:
    for number, store_id, user_id in (
        (1, two_stores.ann.store_id, two_stores.ann.user_id),
        (2, two_stores.ann.store_id, two_stores.bob.user_id),
        (3, two_stores.bob.store_id, two_stores.ann.user_id),
    ):
        await two_stores.database.execute(
            """
            INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool,
                subject, digest, state, created_at, before, after, finished_at)
            VALUES ($1, $2, $3, 'c', 'update_product', 'product:1', 'd', 'applied', $4,
                '{"title": "A"}', '{"title": "B"}', $4)
            """,
            store_id,
            f"op_{number}",
            user_id,
            two_stores.service.clock(),
        )
    agent = await two_stores.agent(two_stores.ann)
    answered = result(await agent.call("get_operation", operation_id="op_1"))
    assert (answered["state"], answered["after"]) == ("applied", {"title": "B"})
    for other in ("op_2", "op_3", "op_4"):
        assert "not_found" in refused(await agent.call("get_operation", operation_id=other))
