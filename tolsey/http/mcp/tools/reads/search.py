"""Search and fetch, in the form that research clients know: results first, then one whole text."""

from typing import Annotated, Final
from urllib.parse import quote

from pydantic import AfterValidator, Field

from tolsey.actors.refusals import NotFound
from tolsey.http.mcp.gate import Principal, require
from tolsey.http.mcp.tools.answers import GID, number_of
from tolsey.http.mcp.tools.building import ToolAnswer, ToolArguments, reads
from tolsey.http.mcp.tools.reads import catalog as products
from tolsey.http.mcp.tools.reads import orders as sold
from tolsey.http.mcp.tools.reads.facts import FactsAnswer, FactsTools
from tolsey.http.mcp.tools.shop_words import ShopText, written
from tolsey.http.web.context import Service
from tolsey.storage.database import Row
from tolsey.storage.lookups import Lookups
from tolsey.storage.reports import catalog, orders
from tolsey.storage.reports import store as reports

MOST_PRODUCTS: Final = 10
MOST_ORDERS: Final = 5
NEEDED: Final = {"product": products.SCOPES, "order": sold.SCOPES}
WHAT: Final = "document"
SCOPES: Final = frozenset({"store:read"})


class SearchQuery(ToolArguments):
    """What to look for."""

    query: Annotated[
        str, Field(min_length=1, max_length=200, description="Words, or an order's number.")
    ]


class SearchResult(ToolAnswer):
    """Something that was found."""

    id: str
    title: ShopText
    url: str


class SearchResults(FactsAnswer):
    """What was found."""

    results: list[SearchResult]


def _named(id: str) -> str:
    """Take the platform's own id of a product or an order as a result's."""
    found = GID.fullmatch(id)
    if found is None:
        return id
    if found[1].lower() not in NEEDED:
        raise ValueError(
            f"must be the id of a product or order, but this is the id of a {found[1]}"
        )
    return f"{found[1].lower()}-{found[2]}"


class DocumentId(ToolArguments):
    """A result's id."""

    id: Annotated[str, AfterValidator(_named), Field(description="Of a result of search.")]


class Document(ToolAnswer):
    """Something that was found, whole; `text` is JSON."""

    id: str
    title: ShopText
    text: ShopText
    url: str
    metadata: dict[str, str]


class SearchTools(FactsTools):
    """Looks for products and orders for whoever the gate admitted."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._orders = Lookups(service.database, orders.BY_ID)

    @reads(
        "search",
        "Search the store",
        "Finds products by words and orders by number, as far as scopes allow; pass an id"
        " on to fetch.",
        scopes=SCOPES,
    )
    async def search(self, principal: Principal, asked: SearchQuery) -> SearchResults:
        """Look in all that may be seen; who may see nothing is told which scope that takes."""
        database, key = self._reports(principal), principal.shop_key
        if not any(scopes <= principal.scopes for scopes in NEEDED.values()):
            require(principal, products.SCOPES)
        shop = await self._shop(principal)
        found: list[SearchResult] = []
        name = asked.query.strip()
        if principal.scopes >= sold.SCOPES and name:
            rows = await orders.named(database, key, name, MOST_ORDERS)
            found += [_order_result(row, shop) for row in rows]
        words = products.words_of(asked.query)
        if principal.scopes >= products.SCOPES and words:
            rows = await catalog.search(database, key, words, None, MOST_PRODUCTS)
            found += [_product_result(row, shop) for row in rows]
        return SearchResults(facts_since=await self._since(principal), results=found)

    @reads(
        "fetch",
        "Fetch a search result",
        "Reads the whole product or order behind an id of search.",
        scopes=SCOPES,
    )
    async def fetch(self, principal: Principal, asked: DocumentId) -> Document:
        """Read what was found."""
        kind, _, id = asked.id.partition("-")
        if kind not in NEEDED:
            raise NotFound(
                "This document doesn't exist, or you don't have access to it. Check the link or"
                " the id."
            )
        require(principal, NEEDED[kind])
        number, shop = number_of(id, WHAT), await self._shop(principal)
        if kind == "order":
            parts = await orders.find(self._orders, principal.shop_key, number)
            if parts is None:
                raise await self._unknown(principal, kind)
            return _document(_order_result(parts.order, shop), kind, sold.detail_of(parts))
        row = await catalog.find(self._service.database, principal.shop_key, number)
        if row is None:
            raise await self._unknown(principal, kind)
        return _document(_product_result(row, shop), kind, products.detail_of(row))

    async def _shop(self, principal: Principal) -> str:
        """Name the shop's address; the service's own for a store that was never connected."""
        domain = await reports.shop_domain(self._service.database, principal.store_id)
        return f"https://{domain}" if domain else self._service.settings.base_url


def _order_result(row: Row, shop: str) -> SearchResult:
    id = row["order_id"]
    title = f"Order {row['name'] or id}"
    return SearchResult(id=f"order-{id}", title=title, url=f"{shop}/admin/orders/{id}")


def _product_result(row: Row, shop: str) -> SearchResult:
    id, handle = row["product_id"], row["handle"]
    path = f"products/{quote(handle, safe='')}" if handle else f"admin/products/{id}"
    return SearchResult(id=f"product-{id}", title=row["title"] or str(id), url=f"{shop}/{path}")


def _document(result: SearchResult, kind: str, detail: ToolAnswer) -> Document:
    return Document(**dict(result), text=written(detail).decode(), metadata={"type": kind})
