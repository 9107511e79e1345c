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
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.cases import BESIDE
from tolsey.http.clients.commerce import queries
from tolsey.http.clients.commerce.costs import Bucket, Buckets, Cost, read_cost
from tolsey.http.clients.commerce.document_costs import (
    count_least,
    estimate,
    is_mutation,
    largest_page,
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


COUNTED = [
    # what the live platform was seen to count, API version 2025-07
    ("{ products(first: 200) { pageInfo { hasNextPage } edges { cursor node { id } } } }", {}, 12),
    (
        """query V($id: ID!) { product(id: $id) {
        variants(first: 250) { nodes { inventoryItem { id tracked } } } } }""",
        {"id": "gid://shopify/Product/1"},
        25,
    ),
    (
        """{ location(id: 1) { inventoryLevels(first: 100) { edges { cursor node { id
        quantities(names: "available") { quantity } item { id variant { id product { id } } } } } } } }""",
        {},
        48,
    ),
    # what its documentation says
    ("{ shop { name } }", {}, 1),
    ("{ shop { name } shop { id } }", {}, 1),
    ("{ shop { ...f ...f } } fragment f on Shop { plan { displayName } }", {}, 2),
    ("query Q($o: Boolean!) { shop @include(if: $o) { id } }", {"o": False}, 0),
    ("query Q($o: Boolean = true) { shop @skip(if: $o) { id } }", {}, 0),
    ("{ node(id: 1) { ... on Order { customer { id } } ... on Shop { plan { id } } } }", {}, 1),
    ("mutation { a: go { user { id } } b: go { id } }", {}, 20),
]


@pytest.mark.parametrize(("document", "variables", "points"), COUNTED)
def test_the_least_cost_is_never_above_what_the_platform_counts(
    document: str, variables: dict[str, Any], points: float
) -> None:
    assert count_least(document, variables) <= points


@pytest.mark.parametrize(
    ("variables", "size"),
    [
        ({"n": 250}, 250),
        ({}, 100),
        ({"n": None}, 1),
        ({"n": "250"}, 1),
        ({"n": [250]}, 1),
        ({"n": True}, 1),
        ({"n": 2.5}, 1),
        ({"n": 10**40}, 1),
        ({"n": -5}, 0),
    ],
)
def test_a_list_is_as_long_as_its_variable_says(variables: dict[str, Any], size: int) -> None:
    document = "query Q($n: Int = 100) { products(last: $n) { nodes { seo { title } } } }"
    assert estimate(document, variables) == 2 + 2 * size
    assert count_least(document, variables) <= estimate(document, variables)


def test_fragments_are_counted_and_no_document_breaks_the_count() -> None:
    document = """query Q { products(first: 10) { ...page } }
        fragment page on ProductConnection { nodes { ...one } } fragment one on Product { seo { title } }"""
    assert estimate(document, {}) == 2 + 10 * 2
    assert estimate("{ products(first: %s) { nodes { id } } }" % ("9" * 5_000), {}) == 2 + 1
    assert estimate("{ products(first: -9) { nodes { id } } }", {}) == 2


def test_nothing_is_reserved_beyond_what_one_query_may_cost() -> None:
    large = "{ products(first: 250) { nodes { variants(first: 100) { nodes { id } } } } }"
    assert estimate(large, {}) == 2 + 250 * (1 + 2 + 100)
    assert count_least(large, {}) < QUERY_LIMIT_POINTS
    assert Bucket().price(large, estimate(large, {})) == QUERY_LIMIT_POINTS


def said(available: float, requested: float = 100.0) -> Cost:
    return Cost(requested, 1000.0, available, 50.0)


def make_bucket(available: float, now: float = 0.0) -> Bucket:
    """Return a bucket with so many points left, as the platform reported."""
    bucket = Bucket()
    bucket.settle(bucket.spend(0, now), said(available), now)
    return bucket


def test_an_unknown_bucket_makes_no_one_wait() -> None:
    assert Bucket().wait_seconds(10_000, now=0.0) == 0.0


def test_a_bucket_refills_with_time_and_never_over_its_rim() -> None:
    bucket = make_bucket(available=100)
    assert bucket.wait_seconds(300, now=0.0) == pytest.approx(4.0)
    assert bucket.wait_seconds(300, now=3.0) == pytest.approx(1.0)
    assert bucket.wait_seconds(300, now=4.0) == 0.0
    assert bucket.wait_seconds(5_000, now=1_000.0) == 0.0


def test_points_reserved_by_one_request_are_not_there_for_the_next() -> None:
    bucket = make_bucket(available=500)
    first = bucket.spend(400, now=0.0)
    assert bucket.wait_seconds(400, now=0.0) == pytest.approx(6.0)
    bucket.spend(100, now=0.0)
    bucket.settle(first, said(available=450), now=0.0)
    assert bucket.wait_seconds(450, now=0.0) == pytest.approx(2.0)


def test_a_lost_answer_gives_no_points_back() -> None:
    bucket = make_bucket(available=100)
    bucket.settle(bucket.spend(100, now=0.0), None, now=0.0, is_lost=True)
    assert bucket.wait_seconds(100, now=0.0) == pytest.approx(2.0)


def test_an_answer_without_figures_gives_all_points_back() -> None:
    bucket = make_bucket(available=700)
    bucket.settle(bucket.spend(600, now=0.0), None, now=1.0)
    assert bucket.wait_seconds(750, now=1.0) == 0.0
    assert bucket.wait_seconds(760, now=1.0) == pytest.approx(0.2)


def test_a_request_that_hangs_holds_its_points_no_longer_than_a_filling() -> None:
    bucket = make_bucket(available=1_000)
    bucket.spend(1_000, now=0.0)
    for now, wait in ((19.0, 20.0), (20.0, 0.0)):
        bucket.settle(bucket.spend(0, now), said(available=1_000), now)
        assert bucket.wait_seconds(1_000, now) == wait


POINTS = st.one_of(st.floats(0, 2_000), st.sampled_from([0.0, 1_000.0, 1e9]))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["spend", "cost", "refused", "lost", "hang"]),
        POINTS,
        st.builds(
            lambda requested, maximum, available, rate: {
                "cost": {
                    "requestedQueryCost": requested,
                    "throttleStatus": {
                        "maximumAvailable": maximum,
                        "currentlyAvailable": available,
                        "restoreRate": rate,
                    },
                }
            },
            POINTS,
            st.floats(1, 20_000),
            st.floats(-1e10, 1e10),
            st.floats(0.001, 2_000),
        ),
        st.floats(0, 100),
    ),
    max_size=40,
)


@given(STEPS, POINTS)
def test_nobody_waits_longer_than_the_bucket_takes_to_fill_whatever_was_answered(
    steps: list[tuple[str, float, dict[str, Any], float]], points: float
) -> None:
    bucket, now = Bucket(), 0.0
    for step, spent, extensions, seconds in steps:
        reservation = bucket.spend(spent, now)
        now += seconds
        match step:
            case "cost":
                bucket.settle(reservation, read_cost(extensions), now)
            case "refused":
                bucket.settle(reservation, None, now)
            case "lost":
                bucket.settle(reservation, None, now, is_lost=True)
        fill = (bucket.maximum or 0) / bucket.restore_rate
        assert bucket.wait_seconds(points, now) <= fill * 1.000_001 <= 601


@given(st.floats(0, 1_000), st.floats(0, 1_000), st.floats(0, 10))
def test_a_refused_query_leaves_the_budget_as_if_it_had_never_been_sent(
    available: float, spent: float, seconds: float
) -> None:
    asked, untouched = make_bucket(available), make_bucket(available)
    asked.settle(asked.spend(min(spent, available), now=0.0), None, now=seconds)
    assert asked.wait_seconds(1_000, seconds) == pytest.approx(
        untouched.wait_seconds(1_000, seconds), abs=0.01
    )


def test_what_the_platform_counted_is_believed_over_our_estimate() -> None:
    bucket = Bucket()
    assert bucket.price(queries.ORDERS, estimate(queries.ORDERS, {"first": 1})) == estimate(
        queries.ORDERS, {"first": 1}
    )
    bucket.learn(
        queries.ORDERS, estimate(queries.ORDERS, {"first": 1}), said(available=1, requested=7)
    )
    assert bucket.price(queries.ORDERS, estimate(queries.ORDERS, {"first": 1})) == 7
    assert bucket.price(queries.ORDERS, estimate(queries.ORDERS, {"first": 2})) == estimate(
        queries.ORDERS, {"first": 2}
    )
    bucket.learn(
        queries.REFUNDS,
        estimate(queries.REFUNDS, {"ids": ["1"], "lines": 3}),
        said(available=1, requested=7),
    )
    several = {"ids": ["1", "2"], "lines": 3}
    assert bucket.price(queries.REFUNDS, estimate(queries.REFUNDS, several)) == estimate(
        queries.REFUNDS, several
    )


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
        {
            "cost": {
                "requestedQueryCost": 1,
                "throttleStatus": {
                    "maximumAvailable": 1_000,
                    "currentlyAvailable": 1,
                    "restoreRate": 1,
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
