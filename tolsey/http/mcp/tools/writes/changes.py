"""What the write tools take and answer, and the edit that each of them means."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.edits import Edit
from tolsey.http.mcp.registry import Hints
from tolsey.http.mcp.tools.answers import ItemId, LocationId, OrderId, ProductId, number_of
from tolsey.http.mcp.tools.building import ToolAnswer, ToolArguments
from tolsey.http.mcp.tools.shop_words import ShopText, ShopValues

MOST_MOVED: Final = 1_000_000
MOST_STOCKED: Final = 1_000_000_000
MOST_TAGS: Final = 20
LONGEST_TAG: Final = 40
"""Of the platform's order tags."""
LONGEST_TITLE: Final = 255
LONGEST_DESCRIPTION: Final = 60_000
LONGEST_NOTE: Final = 2_000
LONGEST_VERSION: Final = 64


def _worded(text: str) -> str:
    """Strip a text, which must say something."""
    stripped = text.strip()
    if not stripped:
        raise ValueError("it says nothing")
    return stripped


WORDED: Final = AfterValidator(_worded)

Key = Annotated[
    str,
    Field(
        min_length=8,
        max_length=64,
        pattern=r"^[!-~]+$",
        description="One for each change; the same to repeat it.",
    ),
]
Line = Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE), WORDED]
Note = Annotated[str, Field(min_length=1, max_length=LONGEST_NOTE), WORDED]
Tag = Annotated[str, Field(max_length=LONGEST_TAG, pattern=r"^[^,\x00-\x1f]+$"), WORDED]
Status: TypeAlias = Literal["applied", "planned", "replayed", "rejected", "unknown"]


class WriteArguments(ToolArguments):
    """What every change takes."""

    idempotency_key: Key
    dry_run: Annotated[bool, Field(description="Plan only, and change nothing.")] = False


class EditArguments(WriteArguments):
    """What every change of the shop takes."""

    plan_token: Annotated[str | None, Field(description="Of the dry_run.")] = None
    expected_version: Annotated[
        Annotated[str, Field(min_length=1, max_length=LONGEST_VERSION)] | None,
        Field(description="Change it only if it is still this version."),
    ] = None


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
            raise ValueError("give something to change")
        return self


class ProductStatus(EditArguments):
    """Whether a product is sold."""

    product_id: ProductId
    status: Annotated[
        Literal["ACTIVE", "DRAFT", "ARCHIVED"], Field(description="ACTIVE is on sale.")
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


class WriteResult(ToolAnswer):
    """What became of a change."""

    operation_id: str
    status: Status
    before: ShopValues | None = None
    after: ShopValues | None = None
    version: str | None = None
    audit_id: str | None = None
    plan_token: str | None = None
    plan_expires_at: datetime | None = None
    code: str | None = None
    detail: ShopText | None = None


@dataclass(frozen=True, slots=True)
class WriteTool:
    """A write tool: its arguments, the edit they mean, and what the user must have granted."""

    name: str
    title: str
    description: str
    arguments: type[EditArguments]
    edit: Callable[[Any], Edit]
    scope: str
    is_destructive: bool = False
    """Whether something that was there can be gone after it."""
    needs_plan: bool = False
    """Whether texts are overwritten that nothing brings back, so that a person sees them first."""

    @property
    def hints(self) -> Hints:
        """What a call can do: with its key, the same call changes nothing twice."""
        return Hints(
            read_only=False, destructive=self.is_destructive, idempotent=True, open_world=False
        )


def product_values(given: ProductChange) -> Mapping[str, Any]:
    """Gather what is given of a product."""
    names = ("title", "description_html", "vendor", "product_type", "tags")
    values = {name: getattr(given, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _id(text: str, what: str) -> str:
    """Read an id into its one spelling."""
    return str(number_of(text, what))


def _product(given: ProductChange) -> Edit:
    return Edit(
        kind=edits.PRODUCT, ids=(_id(given.product_id, "product"),), wanted=product_values(given)
    )


def _status(given: ProductStatus) -> Edit:
    return Edit(
        kind=edits.PRODUCT, ids=(_id(given.product_id, "product"),), wanted={"status": given.status}
    )


def _stock(given: StockChange) -> Edit:
    ids = (
        _id(given.inventory_item_id, "inventory item"),
        _id(given.location_id, "location"),
    )
    return Edit(
        kind=edits.STOCK, ids=ids, wanted={"delta": given.delta, "compare": given.compare_quantity}
    )


def _note(given: OrderNote) -> Edit:
    text = given.note.replace("\r\n", "\n")
    return Edit(kind=edits.NOTE, ids=(_id(given.order_id, "order"),), wanted={"text": text})


def _tags(given: OrderTags) -> Edit:
    tags = list({tag.casefold(): tag for tag in given.tags}.values())
    return Edit(kind=edits.TAGS, ids=(_id(given.order_id, "order"),), wanted={"tags": tags})


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
)
