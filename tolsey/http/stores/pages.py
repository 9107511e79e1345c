"""The pages of a store: adding one, connecting its shop in steps, and how it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from urllib.parse import quote

from quart import Blueprint, Response, request

from tolsey.actors.refusals import Refusal
from tolsey.actors.shops import normalise_shop_domain
from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.http.answers.stores.connection import IMPORT_DETAILS
from tolsey.http.billing.views import address as with_organization
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.standings import ShownState, Want, by_urgency
from tolsey.http.layout.templates import Page
from tolsey.http.selling import proofs
from tolsey.http.selling.merchant_apps import said_to_seller
from tolsey.http.stores import health, integrations
from tolsey.http.stores.integrations import CustomApp, StoreQuery
from tolsey.http.stores.order_history import begin_order_import, stop_order_import
from tolsey.http.stores.routes import StoreBody, create_store
from tolsey.http.web import api_model
from tolsey.http.web.access import RANKS, caller, first_organization, member_of, page, store_of
from tolsey.http.web.context import now, service
from tolsey.storage.commerce import connections, order_imports
from tolsey.storage.commerce.connections import StoreParts
from tolsey.storage.commerce.order_imports import KnownOrders
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.records.commerce.imports import ImportState
from tolsey.storage.selling import listings
from tolsey.storage.selling.listings import ListingView

MOST_LISTINGS: Final = 50
SCOPES: Final = tuple(sorted({topic.scope for topic in TOPICS.values() if topic.scope}))
"""What the app must be granted for everything that we listen to."""

routes = Blueprint("store_pages", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class NewStorePage(Page):
    """The first step: a store's name."""

    template = "stores/new.html"
    organization_id: str
    filled: Filled = field(default_factory=Filled)
    name_characters = api_model.NAME_CHARACTERS


@dataclass(frozen=True, kw_only=True)
class ShopPage(Page):
    """The second step: the shop's address, and an app in it with the permissions."""

    template = "stores/shop.html"
    store: StoreRow
    filled: Filled = field(default_factory=Filled)
    scopes = SCOPES


@dataclass(frozen=True, kw_only=True)
class AppKeysPage(Page):
    """The third step: the app's keys, which are tried before anything is kept."""

    template = "stores/keys.html"
    store: StoreRow
    shop_domain: str
    has_one_token: bool
    """Whether the app has one access token for good, in place of a client id."""
    filled: Filled = field(default_factory=Filled)

    @property
    def with_id(self) -> str:
        """The step for an app that tokens are granted to."""
        return health.address_of(self.store, f"/connect?shopDomain={quote(self.shop_domain)}")

    @property
    def with_token(self) -> str:
        """The step for an app that has one token for good."""
        return f"{self.with_id}&with=token"


@dataclass(frozen=True, kw_only=True)
class StorePage(Page):
    """How a store is: its connection, what is delivered, the proof of its revenue."""

    template = "stores/store.html"
    has_script = True
    store: StoreRow
    role: str
    parts: StoreParts
    delivered_at: datetime | None
    listings: Sequence[ListingView]
    at: datetime
    base_url: str
    came_from: str = ""
    known_orders: KnownOrders | None = None

    @property
    def orders(self) -> ShownState | None:
        """From when on orders are known; None before the store was connected."""
        return None if self.known_orders is None else health.orders_of(self.known_orders)

    @property
    def import_advice(self) -> str | None:
        """Why an import stands, and what to do."""
        last = self.known_orders and self.known_orders.order_import
        return _(IMPORT_DETAILS.get(last.code, "")) if last and last.code else None

    @property
    def import_act(self) -> str | None:
        """What may be done about the import: `begin` one or go on, or `stop` it; nothing when all is known."""
        if not self.may_act or self.known_orders is None or self.connection.tone != "good":
            return None
        last = self.known_orders.order_import
        if last is not None and last.state is ImportState.RUNNING:
            return "stop"
        return None if self.known_orders.knows_all else "begin"

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
    def agents_address(self) -> str:
        """Where agents reach the store."""
        return f"{self.base_url}/api/mcp/v1/{self.store.id}"

    @property
    def new_listing(self) -> str:
        """Where a listing of the store is begun."""
        path = with_organization(self.store.organization_id, "/selling/new")
        return f"{path}&storeId={self.store.id}"


@dataclass(frozen=True)
class DisconnectPage(Page):
    """Whether a store shall be disconnected."""

    template = "stores/disconnect.html"
    store: StoreRow
    shop_domain: str


@routes.get("/stores/new")
@page
async def new_store() -> Response:
    """Show the form that adds a store."""
    organization_id = request.args.get("organizationId") or await first_organization()
    await member_of(organization_id, at_least="admin")
    return shown(NewStorePage(organization_id=organization_id))


@routes.post("/stores/new")
@page
async def add_store() -> Response:
    """Add a store and go on to its shop."""
    values = await forms.sent()
    organization_id = values.get("organizationId", "")
    await member_of(organization_id, at_least="admin")
    try:
        made, _status = await create_store(data=forms.read(StoreBody, values))
    except (Misfilled, Refusal) as wrong:
        filled = filled_again(values, wrong)
        return shown(NewStorePage(organization_id=organization_id, filled=filled), refusal=wrong)
    return sent_on(f"/stores/{made.id}/connect")


@routes.get("/stores/<store_id>/connect")
@page
async def connect_form(store_id: str) -> Response:
    """Show the step that asks for the shop; once it is named, the step that asks for the app's keys."""
    store = await store_of(store_id, at_least="admin")
    typed = request.args.get("shopDomain")
    if typed is None:
        kept = (await _parts(store)).connection
        filled = Filled({"shopDomain": kept.shop_domain} if kept else {})
        return shown(ShopPage(store=store, filled=filled))
    try:
        shop_domain = normalise_shop_domain(typed)
    except ValueError as error:
        filled = Filled({"shopDomain": typed}).wrong("shopDomain", _(str(error)))
        return shown(ShopPage(store=store, filled=filled), 422)
    has_one_token = request.args.get("with") == "token"
    return shown(AppKeysPage(store=store, shop_domain=shop_domain, has_one_token=has_one_token))


@routes.post("/stores/<store_id>/connect")
@page
async def connect(store_id: str) -> Response:
    """Try the keys at the shop; when they work, keep them and go on to how the store is."""
    store = await store_of(store_id, at_least="admin")
    values = await forms.sent()
    asked = AppKeysPage(
        store=store,
        shop_domain=values.get("shopDomain", ""),
        has_one_token="accessToken" in values,
    )
    try:
        app = forms.read(CustomApp, {**values, "storeId": store_id})
        await integrations.connect_custom_app(data=app)
    except (Misfilled, Refusal) as wrong:
        filled = filled_again(values, wrong, say=said_to_seller)
        return shown(replace(asked, filled=filled), refusal=wrong)
    return sent_on(health.address_of(store, "?from=connect"))


@routes.get("/stores/<store_id>")
@page
async def show_store(store_id: str) -> Response:
    """Show how a store is."""
    store = await store_of(store_id)
    database = service().database
    listed = await listings.page_of_user(
        database, caller().user_id, store.organization_id, None, MOST_LISTINGS
    )
    return shown(
        StorePage(
            store=store,
            role=await member_of(store.organization_id),
            parts=await _parts(store),
            delivered_at=await connections.delivered_at(database, store_id, tuple(TOPICS)),
            listings=[view for view in listed if view.listing.store_id == store_id],
            at=now(),
            base_url=service().settings.base_url,
            came_from=request.args.get("from", ""),
            known_orders=await order_imports.known(database, store_id),
        )
    )


@routes.post("/stores/<store_id>/order-history/begin")
@page
async def begin_import(store_id: str) -> Response:
    """Begin the import of earlier orders, or go on with it, and go back to how the store is."""
    await begin_order_import(store_id)
    return sent_on(f"/stores/{store_id}")


@routes.post("/stores/<store_id>/order-history/stop")
@page
async def stop_import(store_id: str) -> Response:
    """Stop the import, and go back to how the store is."""
    await stop_order_import(store_id)
    return sent_on(f"/stores/{store_id}")


@routes.get("/stores/<store_id>/disconnect")
@page
async def ask_disconnection(store_id: str) -> Response:
    """Say what disconnecting would do, and ask whether it shall."""
    store = await store_of(store_id, at_least="admin")
    connection = (await _parts(store)).connection
    if connection is None:
        return sent_on(health.address_of(store))
    return shown(DisconnectPage(store, connection.shop_domain))


@routes.post("/stores/<store_id>/disconnect")
@page
async def disconnect(store_id: str) -> Response:
    """Disconnect the store, and go back to where it shows."""
    await integrations.disconnect_custom_app(query_args=StoreQuery(store_id=store_id))
    return sent_on(f"/stores/{store_id}")


async def _parts(store: StoreRow) -> StoreParts:
    return (await connections.load(service().database, [store.id]))[store.id]
