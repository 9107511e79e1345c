"""The store itself: what it is, how it is connected, and what revenue is verified."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from tolsey.actors.refusals import NotFound
from tolsey.actors.store.messages import ConnectionView, ReadConnection, TokenState, store
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import READS, Tool
from tolsey.http.mcp.tools.answers import Money, money
from tolsey.http.mcp.tools.building import Answer, Nothing, tool
from tolsey.http.mcp.tools.reads import facts
from tolsey.http.mcp.tools.reads.facts import FactsAnswer
from tolsey.http.selling.attestation import badge, verification_of
from tolsey.http.web.context import Service
from tolsey.storage.database import Row
from tolsey.storage.reports import store as reports
from tolsey.storage.selling.listings import ListingView

SCOPES: Final = frozenset({"store:read"})
RECENT: Final = timedelta(days=30)
UNKNOWN: Final = "UNKNOWN"
WELL: Final = frozenset({"ok", "created"})
"""What a topic says that the shop delivers."""


class ShopSummary(Answer):
    """The shop on the commerce platform."""

    domain: str
    name: str | None
    currency: str | None
    time_zone: str | None
    country: str | None
    primary_domain: str | None
    plan: str | None


class StoreSummary(FactsAnswer):
    """A store; counts are there where the scope for them is."""

    id: str
    name: str
    created_at: datetime
    plan: str
    token_state: str
    shop: ShopSummary | None
    products: int | None
    orders_30d: int | None


class ConnectionStatus(Answer):
    """How a store is connected; `scopes` is UNKNOWN when the platform never told them."""

    status: str
    token_state: str
    shop_domain: str | None
    scopes: list[str] | Literal["UNKNOWN"]
    connected_at: datetime | None
    uninstalled_at: datetime | None
    topics_not_delivered: list[str]


class ListingRevenue(Answer):
    """What is verified of a listing's revenue; currencies are never converted."""

    listing_id: str
    slug: str
    listing_status: str
    state: str
    badge: str
    source: str | None
    revenue_30d: Money | None
    mrr: Money | None
    annualised: Money | None
    window_end: datetime | None
    flags: list[str]


class VerifiedRevenue(Answer):
    """The verified revenue of a store's listings, newest listing first."""

    listings: list[ListingRevenue]


class StoreTools:
    """Reads a store for whoever the gate admitted."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return [
            tool(
                "get_store_summary",
                "Summarise the store",
                "Tells what the store is: shop, currency, plan, connection and, where scopes"
                " allow, how many products and recent orders. Start here.",
                arguments=Nothing,
                answer=StoreSummary,
                run=self.summary,
                scopes=SCOPES,
                hints=READS,
            ),
            tool(
                "get_connection_status",
                "Check the connection",
                "Tells whether the commerce platform can be called, and what the merchant granted.",
                arguments=Nothing,
                answer=ConnectionStatus,
                run=self.connection,
                scopes=SCOPES,
                hints=READS,
            ),
            tool(
                "get_verified_revenue",
                "Get verified revenue",
                "Reads the revenue that was verified at its source for this store's listings.",
                arguments=Nothing,
                answer=VerifiedRevenue,
                run=self.revenue,
                scopes=SCOPES,
                hints=READS,
            ),
        ]

    async def summary(self, principal: Principal, asked: Nothing) -> StoreSummary:
        """Tell what the store is."""
        del asked
        row = await reports.summary(
            self._service.reports.of(principal.organization_id),
            principal.store_id,
            principal.shop_key,
            products="catalog:read" in principal.scopes,
            orders="orders:read" in principal.scopes,
            since=self._service.clock() - RECENT,
        )
        if row is None:
            raise NotFound("There is no such store.")
        view = await self._connection(principal)
        return StoreSummary(
            facts_since=await facts.since(self._service, principal),
            id=row["id"],
            name=row["name"],
            created_at=row["created_at"],
            plan=principal.plan,
            token_state=view.token_state if view else TokenState.NEVER,
            shop=_shop(row) if row["shop_domain"] else None,
            products=row["products"],
            orders_30d=row["orders"],
        )

    async def connection(self, principal: Principal, asked: Nothing) -> ConnectionStatus:
        """Tell how the store is connected."""
        del asked
        view = await self._connection(principal)
        if view is None:
            return ConnectionStatus(
                status="never",
                token_state=TokenState.NEVER,
                shop_domain=None,
                scopes=UNKNOWN,
                connected_at=None,
                uninstalled_at=None,
                topics_not_delivered=[],
            )
        return ConnectionStatus(
            status=view.status,
            token_state=view.token_state,
            shop_domain=view.shop_domain,
            scopes=list(view.scopes) if view.scopes_known else UNKNOWN,
            connected_at=view.connected_at,
            uninstalled_at=view.uninstalled_at,
            topics_not_delivered=[name for name, said in view.subscriptions if said not in WELL],
        )

    async def revenue(self, principal: Principal, asked: Nothing) -> VerifiedRevenue:
        """Read what is verified."""
        del asked
        found = await reports.listings(
            self._service.reports.of(principal.organization_id),
            principal.store_id,
            principal.organization_id,
        )
        at = self._service.clock()
        return VerifiedRevenue(listings=[_revenue(view, at) for view in found])

    async def _connection(self, principal: Principal) -> ConnectionView | None:
        return await self._service.runtime.ask(store(principal.store_id), ReadConnection())


def _shop(row: Row) -> ShopSummary:
    return ShopSummary(
        domain=row["shop_domain"],
        name=row["shop_name"],
        currency=row["currency"],
        time_zone=row["timezone"],
        country=row["country"],
        primary_domain=row["primary_domain"],
        plan=row["plan_display_name"],
    )


def _revenue(view: ListingView, at: datetime) -> ListingRevenue:
    told = verification_of(view, at, owner=True)
    return ListingRevenue(
        listing_id=view.listing.id,
        slug=view.listing.slug,
        listing_status=view.listing.status,
        state=told.state,
        badge=badge(view, at),
        source=told.source,
        revenue_30d=money(told.revenue30d, told.currency),
        mrr=money(told.mrr, told.currency),
        annualised=money(told.annualised, told.currency),
        window_end=told.window_end,
        flags=told.flags,
    )
