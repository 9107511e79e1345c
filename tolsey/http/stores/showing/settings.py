"""The settings of a store: its connection, its earlier orders, the address for agents, and its end."""

from dataclasses import dataclass, field

from quart import Blueprint, Response

from tolsey.actors.refusals import Refusal
from tolsey.http.answers.stores.connection import IMPORT_DETAILS
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, sent_on, sentence, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled
from tolsey.http.layout.standings import ShownState
from tolsey.http.layout.templates import Page
from tolsey.http.stores import health, integrations
from tolsey.http.stores.integrations import StoreQuery
from tolsey.http.stores.order_history import begin_order_import, stop_order_import
from tolsey.http.stores.routes import delete_store
from tolsey.http.web.access import RANKS, member_of, page, store_of
from tolsey.http.web.context import service
from tolsey.storage.commerce import connections, order_imports
from tolsey.storage.commerce.connections import StoreParts
from tolsey.storage.commerce.order_imports import KnownOrders
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.records.commerce.imports import ImportState

routes = Blueprint("store_settings", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class SettingsPage(Page):
    """A store's settings."""

    template = "stores/settings.html"
    has_script = True
    store: StoreRow
    may_act: bool
    parts: StoreParts
    base_url: str
    known_orders: KnownOrders | None = None

    @property
    def connection(self) -> ShownState:
        """Whether the shop can be read."""
        return health.connection_of(self.parts)

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
    def agents_address(self) -> str:
        """Where agents reach the store."""
        return f"{self.base_url}/api/mcp/v1/{self.store.id}"


@dataclass(frozen=True)
class DisconnectPage(Page):
    """Whether a store shall be disconnected."""

    template = "stores/disconnect.html"
    store: StoreRow
    shop_domain: str


@dataclass(frozen=True, kw_only=True)
class DeleteStorePage(Page):
    """Whether a store shall be deleted with all that is kept of it."""

    template = "stores/delete.html"
    store: StoreRow
    filled: Filled = field(default_factory=Filled)


@routes.get("/stores/<store_id>/settings")
@page
async def show_settings(store_id: str) -> Response:
    """Show a store's settings."""
    store = await store_of(store_id)
    database = service().database
    return shown(
        SettingsPage(
            store=store,
            may_act=RANKS[await member_of(store.organization_id)] >= RANKS["admin"],
            parts=(await connections.load(database, [store_id]))[store_id],
            base_url=service().settings.base_url,
            known_orders=await order_imports.known(database, store_id),
        )
    )


@routes.post("/stores/<store_id>/order-history/begin")
@page
async def begin_import(store_id: str) -> Response:
    """Begin the import of earlier orders, or go on with it, and go back to the settings."""
    await begin_order_import(store_id)
    return sent_on(f"/stores/{store_id}/settings")


@routes.post("/stores/<store_id>/order-history/stop")
@page
async def stop_import(store_id: str) -> Response:
    """Stop the import, and go back to the settings."""
    await stop_order_import(store_id)
    return sent_on(f"/stores/{store_id}/settings")


@routes.get("/stores/<store_id>/disconnect")
@page
async def ask_disconnection(store_id: str) -> Response:
    """Say what disconnecting would do, and ask whether it shall."""
    store = await store_of(store_id, at_least="admin")
    connection = (await connections.load(service().database, [store_id]))[store_id].connection
    if connection is None:
        return sent_on(health.address_of(store))
    return shown(DisconnectPage(store, connection.shop_domain))


@routes.post("/stores/<store_id>/disconnect")
@page
async def disconnect(store_id: str) -> Response:
    """Disconnect the store, and go back to where it shows."""
    await integrations.disconnect_custom_app(query_args=StoreQuery(store_id=store_id))
    return sent_on(f"/stores/{store_id}")


@routes.get("/stores/<store_id>/delete")
@page
async def ask_deletion(store_id: str) -> Response:
    """Say what deleting would do, and ask for the store's name."""
    return shown(DeleteStorePage(store=await store_of(store_id, at_least="admin")))


@routes.post("/stores/<store_id>/delete")
@page
async def delete(store_id: str) -> Response:
    """Delete the store whose name was typed, with all that is kept of it."""
    store = await store_of(store_id, at_least="admin")
    values = await forms.sent()
    asked = Filled(values)
    if values.get("name", "").strip() != store.name.strip():
        wrong = asked.wrong("name", _("That is another name. Type the store's own."))
        return shown(DeleteStorePage(store=store, filled=wrong), 422)
    try:
        await delete_store(store_id)
    except Refusal as refused:
        filled = asked.wrong(forms.WHOLE, sentence(refused))
        return shown(DeleteStorePage(store=store, filled=filled), refusal=refused)
    return sent_on("/")
