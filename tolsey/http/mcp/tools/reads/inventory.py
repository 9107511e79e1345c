"""Stock: how many of an item are where, and what runs out."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import READS, Tool
from tolsey.http.mcp.tools.answers import ItemId, LocationId, ProductId, number_of
from tolsey.http.mcp.tools.building import Answer, tool
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.reads import facts
from tolsey.http.mcp.tools.reads.facts import FactsAnswer
from tolsey.http.web.context import Service
from tolsey.storage.reports import catalog

SCOPES: Final = frozenset({"inventory:read"})
LARGEST_THRESHOLD: Final = 100_000
FEW: Final = 5


class LevelQuery(PageArguments):
    """Whose stock."""

    product_id: ProductId | None = None
    inventory_item_id: ItemId | None = None
    location_id: LocationId | None = None


class Level(Answer):
    """How many of an item a location has; the item is not tracked when `available` is absent."""

    inventory_item_id: str
    location_id: str
    available: int | None
    updated_at: datetime


class LevelPage(FactsAnswer):
    """A part of the stock."""

    items: list[Level]
    next_cursor: str | None


class LowStockQuery(PageArguments):
    """How few are few."""

    threshold: Annotated[
        int,
        Field(ge=-LARGEST_THRESHOLD, le=LARGEST_THRESHOLD, description="So many left, or fewer."),
    ] = FEW
    include_unlisted: Annotated[
        bool, Field(description="Also products that are drafts or archived.")
    ] = False


class LowStock(Answer):
    """A variant that runs out; `tracked` is absent until the shop told whether anybody counts it."""

    product_id: str
    product_title: str | None
    variant_id: str
    variant_title: str | None
    sku: str | None
    inventory_item_id: str | None
    tracked: bool | None
    available: int


class LowStockPage(FactsAnswer):
    """A part of what runs out."""

    items: list[LowStock]
    next_cursor: str | None


class InventoryTools:
    """Reads stock for whoever the gate admitted."""

    levels = Pages("list_inventory_levels", int, int)
    low = Pages("get_low_stock_report", int, int)

    def __init__(self, service: Service) -> None:
        self._service = service

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return [
            tool(
                "list_inventory_levels",
                "List stock",
                "Lists how many of each inventory item each location has, of all or of one"
                " product, item or location.",
                arguments=LevelQuery,
                answer=LevelPage,
                run=self.list,
                scopes=SCOPES,
                hints=READS,
            ),
            tool(
                "get_low_stock_report",
                "Report low stock",
                "Lists variants with no more than `threshold` left over all locations, fewest"
                " first; none known to be untracked.",
                arguments=LowStockQuery,
                answer=LowStockPage,
                run=self.report,
                scopes=SCOPES,
                hints=READS,
            ),
        ]

    async def list(self, principal: Principal, asked: LevelQuery) -> LevelPage:
        """List stock."""
        database = self._service.reports.of(principal.organization_id)
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
        part, following = self.levels.cut(
            found, asked, lambda row: (row["inventory_item_id"], row["location_id"])
        )
        return LevelPage(
            facts_since=await facts.since(self._service, principal),
            items=[
                Level(
                    inventory_item_id=str(row["inventory_item_id"]),
                    location_id=str(row["location_id"]),
                    available=row["available"],
                    updated_at=row["updated_at"],
                )
                for row in part
            ],
            next_cursor=following,
        )

    async def report(self, principal: Principal, asked: LowStockQuery) -> LowStockPage:
        """List what runs out."""
        found = await catalog.low(
            self._service.reports.of(principal.organization_id),
            principal.shop_key,
            asked.threshold,
            self.low.after(asked),
            asked.limit + 1,
            drafts=asked.include_unlisted,
        )
        part, following = self.low.cut(
            found, asked, lambda row: (row["available"], row["variant_id"])
        )
        return LowStockPage(
            facts_since=await facts.since(self._service, principal),
            items=[
                LowStock(
                    product_id=str(row["product_id"]),
                    product_title=row["product"],
                    variant_id=str(row["variant_id"]),
                    variant_title=row["variant"],
                    sku=row["sku"],
                    inventory_item_id=None if row["item"] is None else str(row["item"]),
                    tracked=row["tracked"],
                    available=row["available"],
                )
                for row in part
            ],
            next_cursor=following,
        )
