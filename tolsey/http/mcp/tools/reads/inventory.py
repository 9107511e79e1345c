"""Stock: how many of an item are where, and what runs out."""

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.answers import (
    Id,
    ItemId,
    LocationId,
    MaybeId,
    ProductId,
    number_of,
)
from tolsey.http.mcp.tools.building import ToolAnswer, reads
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.reads.facts import FactsPart, FactsTools
from tolsey.http.mcp.tools.shop_words import ShopText
from tolsey.storage.database import Row
from tolsey.storage.reports import catalog

SCOPES: Final = frozenset({"inventory:read"})
LARGEST_THRESHOLD: Final = 100_000
FEW: Final = 5


class LevelQuery(PageArguments):
    """Whose stock."""

    product_id: ProductId | None = None
    inventory_item_id: ItemId | None = None
    location_id: LocationId | None = None


class Level(ToolAnswer):
    """How many of an item a location has; the item is not tracked when `available` is absent."""

    inventory_item_id: Id
    location_id: Id
    available: int | None
    updated_at: datetime


class LowStockQuery(PageArguments):
    """How few are few."""

    threshold: Annotated[
        int,
        Field(ge=-LARGEST_THRESHOLD, le=LARGEST_THRESHOLD, description="So many left, or fewer."),
    ] = FEW
    include_unlisted: Annotated[
        bool, Field(description="Also products that are drafts or archived.")
    ] = False


class LowStock(ToolAnswer):
    """A variant that runs out; `tracked` is absent until the shop told whether anybody counts it."""

    product_id: Id
    product_title: ShopText | None
    variant_id: Id
    variant_title: ShopText | None
    sku: ShopText | None
    inventory_item_id: MaybeId
    tracked: bool | None
    available: int


class InventoryTools(FactsTools):
    """Reads stock for whoever the gate admitted."""

    levels = Pages("list_inventory_levels", int, int)
    low = Pages("get_low_stock_report", int, int)

    @reads(
        "list_inventory_levels",
        "List stock",
        "Lists how many of each inventory item each location has, of all or of one"
        " product, item or location.",
        scopes=SCOPES,
    )
    async def list(self, principal: Principal, asked: LevelQuery) -> FactsPart[Level]:
        """List stock."""
        database = self._reports(principal)
        shop = principal.shop_key
        items: list[int] | None = None
        if asked.inventory_item_id is not None:
            items = [number_of(asked.inventory_item_id, "inventory item")]
        if asked.product_id is not None:
            owned = await catalog.items_of(database, shop, number_of(asked.product_id, "product"))
            items = owned if items is None else [one for one in items if one in owned]
        location = asked.location_id
        found = await catalog.levels(
            database,
            shop,
            self.levels.after(asked),
            asked.limit + 1,
            location_id=None if location is None else number_of(location, "location"),
            items=items,
        )
        part = self.levels.part(
            found,
            asked,
            key=lambda row: (row["inventory_item_id"], row["location_id"]),
            show=Level.read,
        )
        return FactsPart[Level].read(part, facts_since=await self._since(principal))

    @reads(
        "get_low_stock_report",
        "Report low stock",
        "Lists variants with no more than `threshold` left over all locations, fewest"
        " first; none known to be untracked.",
        scopes=SCOPES,
    )
    async def report(self, principal: Principal, asked: LowStockQuery) -> FactsPart[LowStock]:
        """List what runs out."""
        found = await catalog.low(
            self._reports(principal),
            principal.shop_key,
            asked.threshold,
            self.low.after(asked),
            asked.limit + 1,
            drafts=asked.include_unlisted,
        )
        part = self.low.part(
            found, asked, key=lambda row: (row["available"], row["variant_id"]), show=_low
        )
        return FactsPart[LowStock].read(part, facts_since=await self._since(principal))


def _low(row: Row) -> LowStock:
    return LowStock.read(
        row,
        product_title=row["product"],
        variant_title=row["variant"],
        inventory_item_id=row["item"],
    )
