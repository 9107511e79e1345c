"""What is changed in a shop: valid documents, one sending, and no word taken for more than it says."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from graphql import NoDeprecatedCustomRule, parse, specified_rules, validate

from tests.http.clients.commerce.test_documents import PUBLISHED, published
from tests.http.clients.commerce.wire import SHOP, Says, data, wired
from tolsey.actors.edit import Edit
from tolsey.actors.ports import EditRefused, PlatformDenied, PlatformUnreachable
from tolsey.http.clients.commerce.edits import discounts, fulfilment, orders, products, refunds

pytestmark = pytest.mark.anyio

DOCUMENTS = [
    text
    for module in (discounts, fulfilment, orders, products, refunds)
    for text in vars(module).values()
    if isinstance(text, str) and text.strip().startswith(("query ", "mutation "))
]


def planned(kind: str, *ids: str, **change: Any) -> Edit:
    return Edit(kind=kind, ids=ids, wanted=change, change=change)


RENAMED = planned("product", "7", title="Green")
MOVED = planned("stock", "7", "1", **{"delta": -3, "from": 10})
TAGGED = planned("tags", "9", tags=["a"])
EUROS = {"amount": 1990, "currency": "EUR"}
PRICED = planned(
    "price", "7", currency="EUR", prices={"70": {"price": EUROS, "compare_at_price": None}}
)
ANSWERED = {
    "title": "Green",
    "descriptionHtml": "",
    "handle": "green",
    "productType": "",
    "status": "ACTIVE",
    "tags": ["b", "a"],
    "vendor": "Loom",
}


@pytest.mark.skipif(not Path(PUBLISHED).is_file(), reason="the shared data are not here")
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_document_is_valid_by_the_published_schema(document: str) -> None:
    rules = [*specified_rules, NoDeprecatedCustomRule]
    assert validate(published(), parse(document), rules) == []


async def test_a_product_is_read_in_our_words() -> None:
    async with wired(data(product=ANSWERED), data(product=None)) as wire, wire.client() as client:
        found = await client.look(SHOP, RENAMED)
        assert found is not None
        assert (found["title"], found["tags"]) == ("Green", ["a", "b"])
        assert await client.look(SHOP, replace(RENAMED, ids=("8",))) is None
        assert [one.variables["id"] for one in wire.asked] == [
            "gid://shopify/Product/7",
            "gid://shopify/Product/8",
        ]


@pytest.mark.parametrize(
    ("item", "found"),
    [
        (None, None),
        ({"inventoryLevel": None}, None),
        ({"inventoryLevel": {"quantities": [{"quantity": -2}]}}, {"available": -2}),
    ],
)
async def test_stock_is_what_is_available_at_the_place(item: Any, found: Any) -> None:
    async with wired(data(inventoryItem=item)) as wire, wire.client() as client:
        assert await client.look(SHOP, MOVED) == found


async def test_only_what_is_wanted_of_a_product_is_sent() -> None:
    answer = data(productUpdate={"product": ANSWERED, "userErrors": []})
    async with wired(answer) as wire, wire.client() as client:
        await client.change(SHOP, RENAMED, "op:0")
        sent = {"title": "Green", "id": "gid://shopify/Product/7"}
        assert wire.asked[0].variables == {"product": sent}


async def test_stock_is_sent_with_what_it_must_be_and_a_key() -> None:
    answer = data(inventoryAdjustQuantities={"inventoryAdjustmentGroup": {"id": "1"}})
    async with wired(answer) as wire, wire.client() as client:
        after = await client.change(SHOP, MOVED, "op:0")
        assert after == {"available": 7}
        variables = wire.asked[0].variables
        assert variables["key"] == "op:0"
        assert variables["input"]["changes"][0]["changeFromQuantity"] == 10
        assert variables["input"]["referenceDocumentUri"] == "gid://tolsey/Operation/op"


async def test_prices_are_those_of_the_products_own_variants_in_minor_units() -> None:
    own = {"id": "gid://shopify/Product/7"}
    variant = {"id": "gid://shopify/ProductVariant/70", "price": "19.9", "compareAtPrice": "0.0"}
    answer = data(
        shop={"currencyCode": "EUR"},
        product=own,
        nodes=[{**variant, "product": own}, None, {}, {**variant, "product": {"id": "other"}}],
    )
    async with wired(answer) as wire, wire.client() as client:
        assert await client.look(SHOP, PRICED) == {
            "currency": "EUR",
            "prices": {"70": {"price": EUROS, "compare_at_price": None}},
        }


async def test_a_price_is_sent_as_text_and_none_takes_one_away() -> None:
    variant = {"id": "gid://shopify/ProductVariant/70", "price": "19.90", "compareAtPrice": None}
    answer = data(productVariantsBulkUpdate={"productVariants": [variant], "userErrors": []})
    async with wired(answer) as wire, wire.client() as client:
        after = await client.change(SHOP, PRICED, "op:0")
        assert after["prices"]["70"]["price"] == EUROS
        assert wire.asked[0].variables["variants"] == [variant]


@pytest.mark.parametrize(
    "says",
    [
        Says(500),
        Says(200, b"<html>"),
        Says(raw=b"HTTP/1.1 200 x\r\nContent-Length: 999\r\n\r\n{"),
        Says(302),
        Says(body={"data": {"tagsAdd": None}}),
        Says(body={"data": {"tagsAdd": None}, "errors": [{"message": "Odd", "path": ["tagsAdd"]}]}),
        Says(body={"data": {"tagsAdd": {"node": None, "userErrors": []}}}),
        Says(body={"errors": [{"message": "x", "extensions": {"code": "INTERNAL_SERVER_ERROR"}}]}),
    ],
)
async def test_a_change_whose_answer_says_nothing_may_be_done_and_is_not_sent_again(
    says: Says,
) -> None:
    async with wired(says) as wire, wire.client() as client:
        with pytest.raises(PlatformUnreachable) as lost:
            await client.change(SHOP, TAGGED, "op:0")
        assert lost.value.maybe_done
        assert len(wire.asked) == 1


async def test_a_change_that_is_turned_away_is_surely_not_done() -> None:
    says = Says(429, {"errors": "Exceeded"}, {"Retry-After": "600"})
    async with wired(says) as wire, wire.client() as client:
        with pytest.raises(PlatformUnreachable) as away:
            await client.change(SHOP, TAGGED, "op:0")
        assert not away.value.maybe_done


@pytest.mark.parametrize(
    ("code", "stale"), [("CHANGE_FROM_QUANTITY_STALE", True), ("OTHER", False)]
)
async def test_a_user_error_is_a_refusal_in_the_platforms_words(code: str, *, stale: bool) -> None:
    error = {"code": code, "field": ["x"], "message": "No longer so."}
    payload = {"inventoryAdjustmentGroup": None, "userErrors": [error]}
    async with wired(data(inventoryAdjustQuantities=payload)) as wire, wire.client() as client:
        with pytest.raises(EditRefused) as refused:
            await client.change(SHOP, MOVED, "op:0")
        assert (refused.value.message, refused.value.stale) == ("No longer so.", stale)


@pytest.mark.parametrize(
    ("errors", "status"),
    [
        (
            [{"message": "Denied", "path": ["tagsAdd"], "extensions": {"code": "ACCESS_DENIED"}}],
            403,
        ),
        ([{"message": "Variable $id is invalid"}], 400),
    ],
)
async def test_what_the_platform_denies_is_not_done(errors: list[Any], status: int) -> None:
    says = Says(body={"data": {"tagsAdd": None}, "errors": errors})
    async with wired(says) as wire, wire.client() as client:
        with pytest.raises(PlatformDenied) as denied:
            await client.change(SHOP, TAGGED, "op:0")
        assert (denied.value.status, denied.value.message) == (status, errors[0]["message"])
