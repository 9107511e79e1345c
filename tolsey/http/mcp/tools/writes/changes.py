"""What the write tools take, and the edit that each of them means."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.http.mcp.tools.answers import ItemId, LocationId, OrderId, ProductId, VariantId
from tolsey.http.mcp.tools.building import ToolArguments
from tolsey.http.mcp.tools.writes.contract import (
    WORDED,
    EditArguments,
    GivenMoney,
    WriteTool,
    id_in,
)
from tolsey.http.mcp.tools.writes.discounts import CREATE_DISCOUNT
from tolsey.http.mcp.tools.writes.drafts import DRAFTING
from tolsey.http.mcp.tools.writes.fulfilment import SENDING
from tolsey.http.mcp.tools.writes.refunds import REFUND_ORDER

MOST_MOVED: Final = 1_000_000
MOST_STOCKED: Final = 1_000_000_000
MOST_PRICED: Final = 100
MOST_TAGS: Final = 20
LONGEST_TAG: Final = 40
"""Of the platform's order tags."""
LONGEST_TITLE: Final = 255
LONGEST_DESCRIPTION: Final = 60_000
LONGEST_NOTE: Final = 2_000


Line = Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE), WORDED]
Note = Annotated[str, Field(min_length=1, max_length=LONGEST_NOTE), WORDED]
Tag = Annotated[str, Field(max_length=LONGEST_TAG, pattern=r"^[^,\x00-\x1f]+$"), WORDED]


class ProductChange(EditArguments):
    """What a product is to be; what is not given stays."""

    product_id: ProductId
    title: Annotated[Line | None, Field(description="The new title.")] = None
    description_html: Annotated[
        Annotated[str, Field(max_length=LONGEST_DESCRIPTION)] | None,
        Field(description="The new description, as HTML."),
    ] = None
    vendor: Annotated[Line | None, Field(description="The new vendor.")] = None
    product_type: Annotated[
        Annotated[str, Field(max_length=LONGEST_TITLE)] | None,
        Field(description="The new type."),
    ] = None
    tags: Annotated[
        Annotated[list[Tag], Field(max_length=250)] | None,
        Field(description="All its tags from now on."),
    ] = None

    @model_validator(mode="after")
    def _something(self) -> "ProductChange":
        if not product_values(self):
            raise ValueError("name at least one field to change")
        return self


class ProductStatus(EditArguments):
    """Whether a product is sold."""

    product_id: ProductId
    status: Annotated[
        Literal["ACTIVE", "DRAFT", "ARCHIVED"], Field(description="ACTIVE is on sale.")
    ]


class VariantPrices(ToolArguments):
    """What a variant is to cost; what is not given stays."""

    variant_id: VariantId
    price: GivenMoney | None = None
    compare_at_price: Annotated[
        GivenMoney | None, Field(description="Shown struck through; 0 takes it away.")
    ] = None

    @model_validator(mode="after")
    def _something(self) -> "VariantPrices":
        if self.price is None and self.compare_at_price is None:
            raise ValueError("name at least one price")
        return self


class PriceChange(EditArguments):
    """What variants of a product are to cost."""

    product_id: ProductId
    prices: Annotated[
        list[VariantPrices],
        Field(min_length=1, max_length=MOST_PRICED, description="Of its variants, all or none."),
    ]


class StockChange(EditArguments):
    """By how much the available quantity changes, and what it must be before, if that matters."""

    inventory_item_id: ItemId
    location_id: LocationId
    delta: Annotated[
        int, Field(ge=-MOST_MOVED, le=MOST_MOVED, description="How many more; fewer if negative.")
    ]
    compare_quantity: Annotated[
        Annotated[int, Field(ge=-MOST_STOCKED, le=MOST_STOCKED)] | None,
        Field(description="Change it only if so many are there."),
    ] = None


class OrderNote(EditArguments):
    """What is added to an order's note."""

    order_id: OrderId
    note: Annotated[Note, Field(description="The lines to add.")]


class OrderTags(EditArguments):
    """What an order is tagged with."""

    order_id: OrderId
    tags: Annotated[
        list[Tag], Field(min_length=1, max_length=MOST_TAGS, description="The tags to add.")
    ]


def product_values(given: ProductChange) -> Mapping[str, Any]:
    """Gather what is given of a product."""
    names = ("title", "description_html", "vendor", "product_type", "tags")
    values = {name: getattr(given, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _product(given: ProductChange) -> Edit:
    return Edit(
        kind=edits.PRODUCT, ids=(id_in(given.product_id, "product"),), wanted=product_values(given)
    )


def _status(given: ProductStatus) -> Edit:
    return Edit(
        kind=edits.PRODUCT,
        ids=(id_in(given.product_id, "product"),),
        wanted={"status": given.status},
    )


def _prices(given: PriceChange) -> Edit:
    prices: dict[str, dict[str, Any]] = {}
    for one in given.prices:
        wanted = prices.setdefault(id_in(one.variant_id, "variant"), {})
        if one.price is not None:
            wanted["price"] = one.price.pair
        if one.compare_at_price is not None:
            compared = one.compare_at_price.pair
            wanted["compare_at_price"] = compared if compared["amount"] else None
    return Edit(
        kind=edits.PRICE, ids=(id_in(given.product_id, "product"),), wanted={"prices": prices}
    )


def _stock(given: StockChange) -> Edit:
    ids = (
        id_in(given.inventory_item_id, "inventory item"),
        id_in(given.location_id, "location"),
    )
    return Edit(
        kind=edits.STOCK, ids=ids, wanted={"delta": given.delta, "compare": given.compare_quantity}
    )


def _note(given: OrderNote) -> Edit:
    text = given.note.replace("\r\n", "\n")
    return Edit(kind=edits.NOTE, ids=(id_in(given.order_id, "order"),), wanted={"text": text})


def _tags(given: OrderTags) -> Edit:
    tags = list({tag.casefold(): tag for tag in given.tags}.values())
    return Edit(kind=edits.TAGS, ids=(id_in(given.order_id, "order"),), wanted={"tags": tags})


CHANGES: Final = (
    WriteTool(
        "update_product",
        "Update a product",
        "Overwrites texts or tags of a product. Call with dry_run first and repeat with its"
        " plan_token, unless your client lets its user confirm.",
        ProductChange,
        _product,
        "catalog:write",
        is_destructive=True,
        needs_plan=True,
    ),
    WriteTool(
        "set_product_status",
        "Set a product's status",
        "Puts a product on sale (ACTIVE) or takes it off (DRAFT, ARCHIVED).",
        ProductStatus,
        _status,
        "catalog:write",
        is_destructive=True,
    ),
    WriteTool(
        "change_price",
        "Change prices",
        "Overwrites prices of a product's variants, all or none. Call with dry_run first, as"
        " update_product.",
        PriceChange,
        _prices,
        "catalog:write",
        is_destructive=True,
        needs_plan=True,
    ),
    WriteTool(
        "adjust_inventory",
        "Adjust inventory",
        "Changes what is available of an item at a location by delta; with compare_quantity only"
        " if that many are there.",
        StockChange,
        _stock,
        "inventory:write",
        is_destructive=True,
    ),
    WriteTool(
        "add_order_note",
        "Add to an order's note",
        "Adds lines to an order's note, unless they are there.",
        OrderNote,
        _note,
        "orders:write",
    ),
    WriteTool(
        "tag_order",
        "Tag an order",
        "Adds tags to an order; those it has stay.",
        OrderTags,
        _tags,
        "orders:write",
    ),
    *SENDING,
    REFUND_ORDER,
    CREATE_DISCOUNT,
    *DRAFTING,
)
