"""Products: what a store sells."""

from datetime import datetime
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools import answers
from tolsey.http.mcp.tools.answers import (
    DecimalMoney,
    Id,
    MaybeId,
    Tags,
    number_of,
    one_of,
    said_of,
    written_money,
)
from tolsey.http.mcp.tools.building import ToolAnswer, ToolArguments, reads
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.reads.facts import FactsPart, FactsTools
from tolsey.http.mcp.tools.shop_words import ShopText
from tolsey.storage.database import Row
from tolsey.storage.reports import catalog
from tolsey.storage.reports.catalog import ProductFilter

SCOPES: Final = frozenset({"catalog:read"})
MOST_WORDS: Final = 10
WHAT: Final = "product"
STATUS: Final = {name: name for name in ("active", "draft", "archived", "unlisted")}


class ProductQuery(PageArguments):
    """Which products."""

    status: Annotated[str, one_of(STATUS), said_of(STATUS)] | None = None
    vendor: Annotated[str, Field(max_length=255, description="Of this vendor.")] | None = None
    product_type: Annotated[str, Field(max_length=255, description="Of this type.")] | None = None


class ProductSearch(PageArguments):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=200, description="Words to look for.")]


class ProductId(ToolArguments):
    """Which product."""

    product_id: answers.ProductId


class ProductHit(ToolAnswer):
    """A product that was found."""

    id: Id
    title: ShopText | None
    status: str | None


class ProductSummary(ProductHit):
    """A product."""

    vendor: ShopText | None
    product_type: ShopText | None
    variant_count: int
    updated_at: datetime


class VariantDetail(ToolAnswer):
    """What can be bought of a product."""

    id: Id
    title: ShopText | None
    sku: ShopText | None
    price: DecimalMoney | None
    inventory_item_id: MaybeId
    inventory_quantity: int | None
    tracked: bool | None


class ProductDetail(ProductSummary):
    """A product with its variants; of more than 250, those are the first."""

    handle: ShopText | None
    published_at: datetime | None
    tags: Tags
    variants: list[VariantDetail]


class CatalogTools(FactsTools):
    """Reads products for whoever the gate admitted."""

    listed = Pages("list_products", int)
    searched = Pages("search_products", int)

    @reads(
        "list_products",
        "List products",
        "Lists products, newest first.",
        scopes=SCOPES,
    )
    async def list(self, principal: Principal, asked: ProductQuery) -> FactsPart[ProductSummary]:
        """List products."""
        wanted = ProductFilter(
            status=asked.status, vendor=asked.vendor, product_type=asked.product_type
        )
        before = self.listed.number_after(asked)
        found = await catalog.page(
            self._reports(principal),
            principal.shop_key,
            wanted,
            before,
            asked.limit + 1,
        )
        part = self.listed.part(found, asked, key=_key, show=summary_of)
        return FactsPart[ProductSummary].read(part, facts_since=await self._since(principal))

    @reads(
        "search_products",
        "Search products",
        "Finds products whose title, handle, vendor, type, tags, variants or SKUs hold every word.",
        scopes=SCOPES,
    )
    async def search(self, principal: Principal, asked: ProductSearch) -> FactsPart[ProductHit]:
        """Find products."""
        before = self.searched.number_after(asked)
        found = await catalog.search(
            self._reports(principal),
            principal.shop_key,
            words_of(asked.query),
            before,
            asked.limit + 1,
        )
        part = self.searched.part(found, asked, key=_key, show=_hit)
        return FactsPart[ProductHit].read(part, facts_since=await self._since(principal))

    @reads(
        "get_product",
        "Get a product",
        "Reads one product with its variants, prices and stock.",
        scopes=SCOPES,
    )
    async def get(self, principal: Principal, asked: ProductId) -> ProductDetail:
        """Read one product."""
        product_id = number_of(asked.product_id, WHAT)
        found = await catalog.find(self._service.database, principal.shop_key, product_id)
        if found is None:
            raise await self._unknown(principal, WHAT)
        return detail_of(found)


def words_of(text: str) -> list[str]:
    """Split what somebody looks for into words."""
    return text.split()[:MOST_WORDS]


def _key(row: Row) -> tuple[int]:
    return (row["product_id"],)


def _hit(row: Row) -> ProductHit:
    return ProductHit.read(row, id=row["product_id"])


def summary_of(row: Row) -> ProductSummary:
    """Show a product in a list."""
    return ProductSummary.read(row, id=row["product_id"])


def detail_of(row: Row) -> ProductDetail:
    """Show a product whole; a price is in the shop's currency."""
    variants: list[dict[str, Any]] = orjson.loads(row["variants"])
    return ProductDetail.read(
        row, id=row["product_id"], variants=[_variant(one, row["currency"]) for one in variants]
    )


def _variant(one: dict[str, Any], currency: str | None) -> VariantDetail:
    return VariantDetail(
        id=one["id"],
        title=one.get("title"),
        sku=one.get("sku"),
        price=written_money(one.get("price"), currency),
        inventory_item_id=one.get("inventoryItemId"),
        inventory_quantity=one.get("inventoryQuantity"),
        tracked=one["tracked"],
    )
