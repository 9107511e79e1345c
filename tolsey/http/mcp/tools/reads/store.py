"""The store itself: what it is, how it is connected, and what revenue is verified."""

from datetime import datetime, timedelta
from typing import Final, Literal

from tolsey.actors.refusals import NotFound
from tolsey.actors.store.connection.messages import ConnectionView, ReadConnection
from tolsey.actors.store.messages import store
from tolsey.http.answers.stores.connection import ConnectionAnswer, OrderHistoryAnswer
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.answers import DecimalMoney, money
from tolsey.http.mcp.tools.building import Nothing, ToolAnswer, reads
from tolsey.http.mcp.tools.reads.facts import FactsAnswer, FactsTools
from tolsey.http.mcp.tools.shop_words import ShopText
from tolsey.http.selling.attestation import badge, verification_of
from tolsey.storage.commerce import order_imports
from tolsey.storage.database import Row
from tolsey.storage.reports import store as reports
from tolsey.storage.selling.listings import ListingView

SCOPES: Final = frozenset({"store:read"})
RECENT: Final = timedelta(days=30)
UNKNOWN: Final = "UNKNOWN"
WELL: Final = frozenset({"ok", "created"})
"""What a topic says that the shop delivers."""


class ShopSummary(ToolAnswer):
    """The shop on the commerce platform."""

    domain: str
    name: ShopText | None
    currency: str | None
    time_zone: str | None
    country: str | None
    primary_domain: str | None
    plan: str | None


class StoreSummary(FactsAnswer):
    """A store; counts are there where the scope for them is."""

    id: str
    name: ShopText
    created_at: datetime
    plan: str
    token_state: str
    shop: ShopSummary | None
    products: int | None
    orders_30d: int | None


class ConnectionReport(ToolAnswer):
    """How a store is connected; `scopes` is UNKNOWN when the platform never told them.

    Every order is known from `orders_known_since` on.
    """

    status: str
    token_state: str
    shop_domain: str | None
    scopes: list[str] | Literal["UNKNOWN"]
    connected_at: datetime | None
    uninstalled_at: datetime | None
    topics_not_delivered: list[str]
    orders_known_since: datetime | None
    order_import: str | None


class ListingRevenue(ToolAnswer):
    """What is verified of a listing's revenue; currencies are never converted."""

    listing_id: str
    slug: str
    listing_status: str
    state: str
    badge: str
    source: str | None
    revenue_30d: DecimalMoney | None
    mrr: DecimalMoney | None
    annualised: DecimalMoney | None
    window_end: datetime | None
    flags: list[str]


class VerifiedRevenue(ToolAnswer):
    """The verified revenue of a store's listings, newest listing first.

    It is read of the shop itself: get_sales_report knows no order from before `orders_known_since`.
    """

    orders_known_since: datetime | None
    listings: list[ListingRevenue]


class StoreTools(FactsTools):
    """Reads a store for whoever the gate admitted."""

    @reads(
        "get_store_summary",
        "Summarise the store",
        "Tells what the store is: shop, currency, plan, connection and, where scopes"
        " allow, how many products and recent orders. Start here.",
        scopes=SCOPES,
    )
    async def summary(self, principal: Principal, asked: Nothing) -> StoreSummary:
        """Tell what the store is."""
        del asked
        row = await reports.summary(
            self._reports(principal),
            principal.store_id,
            principal.shop_key,
            products="catalog:read" in principal.scopes,
            orders="orders:read" in principal.scopes,
            since=self._service.clock() - RECENT,
        )
        if row is None:
            raise NotFound(
                "This store doesn't exist, or you don't have access to it. Check the link or"
                " the id."
            )
        view = await self._connection(principal)
        return StoreSummary.read(
            row,
            facts_since=await self._since(principal),
            plan=principal.plan,
            token_state=ConnectionAnswer.of(view).token_state,
            shop=_shop(row) if row["shop_domain"] else None,
            orders_30d=row["orders"],
        )

    @reads(
        "get_connection_status",
        "Check the connection",
        "Tells whether the commerce platform can be called, and what the merchant granted.",
        scopes=SCOPES,
    )
    async def connection(self, principal: Principal, asked: Nothing) -> ConnectionReport:
        """Tell how the store is connected."""
        del asked
        view = await self._connection(principal)
        history = OrderHistoryAnswer.of(
            await order_imports.known(self._service.database, principal.store_id)
        )
        last = history.order_import
        answer, topics = ConnectionAnswer.of(view), view.subscriptions if view else ()
        return ConnectionReport.read(
            answer,
            status=answer.status or "never",
            scopes=answer.scopes if answer.scopes_known else UNKNOWN,
            topics_not_delivered=[name for name, said in topics if said not in WELL],
            orders_known_since=history.known_since,
            order_import=last and last.state,
        )

    @reads(
        "get_verified_revenue",
        "Get verified revenue",
        "Reads the revenue that was verified at its source for this store's listings.",
        scopes=SCOPES,
    )
    async def revenue(self, principal: Principal, asked: Nothing) -> VerifiedRevenue:
        """Read what is verified."""
        del asked
        found = await reports.listings(
            self._reports(principal),
            principal.store_id,
            principal.organization_id,
        )
        at = self._service.clock()
        return VerifiedRevenue(
            orders_known_since=await self._orders_since(principal),
            listings=[_revenue(view, at) for view in found],
        )

    async def _connection(self, principal: Principal) -> ConnectionView | None:
        return await self._service.runtime.ask(store(principal.store_id), ReadConnection())


def _shop(row: Row) -> ShopSummary:
    return ShopSummary.read(
        row,
        domain=row["shop_domain"],
        name=row["shop_name"],
        time_zone=row["timezone"],
        plan=row["plan_display_name"],
    )


def _revenue(view: ListingView, at: datetime) -> ListingRevenue:
    verification = verification_of(view, at, owner=True)
    return ListingRevenue.read(
        verification,
        listing_id=view.listing.id,
        slug=view.listing.slug,
        listing_status=view.listing.status,
        badge=badge(view, at),
        revenue_30d=money(verification.revenue30d, verification.currency),
        mrr=money(verification.mrr, verification.currency),
        annualised=money(verification.annualised, verification.currency),
    )
