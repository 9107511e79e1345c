"""A store's reach into the world: tokens, subscriptions, orders read anew, listings told."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

import structlog

from tolsey.actors.listing.messages import SourceRevoked, listing
from tolsey.actors.ports import (
    CommercePlatform,
    GrantRefused,
    PlatformDenied,
    PlatformUnreachable,
    Shop,
)
from tolsey.actors.refusals import Refusal
from tolsey.actors.store.fields import Unreadable
from tolsey.actors.store.identity import PURPOSE
from tolsey.actors.store.messages import (
    Delivery,
    ForgetShops,
    OrderRead,
    ReadOrder,
    ReconcileSubscriptions,
    RenewalRefused,
    RenewalSucceeded,
    RenewalUnreachable,
    RenewToken,
    RevokeListingSources,
    SubscriptionsReconciled,
    Token,
    UseToken,
    store,
)
from tolsey.actors.store.payloads import order_row
from tolsey.actors.store.reading import Reading
from tolsey.actors.store.topics import REASONS, TOPICS
from tolsey.runtime.decision import Tell
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage import connections, listings, stores
from tolsey.storage.database import Database
from tolsey.storage.sealed import SealBroken, Vault

log = structlog.get_logger()

Reply = TypeVar("Reply")

UNAUTHORIZED: Final = 401
MISSING_SCOPE: Final = "missing_scope"


class Ask(Protocol):
    """How an effect asks an actor; `Runtime.ask` is the real one."""

    def __call__(self, to: ActorId, message: Message[Reply]) -> Awaitable[Reply]:
        """Post a message and wait for its reply."""
        ...


class StoreEffects:
    """Calls that follow a store's decisions.

    `events_url` is where the platform delivers; `invalidate` makes the webhook receiver read a
    shop's secrets afresh.
    """

    def __init__(
        self,
        *,
        ask: Ask,
        platform: CommercePlatform,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
        events_url: str,
        invalidate: Callable[[str], Awaitable[None]],
    ) -> None:
        self._ask = ask
        self._platform = platform
        self._database = database
        self._vault = vault
        self._clock = clock
        self._events_url = events_url
        self._invalidate = invalidate

    def handlers(
        self,
    ) -> dict[type[Any], Callable[[Any], Awaitable[Message[Any] | Sequence[Tell] | None]]]:
        """Say which method answers which call."""
        return {
            RenewToken: self.renew_token,
            ReconcileSubscriptions: self.reconcile_subscriptions,
            ReadOrder: self.read_order,
            RevokeListingSources: self.revoke_listing_sources,
            ForgetShops: self.forget_shops,
        }

    async def renew_token(self, call: RenewToken) -> Message[None]:
        """Mint a token with the stored credentials."""
        kept = await connections.credentials_of(self._database, call.store_id, call.connected_at)
        if kept is None:
            return RenewalUnreachable(call.connected_at, self._clock())
        try:
            secret = connections.open_secret(self._vault, call.store_id, kept.client_secret)
            grant = await self._platform.exchange(kept.shop_domain, kept.client_id, secret)
        except SealBroken:
            return RenewalRefused(call.connected_at, "secret_unreadable", self._clock())
        except GrantRefused as refusal:
            return RenewalRefused(call.connected_at, refusal.code, self._clock())
        except PlatformUnreachable as error:
            # Not raised to be tried again: who waits wants to know now, and the next one asks anew.
            log.warning("commerce.renewal_unreachable", store_id=call.store_id, why=error.message)
            return RenewalUnreachable(call.connected_at, self._clock())
        at = self._clock()
        return RenewalSucceeded(
            call.connected_at,
            connections.seal_token(self._vault, call.store_id, grant.access_token),
            grant.scopes,
            at + timedelta(seconds=grant.expires_in),
            at,
        )

    async def reconcile_subscriptions(self, call: ReconcileSubscriptions) -> Message[None] | None:
        """Subscribe the shop to the catalogue and report on every topic.

        Nothing for a grant the store no longer has: the one it has brings a call of its own.
        """
        kept = await connections.credentials_of(self._database, call.store_id, call.connected_at)
        if kept is None:
            return None
        try:
            shop, token = await self._shop(call.store_id)
            report = await self._platform.reconcile_subscriptions(shop, self._events_url, REASONS)
            results = {
                topic: self._said(topic, text, token) for topic, text in report.topics.items()
            }
        except Refusal as refusal:
            if refusal.code != "token_unavailable":
                raise
            results = dict.fromkeys(TOPICS, refusal.code)
        except PlatformDenied as denied:
            results = dict.fromkeys(TOPICS, f"refused: {denied.message}")
        return SubscriptionsReconciled(
            call.connected_at, tuple(sorted(results.items())), self._clock()
        )

    @staticmethod
    def _said(topic: str, text: str, token: Token) -> str:
        """Name the scope a topic needs where the platform only says that one is missing."""
        known = TOPICS.get(topic)
        if text != MISSING_SCOPE or known is None or known.scope is None:
            return text
        return text if known.scope in token.scopes else f"{text}: {known.scope}"

    async def read_order(self, call: ReadOrder) -> Message[None] | None:
        """Ask the platform what an order is now; a shop that does not let us read it is left be."""
        try:
            shop, _ = await self._shop(call.store_id)
            body = await self._platform.order(shop, call.order_id)
        except Refusal as refusal:
            if refusal.code != "token_unavailable":
                raise
            return None
        except PlatformDenied as denied:
            if denied.status == UNAUTHORIZED:
                raise  # the token may have died a moment ago
            log.warning("commerce.order_denied", store_id=call.store_id, status=denied.status)
            return None
        if body is None:
            return None
        salt = await stores.salt_of(self._database, self._vault, call.store_id)
        identity = None if salt is None else self._vault.subkey(salt, PURPOSE)
        delivery = Delivery(
            f"read:{call.order_id}", "orders/edited", shop.shop_domain, self._clock()
        )
        try:
            order = order_row(Reading(call.store_id, identity, delivery), body)
        except Unreadable as error:
            log.warning("commerce.order_unreadable", store_id=call.store_id, field=error.field)
            return None
        return OrderRead(shop.shop_domain, order)

    async def revoke_listing_sources(self, call: RevokeListingSources) -> Sequence[Tell]:
        """Tell every listing of the organization whose revenue is read from the shop."""
        found = await listings.listings_of_shop(
            self._database, call.organization_id, call.shop_domain
        )
        return [
            Tell(
                listing(listing_id),
                SourceRevoked(call.at, "app_uninstalled"),
                key=f"source-revoked:{listing_id}:{call.at.isoformat()}",
            )
            for listing_id in found
        ]

    async def forget_shops(self, call: ForgetShops) -> None:
        """Let the receiver read these shops' secrets afresh."""
        for shop_domain in call.shop_domains:
            await self._invalidate(shop_domain)

    async def _shop(self, store_id: str) -> tuple[Shop, Token]:
        """Get the right to call a store's shop, renewed where needed."""
        token = await self._ask(store(store_id), UseToken(self._clock()))
        plain = connections.open_token(self._vault, store_id, token.access_token)
        return Shop(token.shop_domain, plain), token
