import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import pytest
from graphql import (
    GraphQLSchema,
    NoDeprecatedCustomRule,
    build_client_schema,
    parse,
    specified_rules,
    validate,
)

from tests.golden.cases import BESIDE
from tolsey.http.clients.commerce import queries
from tolsey.http.clients.commerce.costs import (
    Bucket,
    Buckets,
    Cost,
    estimate,
    is_mutation,
    largest_page,
    read_cost,
)

QUERY_LIMIT_POINTS = 1000
"""Of the platform, for one query."""


def every_document() -> tuple[str, ...]:
    """List each document that is sent, once."""
    return (
        queries.CONNECT_PROBE,
        queries.COUNT_ORDERS,
        queries.ORDERS,
        queries.ORDER_LINES,
        queries.ORDER_TRANSACTIONS,
        queries.REFUNDS,
        queries.ONE_ORDER,
        queries.RUN_BULK,
        queries.BULK_STATUS,
        queries.SUBSCRIPTIONS,
        queries.subscribe(3),
        queries.unsubscribe(3),
        queries.bulk_orders(
            queries.processed_between(
                datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
            )
        ),
    )


PUBLISHED = BESIDE / "commerce/graphql/admin_2026-07.introspection.json.gz"


@lru_cache(maxsize=1)
def published() -> GraphQLSchema:
    read = json.loads(gzip.decompress(PUBLISHED.read_bytes()))
    # some of its deprecations break a rule the language gained later
    return build_client_schema(read["data"], assume_valid=True)


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the shared data are not here")
@pytest.mark.parametrize("document", every_document())
def test_every_document_is_valid_by_the_published_schema_and_uses_nothing_deprecated(
    document: str,
) -> None:
    schema = published()
    rules = [*specified_rules, NoDeprecatedCustomRule]
    assert validate(schema, parse(document), rules) == []


def test_no_document_asks_for_anything_personal_but_one_orders_customer() -> None:
    personal = re.compile(
        r"customer|email|phone|address|firstName|lastName|note|clientIp|billing", re.IGNORECASE
    )
    for document in every_document():
        if document is not queries.ONE_ORDER:
            assert personal.findall(document) == []


def test_a_connection_costs_two_and_its_items_and_a_list_its_items() -> None:
    slim = """query Q($first: Int!) { orders(first: $first) { nodes { id
        netPaymentSet { shopMoney { amount } } } pageInfo { hasNextPage } } }"""
    assert estimate(slim, {"first": 100}) == 2 + 1 + 100 * 3
    edges = "{ orders(first: 10) { edges { node { id lineItems(first: 5) { nodes { id } } } } } }"
    assert estimate(edges, {}) == 2 + 10 * (1 + 2 + 5)
    listed = "{ order(id: 1) { transactions(first: 4) { amountSet { shopMoney { amount } } } } }"
    assert estimate(listed, {}) == 1 + 4 * 3
    assert estimate("mutation { a: go { id } b: go { id } }", {}) == 22


def test_a_page_of_orders_is_as_large_as_one_query_may_cost() -> None:
    size = largest_page(queries.ORDERS, {}, 980)
    assert estimate(queries.ORDERS, {"first": size}) <= 980
    assert estimate(queries.ORDERS, {"first": size + 1}) > 980
    assert size >= 15
    assert estimate(queries.SUBSCRIPTIONS, {"first": 100}) < QUERY_LIMIT_POINTS
    assert estimate(queries.subscribe(25), {}) < QUERY_LIMIT_POINTS


def test_a_document_that_changes_something_is_told_from_one_that_reads() -> None:
    assert is_mutation(queries.RUN_BULK)
    assert not is_mutation(queries.ORDERS)


def test_a_window_is_searched_in_whole_seconds_that_hold_it() -> None:
    start = datetime(2026, 1, 1, 0, 0, 0, 900_000, tzinfo=UTC)
    wanted = (
        "processed_at:>='2026-01-01T00:00:00Z' AND processed_at:<'2026-01-02T00:00:01Z'"
        " AND test:false"
    )
    assert queries.processed_between(start, start + timedelta(days=1)) == wanted


def said(available: float, requested: float = 100.0) -> Cost:
    return Cost(requested, None, 1000.0, available, 50.0)


def test_an_unknown_bucket_makes_no_one_wait() -> None:
    assert Bucket().wait_seconds(10_000, now=0.0) == 0.0


def test_a_bucket_refills_with_time_and_never_over_its_rim() -> None:
    bucket = Bucket()
    bucket.settle(0, said(available=100), now=0.0)
    assert bucket.wait_seconds(300, now=0.0) == pytest.approx(4.0)
    assert bucket.wait_seconds(300, now=3.0) == pytest.approx(1.0)
    assert bucket.wait_seconds(300, now=4.0) == 0.0
    assert bucket.wait_seconds(5_000, now=1_000.0) == 0.0


def test_points_reserved_by_one_request_are_not_there_for_the_next() -> None:
    bucket = Bucket()
    bucket.settle(0, said(available=500), now=0.0)
    bucket.spend(400, now=0.0)
    assert bucket.wait_seconds(400, now=0.0) == pytest.approx(6.0)
    bucket.spend(100, now=0.0)
    bucket.settle(400, said(available=450), now=0.0)
    assert bucket.wait_seconds(450, now=0.0) == pytest.approx(2.0)


def test_a_lost_answer_gives_no_points_back() -> None:
    bucket = Bucket()
    bucket.settle(0, said(available=100), now=0.0)
    bucket.spend(100, now=0.0)
    bucket.settle(100, None, now=0.0)
    assert bucket.wait_seconds(100, now=0.0) == pytest.approx(2.0)


def test_what_the_platform_counted_is_believed_over_our_estimate() -> None:
    bucket = Bucket()
    assert bucket.price(queries.ORDERS, {"first": 1}) == estimate(queries.ORDERS, {"first": 1})
    bucket.learn(queries.ORDERS, {"first": 1}, said(available=1, requested=7))
    assert bucket.price(queries.ORDERS, {"first": 1}) == 7
    assert bucket.price(queries.ORDERS, {"first": 2}) == estimate(queries.ORDERS, {"first": 2})


@pytest.mark.parametrize(
    "extensions",
    [
        None,
        [],
        {},
        {"cost": None},
        {"cost": {"requestedQueryCost": 1}},
        {"cost": {"requestedQueryCost": 1, "throttleStatus": {"maximumAvailable": 0}}},
        {
            "cost": {
                "requestedQueryCost": True,
                "throttleStatus": {
                    "maximumAvailable": 1,
                    "currentlyAvailable": 1,
                    "restoreRate": 1,
                },
            }
        },
        {
            "cost": {
                "requestedQueryCost": 1,
                "throttleStatus": {
                    "maximumAvailable": 1,
                    "currentlyAvailable": 1,
                    "restoreRate": 0,
                },
            }
        },
    ],
)
def test_a_cost_that_makes_no_sense_is_not_believed(extensions: Any) -> None:
    assert read_cost(extensions) is None


def test_only_the_buckets_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tolsey.http.clients.commerce.costs.MOST_SHOPS", 2)
    buckets = Buckets()
    first = buckets.of("a.myshopify.com")
    buckets.of("b.myshopify.com")
    assert buckets.of("a.myshopify.com") is first
    buckets.of("c.myshopify.com")
    assert buckets.of("a.myshopify.com") is first
