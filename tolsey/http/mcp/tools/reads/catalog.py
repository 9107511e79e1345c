"""Products: what a store sells."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import READS, Tool
from tolsey.http.mcp.tools import answers
from tolsey.http.mcp.tools.answers import Money, number_of, one_of, said_of, tags_of
from tolsey.http.mcp.tools.building import Answer, Arguments, tool
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.reads import facts
from tolsey.http.mcp.tools.reads.facts import FactsAnswer
from tolsey.http.web.context import Service
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


class ProductId(Arguments):
    """Which product."""

    product_id: answers.ProductId


class ProductHit(Answer):
    """A product that was found."""

    id: str
    title: str | None
    status: str | None


class ProductHits(FactsAnswer):
    """A part of what was found."""

    items: list[ProductHit]
    next_cursor: str | None


class ProductSummary(ProductHit):
    """A product."""

    vendor: str | None
    product_type: str | None
    variant_count: int
    updated_at: datetime


class ProductPage(FactsAnswer):
    """A part of the products."""

    items: list[ProductSummary]
    next_cursor: str | None


class VariantDetail(Answer):
    """What can be bought of a product."""

    id: str
    title: str | None
    sku: str | None
    price: Money | None
    inventory_item_id: str | None
    inventory_quantity: int | None
    tracked: bool | None


class ProductDetail(ProductSummary):
    """A product with its variants; of more than 250, those are the first."""

    handle: str | None
    published_at: datetime | None
    tags: list[str]
    variants: list[VariantDetail]


class CatalogTools:
    """Reads products for whoever the gate admitted."""

    listed = Pages("list_products", int)
    searched = Pages("search_products", int)

    def __init__(self, service: Service) -> None:
        self._service = service

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return [
            tool(
                "list_products",
                "List products",
                "Lists products, newest first.",
                arguments=ProductQuery,
                answer=ProductPage,
                run=self.list,
                scopes=SCOPES,
                hints=READS,
            ),
            tool(
                "search_products",
                "Search products",
                "Finds products whose title, handle, vendor, type, tags, variants or SKUs hold"
                " every word.",
                arguments=ProductSearch,
                answer=ProductHits,
                run=self.search,
                scopes=SCOPES,
                hints=READS,
            ),
            tool(
                "get_product",
                "Get a product",
                "Reads one product with its variants, prices and stock.",
                arguments=ProductId,
                answer=ProductDetail,
                run=self.get,
                scopes=SCOPES,
                hints=READS,
            ),
        ]

    async def list(self, principal: Principal, asked: ProductQuery) -> ProductPage:
        """List products."""
        wanted = ProductFilter(
            status=asked.status, vendor=asked.vendor, product_type=asked.product_type
        )
        before = self.listed.number_after(asked)
        found = await catalog.page(
            self._service.reports.of(principal.organization_id),
            principal.shop_key,
            wanted,
            before,
            asked.limit + 1,
        )
        part, following = self.listed.cut(found, asked, _key)
        return ProductPage(
            facts_since=await facts.since(self._service, principal),
            items=[summary_of(row) for row in part],
            next_cursor=following,
        )

    async def search(self, principal: Principal, asked: ProductSearch) -> ProductHits:
        """Find products."""
        before = self.searched.number_after(asked)
        found = await catalog.search(
            self._service.reports.of(principal.organization_id),
            principal.shop_key,
            words_of(asked.query),
            before,
            asked.limit + 1,
        )
        part, following = self.searched.cut(found, asked, _key)
        return ProductHits(
            facts_since=await facts.since(self._service, principal),
            items=[_hit(row) for row in part],
            next_cursor=following,
        )

    async def get(self, principal: Principal, asked: ProductId) -> ProductDetail:
        """Read one product."""
        product_id = number_of(asked.product_id, WHAT)
        found = await catalog.find(self._service.database, principal.shop_key, product_id)
        if found is None:
            raise await facts.unknown(self._service, principal, WHAT)
        return detail_of(found)


def words_of(text: str) -> list[str]:
    """Split what somebody looks for into words."""
    return text.split()[:MOST_WORDS]


def _key(row: Row) -> tuple[int]:
    return (row["product_id"],)


def _hit(row: Row) -> ProductHit:
    return ProductHit(id=str(row["product_id"]), title=row["title"], status=row["status"])


def summary_of(row: Row) -> ProductSummary:
    """Show a product in a list."""
    return ProductSummary(
        **dict(_hit(row)),
        vendor=row["vendor"],
        product_type=row["product_type"],
        variant_count=row["variant_count"],
        updated_at=row["updated_at"],
    )


def detail_of(row: Row) -> ProductDetail:
    """Show a product whole; a price is in the shop's currency."""
    variants: list[dict[str, Any]] = orjson.loads(row["variants"])
    return ProductDetail(
        **dict(summary_of(row)),
        handle=row["handle"],
        published_at=row["published_at"],
        tags=tags_of(row["tags"]),
        variants=[_variant(one, row["currency"]) for one in variants],
    )


def _variant(one: dict[str, Any], currency: str | None) -> VariantDetail:
    price, item = one.get("price"), one.get("inventoryItemId")
    priced = None
    if price is not None and currency is not None:
        priced = Money(amount=price, currency=currency)
    return VariantDetail(
        id=str(one["id"]),
        title=one.get("title"),
        sku=one.get("sku"),
        price=priced,
        inventory_item_id=None if item is None else str(item),
        inventory_quantity=one.get("inventoryQuantity"),
        tracked=one["tracked"],
    )
