"""The stand-in's mutations behave as the platform's: scopes, refusals, keys, deliveries."""

from typing import Any

import pytest

from tests.sandbox.commerce.conftest import NOW, SHOP
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.products import LOCATION_ID, Product, Variant
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, WRITE_SCOPES, ShopSpec

pytestmark = pytest.mark.anyio

UPDATE = """mutation($p: ProductUpdateInput!) { productUpdate(product: $p) {
  product { title tags status descriptionHtml } userErrors { field message } } }"""
ADJUST = """mutation($i: InventoryAdjustQuantitiesInput!, $k: String!) {
  inventoryAdjustQuantities(input: $i) @idempotent(key: $k) {
    inventoryAdjustmentGroup { id reason changes { delta quantityAfterChange } }
    userErrors { code field message } } }"""
ITEM = 71


@pytest.fixture
def platform() -> Platform:
    platform = Platform(now=NOW, frozen_clock=True)
    product = Product(7, "Shirt", "shirt", NOW, NOW, tags=("warm",))
    product.variants = [Variant(70, ITEM, "M", "S-M", 1990, available=5, product=product)]
    platform.add_shop(
        ShopSpec(domain=SHOP, scopes=(*ALL_SCOPES, *WRITE_SCOPES), products=[product])
    )
    return platform


def moved(delta: int, expected: int | None = None, **changed: Any) -> dict[str, Any]:
    change = {
        "delta": delta,
        "changeFromQuantity": expected,
        "inventoryItemId": f"gid://shopify/InventoryItem/{ITEM}",
        "locationId": f"gid://shopify/Location/{LOCATION_ID}",
        **changed,
    }
    return {"name": "available", "reason": "correction", "changes": [change]}


async def adjusted(app: Any, asked: dict[str, Any], key: str = "k1") -> dict[str, Any]:
    found: dict[str, Any] = (await app.ask(ADJUST, i=asked, k=key))["inventoryAdjustQuantities"]
    return found


async def test_a_product_is_updated_and_delivered(app: Any, receiver: Any) -> None:
    await app.subscribe("PRODUCTS_UPDATE", receiver.uri)
    asked = {"id": "gid://shopify/Product/7", "title": "Blouse", "tags": ["b", "a", "B"]}
    answered = (await app.ask(UPDATE, p=asked))["productUpdate"]
    assert answered["product"] == {
        "title": "Blouse",
        "tags": ["a", "b"],
        "status": "ACTIVE",
        "descriptionHtml": "",
    }
    await app.platform.deliveries.settled()
    assert receiver.topics() == ["products/update"]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"id": "gid://shopify/Product/8", "title": "x"}, "id"),
        ({"id": "gid://shopify/Product/7", "title": " "}, "title"),
        ({"id": "gid://shopify/Product/7", "title": "x" * 256}, "title"),
    ],
)
async def test_a_wrong_update_is_a_user_error(app: Any, asked: dict[str, str], field: str) -> None:
    answered = (await app.ask(UPDATE, p=asked))["productUpdate"]
    assert (answered["product"], answered["userErrors"][0]["field"]) == (None, [field])


async def test_stock_moves_once_for_each_key(app: Any) -> None:
    first = await adjusted(app, moved(-2, 5))
    assert first["inventoryAdjustmentGroup"]["changes"] == [{"delta": -2, "quantityAfterChange": 3}]
    assert await adjusted(app, moved(-2, 5)) == first
    other = await adjusted(app, moved(-1, 3))
    assert other["userErrors"][0]["code"] == "IDEMPOTENCY_KEY_PARAMETER_MISMATCH"
    assert app.platform.shop(SHOP).products[7].stock == 3


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (moved(-2, 4), "CHANGE_FROM_QUANTITY_STALE"),
        (moved(1, inventoryItemId="gid://shopify/InventoryItem/9"), "INVALID_INVENTORY_ITEM"),
        (moved(1, locationId="gid://shopify/Location/9"), "INVALID_LOCATION"),
        (moved(2_000_000_000), "INVALID_QUANTITY_TOO_HIGH"),
        ({**moved(1), "name": "reserved"}, "INVALID_QUANTITY_NAME"),
        ({**moved(1), "reason": "because"}, "INVALID_REASON"),
    ],
)
async def test_stock_that_cannot_move_stays(app: Any, asked: dict[str, Any], code: str) -> None:
    answered = await adjusted(app, asked)
    assert answered["userErrors"][0]["code"] == code
    assert app.platform.shop(SHOP).products[7].stock == 5


async def test_stock_never_moves_without_a_key(app: Any) -> None:
    bare = ADJUST.replace("@idempotent(key: $k)", "").replace(", $k: String!", "")
    answer = (await app.post(bare, i=moved(1))).json()
    assert "@idempotent" in answer["errors"][0]["message"]
    assert app.platform.shop(SHOP).products[7].stock == 5


BARE = {
    "productUpdate": 'product: {id: "gid://shopify/Product/7"}',
    "tagsAdd": 'id: "gid://shopify/Order/1", tags: ["a"]',
    "orderUpdate": 'input: {id: "gid://shopify/Order/1"}',
}


@pytest.mark.parametrize(("field", "arguments"), BARE.items())
async def test_reading_is_not_enough_to_write(app: Any, field: str, arguments: str) -> None:
    app.platform.shop(SHOP).scopes = ALL_SCOPES
    document = f"mutation {{ {field}({arguments}) {{ userErrors {{ message }} }} }}"
    answer = (await app.post(document)).json()
    assert answer["errors"][0]["extensions"]["code"] == "ACCESS_DENIED"
    assert field in answer["errors"][0]["message"]


async def test_an_order_takes_a_note_and_tags(app: Any) -> None:
    order = app.platform.place_order(SHOP)
    gid = f"gid://shopify/Order/{order.id}"
    answered = await app.ask(
        "mutation($i: OrderInput!) { orderUpdate(input: $i) { order { note } "
        "userErrors { message } } }",
        i={"id": gid, "note": "Wrap it"},
    )
    assert answered["orderUpdate"]["order"] == {"note": "Wrap it"}
    for _ in range(2):
        answered = await app.ask(
            'mutation($id: ID!) { tagsAdd(id: $id, tags: ["b", "a"]) '
            "{ node { ... on Order { tags } } userErrors { message } } }",
            id=gid,
        )
    assert answered["tagsAdd"]["node"] == {"tags": ["a", "b"]}


async def test_a_lost_answer_is_to_what_was_done(app: Any) -> None:
    app.platform.faults.lose()
    assert (await app.post("{ shop { name } }")).status_code == 200
    with pytest.raises(Exception, match="peer closed connection"):
        await adjusted(app, moved(-2, 5))
    assert app.platform.shop(SHOP).products[7].stock == 3
