import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest
from graphql import GraphQLObjectType, get_named_type, is_object_type, parse, validate
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types

from tests.mcp.tools.two_stores import SHOPS, TwoStores, connect, refused, result
from tests.mcp.wire import Agent
from tolsey.actors.store.grants import CONNECT, DISCONNECTED_BY_HAND, RECONNECT
from tolsey.http.mcp.tools.platform.documents import QueryNotAllowed, read
from tolsey.http.mcp.tools.platform.fields import (
    ARGUMENTS,
    FIELDS,
    LEAF,
    MOST_FIELDS,
    NEEDS,
    ROOT,
    fields_of,
)
from tolsey.http.mcp.tools.registry import stores_registry
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.query.schema import published_schema
from tolsey.sandbox.commerce.shop.products import Product, Variant

pytestmark = pytest.mark.anyio

SHOP = SHOPS["ann"]
SCOPES = ("read_orders", "read_products", "read_inventory")
NAMES = "{ products(first: 5) { nodes { title variants(first: 1) { nodes { sku price } } } } }"
ORDERS = "{ orders(first: 5) { nodes { name lineItems(first: 2) { nodes { title } } } } }"
REFUSED = (
    "{ customers(first: 1) { nodes { id } } }",
    "{ orders(first: 1) { nodes { customer { id } } } }",
    "{ orders(first: 1) { nodes { name: email } } }",
    "{ orders(first: 1) { nodes { title: note tags } } }",
    "{ orders(first: 1) { nodes { billingAddress { name } } } }",
    "{ orders(first: 1) { nodes { transactions { receiptJson } } } }",
    "{ orders(first: 1) { nodes { lineItems(first: 1) { nodes { customAttributes { key } } } } } }",
    '{ orders(first: 1, query: "email:jane@doe.example") { nodes { id } } }',
    '{ ordersCount(query: "email:jane@doe.example") { count } }',
    "{ orders(first: 1, sortKey: CUSTOMER_NAME) { edges { cursor } } }",
    "query Q($k: OrderSortKeys) { orders(first: 1, sortKey: $k) { pageInfo { endCursor } } }",
    "query Q($q: String) { orders(first: 1, query: $q) { nodes { id } } }",
    '{ node(id: "gid://shopify/Customer/1") { id } }',
    '{ node(id: "gid://shopify/Customer/1") { ... on Customer { email } } }',
    "{ shop { email } }",
    "{ shop { shopOwnerName } }",
    "{ shop { customers(first: 1) { nodes { id } } } }",
    "{ currentAppInstallation { accessScopes { handle } } }",
    "{ webhookSubscriptions(first: 1) { nodes { uri } } }",
    "{ __schema { types { name } } }",
    '{ __type(name: "Customer") { name } }',
    "mutation { bulkOperationCancel(id: 1) { userErrors { message } } }",
    "subscription { shop { name } }",
    "query A { shop { name } } query B { shop { email } }",
    "fragment f on Shop { name }",
    "{ ...f } fragment f on QueryRoot { ...f }",
    "{ ...f } fragment f on Customer { email }",
    "{ ... on Customer { email } }",
    "{ ...missing }",
    "{ shop }",
    "{ shop { name { first } } }",
    "{ shop { name @custom } }",
    "query @bulk { shop { name } }",
    "extend type Shop { a: Int } { shop { name } }",
    "{ shop { name(first: 1) } }",
    "{ shop { name }",
    "",
    '{ products(first: 1) { nodes { metafield(namespace: "a", key: "b") { value } } } }',
    "{ locations(first: 1) { nodes { address { address1 } } } }",
    "{" * 200,
    "{ products(first: 1) { nodes { " + "collections(first: 1) { nodes { products(first: 1) { nodes { "
    * 9 + "id" + " } } } }" * 9 + " } } }",
)  # fmt: skip
PERSONAL = frozenset(
    [
        "Customer",
        "CustomerVisit",
        "CompanyContact",
        "MailingAddress",
        "StaffMember",
        "Attribute",
        "Event",
        "Metafield",
        "PaymentDetails",
        "CustomerEmailAddress",
        "CustomerPhoneNumber",
        "ShopAddress",
        "LocationAddress",
        "OrderRisk",
        "CustomerJourneySummary",
        "Fulfillment",
        "ShippingLine",
    ]
)


def sell(platform: Platform) -> None:
    """Have a shirt in the shop, and an order of somebody whom nobody must find."""
    shop = platform.shop(SHOP)
    variant = Variant(2, 3, "M", "S-1", 1990, available=4)
    shop.products[1] = Product(1, "Shirt", "shirt", platform.now(), platform.now(), [variant])
    variant.product = shop.products[1]
    order = platform.place_order(SHOP, email="jane@doe.example")
    platform.update_order(SHOP, order.id, note="Call Jane Doe", tags=("jane-doe",))


async def connected(
    two_stores: TwoStores, platform: Platform, scopes: tuple[str, ...] = SCOPES
) -> Agent:
    """Connect ann's store with a token of the platform's, and let an agent work with it."""
    sell(platform)
    token = platform.shop(SHOP).issue_token(platform.now())
    await connect(two_stores.service, two_stores.ann, token.text, scopes)
    return await two_stores.agent(two_stores.ann)


async def test_the_platform_is_asked_with_the_stores_token(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    reported = result(await agent.call("platform_query", query=NAMES))
    (product,) = reported["data"]["products"]["nodes"]
    assert product == {"title": "Shirt", "variants": {"nodes": [{"sku": "S-1", "price": "19.9"}]}}
    query = "query P($id: ID!) { product(id: $id) { title } }"
    nothing = {"query": query, "variables": '{"id": "gid://shopify/Product/99"}'}
    reported = result(await agent.call("platform_query", **nothing))
    assert reported == {"shop_words": ["data"], "data": {"product": None}}
    schema = stores_registry(two_stores.service).tools["platform_query"].output_schema
    Draft202012Validator(schema).validate(reported)


async def test_fragments_and_conditions_are_read_too(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    query = """
        query Q($with: Boolean!) { __typename ...shops products(first: 1) { edges { node {
            ... on Product { title } ... @include(if: $with) { vendor } } } } }
        fragment shops on QueryRoot { s: shop { ... names } }
        fragment names on Shop { name currencyCode }
    """
    reported = result(await agent.call("platform_query", query=query, variables='{"with": false}'))
    assert reported["data"]["s"] == {"name": "Sandbox shop", "currencyCode": "USD"}
    assert reported["data"]["products"]["edges"] == [{"node": {"title": "Shirt"}}]


async def test_what_is_not_allow_listed_is_never_sent(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    before = platform.requests
    for query in REFUSED:
        assert "query" in refused(await agent.call("platform_query", query=query)), query
    assert platform.requests == before


def test_fragments_of_fragments_come_to_an_end() -> None:
    levels = [f"fragment f{n} on Shop {{ ...f{n + 1} ...f{n + 1} }}" for n in range(40)]
    bomb = "{ shop { ...f0 } } " + " ".join(levels) + " fragment f40 on Shop { name }"
    with pytest.raises(QueryNotAllowed):
        read(bomb)
    with pytest.raises(QueryNotAllowed):
        read("{ shop { " + " ".join(f"n{n}: name" for n in range(MOST_FIELDS + 1)) + " } }")


def test_a_query_is_sent_as_it_was_understood() -> None:
    text = read('#{customers{id}}\n{shop{name ,,# " \n url}}').text
    assert text.split() == ["{", "shop", "{", "name", "url", "}", "}"]


async def test_what_the_agent_may_not_see_it_may_not_ask_for(
    two_stores: TwoStores, platform: Platform
) -> None:
    await connected(two_stores, platform)
    agent = await two_stores.agent(two_stores.ann, ["store:read", "catalog:read"])
    assert result(await agent.call("platform_query", query=NAMES))["data"]
    for query in (ORDERS, "{ ordersCount { count } }"):
        before = platform.requests
        answer = await agent.call("platform_query", query=query)
        assert (answer.status_code, platform.requests) == (403, before)
        challenge = answer.headers["www-authenticate"]
        assert 'scope="store:read orders:read catalog:read"' in challenge


async def test_a_scope_that_is_known_to_be_missing_is_named_before_the_call(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform, ("write_products",))
    before = platform.requests
    reported = refused(await agent.call("platform_query", query=ORDERS))
    assert "missing_scope" in reported
    assert "scope: read_orders" in reported
    assert "Ask the shop's owner to add it" in reported
    assert platform.requests == before
    result(await agent.call("platform_query", query=NAMES))  # who writes reads


async def test_while_scopes_are_unknown_the_platform_refuses_in_its_own_words(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform, ())
    platform.set_scopes(SHOP, "read_products")
    reported = refused(await agent.call("platform_query", query=ORDERS))
    words = "Access denied for orders field. Required access: `read_orders` access scope."
    assert reported.splitlines()[0] == words
    assert "platform_denied" in reported
    assert "platformStatus: 403" in reported


async def relayed_503(agent: Agent) -> httpx.Response:
    """Ask, and be told to come back."""
    answer = await agent.call("platform_query", query=NAMES)
    assert answer.status_code == 503, answer.text
    return answer


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("revoked", (RECONNECT, "token_unavailable")),
        ("disconnected", (DISCONNECTED_BY_HAND, "disconnected")),
    ],
)
async def test_a_store_without_a_token_is_to_be_connected_again(
    two_stores: TwoStores, status: str, said: tuple[str, str]
) -> None:
    await connect(two_stores.service, two_stores.ann, "shpat_x", SCOPES, status)
    error = (await relayed_503(await two_stores.agent(two_stores.ann))).json()["error"]
    assert (error["message"], error["data"]["code"]) == said


async def test_a_store_that_was_never_connected_is_to_be_connected_first(
    two_stores: TwoStores,
) -> None:
    error = (await relayed_503(await two_stores.agent(two_stores.ann))).json()["error"]
    assert (error["message"], error["data"]["code"]) == (CONNECT, "never_connected")


async def token_state(agent: Agent) -> str:
    """Read whether the store says that it can be called."""
    return str(result(await agent.call("get_connection_status"))["token_state"])


async def test_a_token_that_the_platform_forgot_is_renewed_once_for_all_who_ask(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    platform.revoke_tokens(SHOP)
    granted = platform.grants
    answers = await asyncio.gather(*(agent.call("platform_query", query=NAMES) for _ in range(10)))
    assert all(result(answer)["data"]["products"]["nodes"] for answer in answers)
    assert platform.grants == granted + 1
    assert await token_state(agent) == "ok"


async def test_a_token_that_cannot_be_opened_is_renewed_as_well(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    await two_stores.database.execute("UPDATE integration_connections SET access_token = 'v1.lost'")
    result(await agent.call("platform_query", query=NAMES))


async def test_only_a_renewal_that_is_refused_sends_the_merchant_to_reconnect(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    platform.revoke_tokens(SHOP)
    platform.faults.status(503, times=50, on="token")
    error = (await relayed_503(agent)).json()["error"]
    assert (error["data"]["code"], await token_state(agent)) == ("commerce_unreachable", "ok")
    platform.faults.clear()
    platform.shop(SHOP).permitted = False
    for _ in range(2):
        error = (await relayed_503(agent)).json()["error"]
        assert (error["message"], error["data"]["code"]) == (RECONNECT, "token_unavailable")
    assert await token_state(agent) == "token_unavailable"


async def test_a_fresh_token_that_is_refused_too_is_told_and_not_asked_for_in_a_loop(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    platform.faults.status(401, times=9)
    granted = platform.grants
    assert (await relayed_503(agent)).json()["error"]["message"] == RECONNECT
    assert (platform.grants, len(platform.faults.waiting["graphql"])) == (granted + 1, 7)
    platform.faults.clear()
    result(await agent.call("platform_query", query=NAMES))


LONG = "[API] This action needs merchant approval for <read_orders>.\n" + "See &amp; read. " * 60


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, orjson.dumps({"errors": LONG}), LONG),
        (403, b'{"errors": {"scope": "no read_orders"}}', '{"scope":"no read_orders"}'),
        (404, b'{"errors": ["gone", "\\u0007"]}', '["gone","\\u0007"]'),
        (403, b"<html>Forbidden by\x00 shop</html>", "<html>Forbidden by\ufffd shop</html>"),
        (423, b"", "Shopify returned status 423."),
        (403, b"x" * 9_000, "x" * 3_999 + "\u2026"),
        (200, orjson.dumps({"errors": [{"message": LONG}]}), LONG),
    ],
)
async def test_what_the_platform_refuses_arrives_as_it_said_it(
    two_stores: TwoStores, platform: Platform, status: int, body: bytes, words: str
) -> None:
    agent = await connected(two_stores, platform)
    platform.faults.status(status, body=body)
    reported = refused(await agent.call("platform_query", query=NAMES))
    status = 400 if status == 200 else status
    assert reported.startswith(f"{words}\ncode: platform_denied\nplatformStatus: {status}")
    assert ("scope: read_orders" in reported) == ("read_orders" in words)


async def test_a_platform_out_of_reach_is_asked_again_later(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    platform.faults.status(503, times=9)
    answer = await relayed_503(agent)
    assert answer.json()["error"]["data"]["code"] == "commerce_unreachable"
    assert answer.headers["retry-after"] == "5"


NESTED = "{ products(first: 250) { nodes { variants(first: 102) { nodes { id } } } } }"


async def test_a_query_that_costs_too_much_is_refused_with_figures_and_delays_no_other(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    result(await agent.call("platform_query", query=NAMES))
    reported = refused(await agent.call("platform_query", query=NESTED))
    assert "costs 26,252 points, and at most 1,000 are allowed" in reported
    assert "code: query_too_costly\ncost: 26252\nmaxCost: 1000" in reported
    result(await agent.call("platform_query", query=NAMES))


async def test_a_size_that_is_no_number_is_refused_by_the_platform(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    query = "query P($first: Int!) { products(first: $first) { nodes { id } } }"
    for given in ('"many"', "[5]", "-1", "10000000000000000000000000"):
        asked = {"query": query, "variables": '{"first": %s}' % given}  # noqa: UP031 - braces
        assert "platform_denied" in refused(await agent.call("platform_query", **asked)), given


async def test_a_platform_that_throttles_is_not_called_out_of_reach_and_says_for_how_long(
    two_stores: TwoStores, platform: Platform
) -> None:
    agent = await connected(two_stores, platform)
    platform.faults.rate_limit(retry_after="299.2")
    answer = await relayed_503(agent)
    error = answer.json()["error"]
    assert (error["data"]["code"], error["data"]["retryAfter"]) == ("commerce_throttled", 300)
    assert "out of reach" not in error["message"]
    assert answer.headers["retry-after"] == "300"


async def test_an_answer_that_is_too_large_is_refused(
    two_stores: TwoStores, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.http.mcp.tools.platform.reading.ANSWER_BYTES", 20)
    agent = await connected(two_stores, platform)
    assert "answer_too_large" in refused(await agent.call("platform_query", query=NAMES))


async def test_the_token_of_another_store_is_never_used(
    two_stores: TwoStores, platform: Platform
) -> None:
    await connected(two_stores, platform)
    before = platform.requests
    await relayed_503(await two_stores.agent(two_stores.bob))
    assert platform.requests == before


def types() -> Iterator[tuple[str, Any]]:
    """Give every type that can be read, with what the platform published of it."""
    published = published_schema()
    if published is None:
        pytest.skip("the platform's published schema is not here")
    endings = [f"{name}{ending}" for name in NEEDS for ending in ("Connection", "Edge")]
    for name in (*FIELDS, *endings):
        kind = published.type_map.get(name)
        if name in endings and not any(name in known.values() for known in FIELDS.values()):
            continue
        assert isinstance(kind, GraphQLObjectType), name
        yield name, kind


def test_every_field_that_may_be_read_is_published_and_leads_to_no_person() -> None:
    for name, kind in types():
        assert name not in PERSONAL
        for field, inner in fields_of(name).items():
            found = kind.fields[field]
            assert found.deprecation_reason is None, (name, field)
            named = get_named_type(found.type)
            # A field of objects leads only where we say, and that is one of ours again.
            assert (named.name if is_object_type(named) else LEAF) == inner, (name, field)
            assert inner not in PERSONAL
            assert inner == LEAF or fields_of(inner), (name, field)
            wanted = ARGUMENTS.get((name, field), frozenset())
            assert wanted <= set(found.args), (name, field)
            needed = [one for one, arg in found.args.items() if str(arg.type).endswith("!")]
            assert set(needed) <= wanted, (name, field)


def test_every_field_can_be_asked_for_as_the_platform_wants_it() -> None:
    published = published_schema()
    if published is None:
        pytest.skip("the platform's published schema is not here")
    for field, inner in FIELDS[ROOT].items():
        one = {"id": '(id: "gid://shopify/X/1")'}
        given = one["id"] if "id" in ARGUMENTS.get((ROOT, field), ()) else ""
        if inner.endswith("Connection"):
            given = "(first: 1)"
        leaves = " ".join(name for name, kind in fields_of(inner).items() if kind == LEAF)
        query = f"{{ {field}{given} {{ __typename {leaves} }} }}"
        assert validate(published, parse(read(query).text)) == []
