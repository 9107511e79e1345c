"""The commerce platform's Admin API: the adapter behind the CommercePlatform port."""

import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Self

import anyio
import httpx

from tolsey.actors.edit import Edit
from tolsey.actors.ports import (
    ApiVersionTooOld,
    BulkExport,
    CommerceEditor,
    CommercePlatform,
    PlatformDocument,
    Shop,
    ShopFacts,
    SubscriptionReport,
    TokenGrant,
    Upload,
    measures_revenue,
)
from tolsey.http.clients.commerce import (
    order_exports,
    queries,
    shapes,
    subscriptions,
    uploads,
)
from tolsey.http.clients.commerce.bulk import bulk_orders
from tolsey.http.clients.commerce.calls import Address, CallLimits, Calls, Pace
from tolsey.http.clients.commerce.edits import sending
from tolsey.http.clients.commerce.orders import orders_before, orders_given_back, paged_orders
from tolsey.http.clients.commerce.webhook_shapes import webhook_order
from tolsey.http.clients.guard import guarded_client
from tolsey.storage.records.selling.revenue import PulledOrder

API_VERSION = "2026-07"
PLAN_CHARACTERS = 100


class ShopifyAdmin(CommercePlatform, CommerceEditor):
    """The Admin API of every shop, over one client that follows no redirect.

    `url_template` says where a shop is reached, `{shop}` standing for its domain. A window with
    more than `bulk_above` orders is exported in bulk. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        url_template: str = "https://{shop}",
        api_version: str = API_VERSION,
        *,
        http: httpx.AsyncClient | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        luck: Callable[[], float] = random.random,
        bulk_above: int = 500,
        limits: CallLimits | None = None,
    ) -> None:
        self._version = api_version
        self._http = http or guarded_client([url_template])
        self._bulk_above = bulk_above
        self._calls = Calls(
            Address(url_template, api_version),
            self._http,
            Pace(clock, sleep, luck),
            limits or CallLimits(),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def exchange(self, shop_domain: str, client_id: str, client_secret: str) -> TokenGrant:
        """Mint a token by the client-credentials grant; GrantRefused when it will never work."""
        return await self._calls.grant(shop_domain, client_id, client_secret)

    async def graphql(
        self,
        shop: Shop,
        document: str,
        variables: Mapping[str, Any] | None = None,
        *,
        repeatable: bool | None = None,
    ) -> dict[str, Any]:
        """Give the data of a document, within the shop's points and the client's patience.

        A mutation whose answer was lost is not sent again unless it is `repeatable`.
        """
        return await self._calls.ask(shop, document, variables, repeatable=repeatable)

    async def connect_probe(self, shop: Shop) -> ShopFacts:
        """Read the facts a connection is made with."""
        return shapes.shop_facts(await self._calls.ask(shop, queries.CONNECT_PROBE))

    async def plan_name(self, shop: Shop) -> str | None:
        """Name a shop's plan as the platform does for itself; None where it does not tell."""
        name = (await self._calls.shop_body(shop)).get("plan_name")
        return name[:PLAN_CHARACTERS] if isinstance(name, str) and name.isprintable() else None

    async def owner_email(self, shop: Shop) -> str | None:
        """Say at which address the platform writes to a shop's owner; None where it does not tell."""
        email = (await self._calls.shop_body(shop)).get("email")
        return email if isinstance(email, str) and email else None

    async def reconcile_subscriptions(
        self, shop: Shop, uri: str, topics: Mapping[str, str]
    ) -> SubscriptionReport:
        """Make the subscriptions that deliver to `uri` exactly the catalogue `topics`."""
        return await subscriptions.reconcile(self._calls, shop, uri, topics)

    def told_of_subscriptions(self, uri: str, topics: Sequence[str]) -> list[PlatformDocument]:
        """Say what `reconcile_subscriptions` would send of what is missing, and send nothing."""
        return subscriptions.told(uri, topics)

    def check_version(self) -> None:
        """Raise ApiVersionTooOld where orders lack the fields that revenue is measured with."""
        if not measures_revenue(self._version):
            raise ApiVersionTooOld(self._version)

    async def orders(
        self, shop: Shop, start: datetime, end: datetime
    ) -> AsyncGenerator[PulledOrder]:
        """Every real order processed in [start, end), each once, in no promised order."""
        counted = await self._count(shop, start, end, self._bulk_above + 1)
        pull = bulk_orders if counted > self._bulk_above else paged_orders
        async with aclosing(pull(self._calls, shop, start, end)) as found:
            async for order in found:
                yield order

    async def orders_before(self, shop: Shop, start: datetime) -> AsyncGenerator[PulledOrder]:
        """Orders processed before a moment, the latest first, as many as are looked through."""
        async with aclosing(orders_before(self._calls, shop, start)) as found:
            async for order in found:
                yield order

    async def orders_given_back(self, shop: Shop, start: datetime) -> AsyncGenerator[PulledOrder]:
        """Orders processed before a moment of which money went back, perhaps, since then."""
        async with aclosing(orders_given_back(self._calls, shop, start)) as found:
            async for order in found:
                yield order

    async def order(self, shop: Shop, order_id: int) -> dict[str, Any] | None:
        """One order in the shape of its webhook body, or None when the shop has no such order."""
        variables = {"id": queries.gid("Order", order_id)}
        order = (await self._calls.ask(shop, queries.ONE_ORDER, variables)).get("order")
        return None if order is None else webhook_order(shapes.mapping(order, "an order"))

    async def start_export(self, shop: Shop, since: datetime | None) -> str:
        """Begin an export of the orders made since a moment, or of all; answers its id."""
        return await order_exports.start(self._calls, shop, since)

    async def export(self, shop: Shop, bulk_export: str) -> BulkExport:
        """Look how far an export is."""
        return await order_exports.look(self._calls, shop, bulk_export)

    async def exported_orders(
        self, export: BulkExport, start: int
    ) -> AsyncGenerator[tuple[int, dict[str, Any]]]:
        """Read a whole export from a place in it, each order with the place behind it."""
        async with aclosing(order_exports.read(self._calls, export, start)) as found:
            async for place in found:
                yield place

    async def look(self, shop: Shop, edit: Edit) -> dict[str, Any] | None:
        """Read what an edit is about as it is now; None when the shop has no such thing."""
        return await sending.look(self._calls, shop, edit)

    async def look_all(
        self, shop: Shop, some: Sequence[Edit], *, at_once: int
    ) -> list[dict[str, Any] | None]:
        """Read what many edits are about as they are now, so many requests at once."""
        return await sending.look_all(self._calls, shop, some, at_once=at_once)

    async def change(self, shop: Shop, edit: Edit, key: str) -> dict[str, Any]:
        """Make the change of an edit and answer what the thing is then; sent once, whatever becomes of it."""
        return await sending.change(self._calls, shop, edit, key)

    def told(self, edit: Edit, key: str) -> PlatformDocument:
        """Say what `change` would send, and send nothing."""
        sent = sending.WAYS[edit.kind].change(edit, key)
        return PlatformDocument(document=sent.text, variables=sent.variables)

    async def stage(self, shop: Shop, upload: Upload) -> str:
        """Put a file where the platform takes it from, and answer where that is."""
        return await uploads.stage(self._calls, shop, upload)

    def told_of_upload(self, upload: Upload) -> PlatformDocument:
        """Say what `stage` would send, and send nothing."""
        return uploads.told(upload)

    async def _count(self, shop: Shop, start: datetime, end: datetime, limit: int | None) -> int:
        variables = {"query": queries.processed_between(start, end), "limit": limit}
        data = await self._calls.ask(shop, queries.COUNT_ORDERS, variables)
        counted = shapes.mapping(data.get("ordersCount"), "the count of orders")
        return shapes.units(counted.get("count"), "the count of orders")
