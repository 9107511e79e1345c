"""The page of a store: whether it is well, what it sold, what runs out, and what agents did."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, TypeVar, cast

from quart import Blueprint, Response, request

from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.http.billing.views import address as with_organization
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.live import followed
from tolsey.http.layout.standings import ShownState, Want, by_urgency
from tolsey.http.layout.templates import Page
from tolsey.http.selling import proofs
from tolsey.http.stores import health
from tolsey.http.stores.checking import SCOPES
from tolsey.http.stores.showing import acts, sales
from tolsey.http.stores.showing.acts import ActLine
from tolsey.http.stores.showing.sales import PERIODS, USUAL, Period, SalesPicture, StockLine
from tolsey.http.web.access import RANKS, caller, member_of, page, store_of
from tolsey.http.web.context import now, service
from tolsey.storage.commerce import connections, order_imports, stores
from tolsey.storage.commerce.connections import StoreParts
from tolsey.storage.commerce.order_imports import KnownOrders
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.errors import StorageError
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.reports.pool import OrganizationReports
from tolsey.storage.selling import listings
from tolsey.storage.selling.listings import ListingView

MOST_LISTINGS: Final = 50
FEW_ACTS: Final = 5
Found = TypeVar("Found")

routes = Blueprint("store_overview", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class StorePage(Page):
    """How a store is: what it sold, its connection, what is delivered, the proof of its revenue."""

    template = "stores/store.html"
    has_script = True
    store: StoreRow
    role: str
    parts: StoreParts
    delivered_at: datetime | None
    listings: Sequence[ListingView]
    at: datetime
    version: str = ""
    came_from: str = ""
    known_orders: KnownOrders | None = None
    sold: SalesPicture | None = None
    """What was sold; None where it could not be read in time."""
    stock: Sequence[StockLine] | None = field(default=())
    acts: Sequence[ActLine] = ()

    @property
    def granted(self) -> int:
        """How many of the permissions that are asked for the shop granted."""
        connection = self.parts.connection
        return sum(one in SCOPES for one in connection.scopes) if connection else 0

    @property
    def wanted(self) -> int:
        """How many permissions are asked for."""
        return len(SCOPES)

    @property
    def orders(self) -> ShownState | None:
        """From when on orders are known; None before the store was connected."""
        return None if self.known_orders is None else health.orders_of(self.known_orders)

    @property
    def periods(self) -> Sequence[tuple[Period, str, str]]:
        """The periods that can be shown: each with its name and address."""
        return [(one, _(said), f"{self.address}?period={one}") for one, said in PERIODS.items()]

    @property
    def wants(self) -> Sequence[Want]:
        """What wants doing, the most urgent first."""
        found = list(health.wanted_by_store(self.store, self.parts))
        for view in self.listings:
            found += proofs.wanted_by_listing(view, self.at)
        return by_urgency(found)

    @property
    def connection(self) -> ShownState:
        """Whether the shop can be read."""
        return health.connection_of(self.parts)

    @property
    def is_being_set_up(self) -> bool:
        """Whether the page looks again by itself, until the platform tells what happens."""
        return health.is_being_set_up(self.parts, self.at)

    @property
    def address(self) -> str:
        """The address of the page."""
        return health.address_of(self.store)

    @property
    def events(self) -> str:
        """Where the page is told that something changed."""
        return f"{self.address}/events?seen={self.version}"

    @property
    def webhooks(self) -> ShownState:
        """Whether the platform tells what happens."""
        return health.webhooks_of(self.parts)

    @property
    def proofs(self) -> Sequence[tuple[ListingView, str, ShownState, datetime | None]]:
        """Each source of each listing: how it stands, and when it was read last."""
        return [
            (
                view,
                proof.verification.provider,
                proofs.proof_of(proof.verification),
                proof.verification.last_ok_at,
            )
            for view in self.listings
            for proof in view.proofs
            if proof.verification.shop_domain
        ]

    @property
    def may_act(self) -> bool:
        """Whether who looks may connect and disconnect."""
        return RANKS[self.role] >= RANKS["admin"]

    @property
    def new_listing(self) -> str:
        """Where a listing of the store is begun."""
        path = with_organization(self.store.organization_id, "/selling/new")
        return f"{path}&storeId={self.store.id}"


@routes.get("/stores/<store_id>")
@page
async def show_store(store_id: str) -> Response:
    """Show how a store is."""
    store = await store_of(store_id)
    database = service().database
    # First of all: what moves while the rest is read shows at once.
    version = await stores.version(database, [store_id])
    listed = await listings.page_of_user(
        database, caller().user_id, store.organization_id, None, MOST_LISTINGS
    )
    newest, _following = await acts.acts_of(store_id, None, FEW_ACTS)
    reports, shop = await _reports(store)
    return shown(
        StorePage(
            store=store,
            role=await member_of(store.organization_id),
            parts=(await connections.load(database, [store.id]))[store.id],
            delivered_at=await connections.delivered_at(database, store_id, tuple(TOPICS)),
            listings=[view for view in listed if view.listing.store_id == store_id],
            at=now(),
            version=version,
            came_from=request.args.get("from", ""),
            known_orders=await order_imports.known(database, store_id),
            sold=await _or_none(sales.sales_of(reports, shop, store_id, _period(), now())),
            stock=await _or_none(sales.running_out(reports, shop, now())),
            acts=newest,
        )
    )


@routes.get("/stores/<store_id>/sales.csv")
@page
async def download_sales(store_id: str) -> Response:
    """Give the numbers of the pictures as a table for spreadsheets."""
    store = await store_of(store_id)
    reports, shop = await _reports(store)
    sold = await sales.sales_of(reports, shop, store_id, _period(), now())
    named = {"Content-Disposition": f'attachment; filename="sales-{sold.period}.csv"'}
    return Response(sold.csv, content_type="text/csv; charset=utf-8", headers=named)


@routes.get("/stores/<store_id>/events")
@page
async def follow_store(store_id: str) -> Response:
    """Tell `changed` each time that something of the store moved, for half a minute."""
    await store_of(store_id)
    return followed(partial(stores.version, service().database, [store_id]))


def _period() -> Period:
    wanted = request.args.get("period")
    return cast("Period", wanted) if wanted in PERIODS else USUAL


async def _reports(store: StoreRow) -> tuple[OrganizationReports, ShopKey]:
    shop = await connections.shop_key_of(service().database, store.id)
    return service().reports.of(store.organization_id), shop


async def _or_none(reading: Awaitable[Found]) -> Found | None:
    """Give what is read; None where that takes too long: the rest of the page is shown without it."""
    try:
        return await reading
    except StorageError:
        return None
